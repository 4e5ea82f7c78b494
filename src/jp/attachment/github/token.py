"""Where the token for a GitHub server comes from. It reaches nothing but the headers of requests to that server."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from jp.attachment.base import AttachmentError

_VARIABLES = ("GITHUB_TOKEN", "GH_TOKEN")
_PROGRAM = "gh"
_REACHES_KEYRING = ("DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR")
_TIMEOUT_SECS = 10.0
_MOST_BYTES = 64 * 1024
_OF_PROGRAM = ("GH_CONFIG_DIR", "GH_HOST", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", *_REACHES_KEYRING)
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
    value = "" if program is None else await _of_program(program, host, environment)
    return Token(value=value, source="`gh auth token`") if value else None


async def _of_program(program: str, host: str, environment: Mapping[str, str]) -> str:
    from jp.process.environment import scrubbed
    from jp.process.running import OutputLimits, ProcessLimits, Program, run

    passed = scrubbed(environment, named=_OF_PROGRAM)
    asked = Program(words=(program, "auth", "token", "--hostname", host), directory=".", environment=passed)
    output = OutputLimits(kept=_MOST_BYTES, most=_MOST_BYTES)
    try:
        ended = await run(asked, output=output, limits=ProcessLimits(timeout_secs=_TIMEOUT_SECS))
    except OSError:
        return ""
    value = (ended.stdout.head + ended.stdout.tail).decode("utf-8", "replace").strip()
    return value if ended.exit_code == 0 and _TOKEN.fullmatch(value) else ""
