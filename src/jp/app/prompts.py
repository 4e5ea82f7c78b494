"""Texts for the model that people keep in files: saved prompts, and a workspace's AGENTS.md and CLAUDE.md.

A prompt is a file `prompts/NAME.md` in the user's configuration directory or in a workspace's `.jp`. A text of a
workspace counts once its content has been accepted; a prompt then goes before the user's own of the same name.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from jp.app.options import AnyWorkspace, Options
from jp.app.settings import accept, accepted_of
from jp.config.layers import Ignored, Layer
from jp.config.sources import flag_layer
from jp.config.trust import UntrustedError, listed, mark_of_text
from jp.errors import StorageError, UsageError
from jp.file_access import read_whole
from jp.remedies import Show, TrustWorkspace, phrase
from jp.workspace.layout import MARKER, user_config_directory

Place = Literal["user", "workspace"]

_MOST_BYTES = 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DIRECTORY = "prompts"
_SUFFIX = ".md"
_SHOWN_CHARS = 60
INSTRUCTION_FILES = ("AGENTS.md", "CLAUDE.md")
INSTRUCTIONS_TAG = "instructions"
"""The tag around such a file in the system prompt; its title is the name of the file."""


class SavedText(msgspec.Struct, frozen=True, kw_only=True):
    """A text in a file; one of a workspace is used only if its content is trusted."""

    name: str
    place: Place
    path: Path
    text: str
    trusted: bool = True
    kind: Literal["prompts", "instructions"] = "prompts"

    @property
    def mark(self) -> str:
        """Return the hash by which the text is accepted."""
        return mark_of_text(f"{self.kind}/{self.name}", self.text)

    @property
    def first_line(self) -> str:
        """Return the beginning of the text, in one line."""
        line = next((line.strip() for line in self.text.splitlines() if line.strip()), "")
        return line if len(line) <= _SHOWN_CHARS else f"{line[: _SHOWN_CHARS - 1]}…"

    @property
    def declaration(self) -> Ignored:
        """Return the text as a value of the workspace that needs trust."""
        count = len(self.text.splitlines())
        value = self.first_line if count <= 1 else f"{self.first_line} … ({count:,} lines)"
        marks = frozenset({self.mark})
        return Ignored(path=(self.kind, self.name), value=value, origin=str(self.path), marks=marks)


def prompt_path(workspace: AnyWorkspace, place: Place, name: str) -> Path:
    """Return the file of a prompt.

    Raises:
        UsageError: the name is no file name, or there is no such place.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"a prompt cannot be called {name!r}", hint="use letters, digits, '-', '_' and '.', such as code-review"
        )
    directory = _directory(workspace, place)
    if directory is None:
        where = "workspace" if place == "workspace" else "home directory"
        other = "user" if place == "workspace" else "workspace"
        raise UsageError(f"there is no {where} for prompts", hint=f"save it for the {other}")
    return directory / f"{name}{_SUFFIX}"


def _directory(workspace: AnyWorkspace, place: Place) -> Path | None:
    if place == "workspace":
        return None if workspace.root is None else workspace.root / MARKER / _DIRECTORY
    user = user_config_directory(os.environ)
    return None if user is None else user / _DIRECTORY


def saved_prompts(workspace: AnyWorkspace) -> list[SavedText]:
    """Return all prompts by name, those of the workspace before the user's own of the same name.

    Files that cannot be read, or whose names no prompt can have, are omitted.
    """
    accepted = accepted_of(workspace)
    found = [*_in_place(workspace, "workspace", accepted), *_in_place(workspace, "user", accepted)]
    return sorted(found, key=lambda prompt: prompt.name)


def find_prompt(workspace: AnyWorkspace, name: str) -> SavedText:
    """Return the prompt that is used for a name: the workspace's if it is trusted, else the user's.

    Raises:
        UntrustedError: only the workspace has it, and it is not trusted.
        UsageError: there is none.
    """
    named = [prompt for prompt in saved_prompts(workspace) if prompt.name == name]
    usable = [prompt for prompt in named if prompt.trusted]
    if usable:
        return usable[0]
    if named:
        raise UntrustedError([named[0].declaration])
    raise unknown_prompt(workspace, name)


