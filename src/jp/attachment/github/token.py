"""Where the token for a GitHub server comes from. It reaches nothing but the headers of requests to that server."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from jp.attachment.base import AttachmentError

_VARIABLES = ("GITHUB_TOKEN", "GH_TOKEN")
_PROGRAM = "gh"
_TIMEOUT_SECS = 10.0
_TOKEN = re.compile(r"[!-~]+")


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A token. `source` says in words where it comes from."""

    value: str
    source: str

    @property
    def text(self) -> str:
        """What it is called where it must not be shown."""
        return f"the token of {self.source}"

    def __repr__(self) -> str:
        return f"Token(source={self.source!r})"


async def find_token(environment: Mapping[str, str], host: str) -> Token | None:
    """The token of a variable, else the one that `gh` has for the server `host`; None where there is none.

    Raises:
        AttachmentError: a variable holds what no header can.
    """
    for name in _VARIABLES:
        if value := environment.get(name, "").strip():
            if _TOKEN.fullmatch(value) is None:
                message = f"{name} holds characters that no token has"
                raise AttachmentError(message, hint=f"Set it again, or unset it to ask without: `unset {name}`.")
            return Token(value=value, source=name)

    import shutil

    program = shutil.which(_PROGRAM, path=environment.get("PATH"))
    value = "" if program is None else await _of_program(program, host)
    return Token(value=value, source="`gh auth token`") if value else None


async def _of_program(program: str, host: str) -> str:
    import subprocess

    import anyio

    with anyio.move_on_after(_TIMEOUT_SECS):
        try:
            done = await anyio.run_process(
                [program, "auth", "token", "--hostname", host],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
        except OSError:
            return ""
        value = done.stdout.decode("utf-8", "replace").strip()
        return value if done.returncode == 0 and _TOKEN.fullmatch(value) else ""
    return ""
