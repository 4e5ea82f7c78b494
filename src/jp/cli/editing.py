"""A text in the user's editor, while a turn waits for it."""

from __future__ import annotations

import os
from pathlib import Path

from jp.cli.editor import NotAskedError, edit, find_editor
from jp.config.model import EditorConfig
from jp.errors import ConfigurationError, JpError


async def edited_text(text: str, *, suffix: str, config: EditorConfig) -> str:
    """What the user makes of `text`, in a file whose name ends in `suffix`, which is gone afterwards.

    Raises:
        JpError: there is no editor, it did not end well, or what it left is empty or no text.
    """
    from tempfile import TemporaryDirectory

    editor = find_editor(config, os.environ)
    if editor is None:
        raise ConfigurationError(
            "no editor is set", hint="set EDITOR, or for good: `jp config set --in user editor.cmd=vim`"
        )
    with TemporaryDirectory(prefix="jp-") as directory:
        path = Path(directory) / f"text{suffix}"
        path.write_text(text, encoding="utf-8", errors="replace")
        await edit(editor, path)
        try:
            written = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise JpError(f"what the editor left cannot be read: {error}") from None
    if not written.strip():
        raise NotAskedError("the text is empty")
    return written if text.endswith("\n") else written.removesuffix("\n")