def unknown_prompt(workspace: AnyWorkspace, name: str) -> UsageError:
    """Return the error for a name that no prompt has."""
    from jp.suggestions import closest_names

    near = closest_names(name, [prompt.name for prompt in saved_prompts(workspace)])
    meant = f"did you mean {near[0]!r}? " if near else ""
    return UsageError(f"there is no prompt {name!r}", hint=phrase(meant, "`", Show("prompts"), "` lists them"))


def _in_place(workspace: AnyWorkspace, place: Place, accepted: Collection[str]) -> Iterator[SavedText]:
    directory = _directory(workspace, place)
    paths: list[Path] = []
    if directory is not None:
        with contextlib.suppress(OSError):
            paths = sorted(directory.iterdir())
    for path in paths:
        if path.suffix != _SUFFIX or not _NAME.fullmatch(path.stem):
            continue
        text = _read(path, follows=place == "user")
        if text is not None:
            found = SavedText(name=path.stem, place=place, path=path, text=text)
            yield replace(found, trusted=place == "user" or found.mark in accepted)


def _read(path: Path, *, follows: bool) -> str | None:
    """Return the text of a file; None if it cannot be read. Links of a workspace are not followed."""
    try:
        return read_whole(path, _MOST_BYTES, follows=follows).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def declared_texts(workspace: AnyWorkspace) -> tuple[Ignored, ...]:
    """Return the texts of the workspace that need trust, accepted or not."""
    texts = (*workspace_instructions(workspace), *_in_place(workspace, "workspace", ()))
    return tuple(text.declaration for text in texts)


def workspace_instructions(workspace: AnyWorkspace) -> list[SavedText]:
    """Return AGENTS.md and CLAUDE.md at the root of the workspace, each text once.

    A link counts if it leads to a file in the workspace. `@AGENTS.md` alone, which imports the other, is omitted.
    """
    if workspace.root is None:
        return []
    root, accepted = workspace.root.resolve(), accepted_of(workspace)
    found: list[SavedText] = []
    for name in INSTRUCTION_FILES:
        path = (root / name).resolve()
        text = _read(path, follows=False) if path.is_relative_to(root) else None
        known = {"", *(f"@{other.name}" for other in found), *(other.text.strip() for other in found)}
        if text is not None and text.strip() not in known:
            file = SavedText(name=name, place="workspace", path=root / name, text=text, kind="instructions")
            found.append(replace(file, trusted=file.mark in accepted))
    return found


def instruction_layers(options: Options, workspace: AnyWorkspace) -> list[Layer]:
    """Return layers that add the instructions of the workspace to the system prompt; name untrusted ones."""
    found = workspace_instructions(workspace)
    if untrusted := [file.declaration for file in found if not file.trusted]:
        options.notice(phrase("ignored until trusted: ", listed(untrusted), "; `", TrustWorkspace(), "` accepts it"))
    return [
        flag_layer(
            file.name,
            {
                "assistant": {
                    "system_prompt_sections": [
                        {"tag": INSTRUCTIONS_TAG, "title": file.name, "content": file.text.strip()}
                    ]
                }
            },
        )
        for file in found
        if file.trusted
    ]


def save_prompt(workspace: AnyWorkspace, options: Options, prompt: SavedText) -> None:
    """Write the file of a prompt, and trust it. A link is followed only for the user's own.

    Raises:
        StorageError: it could not be written.
    """
    from jp.workspace.files import make_directories, replace_file

    path = prompt.path
    if prompt.place == "workspace" and path.is_symlink():
        raise StorageError(f"{str(path)!r} is a link, and is not written through", hint="put the file itself there")
    make_directories(path.parent)
    replace_file(path.resolve() if prompt.place == "user" else path, prompt.text.encode())
    if prompt.place == "workspace":
        accept([prompt.declaration], options, workspace)
