"""The three standard streams: what they are at the start, and the only ways to write to them from `cli`."""

from __future__ import annotations

import codecs
import os
import sys

from jp.errors import JpError

TYPE_CHECKING = False  # `typing` would be a third of the time that help takes
if TYPE_CHECKING:
    from typing import Any, TextIO


SCHEMA = 1
"""The version of everything that is printed as JSON. Fields are only added within a version."""


def prepare() -> None:
    """Make the standard streams safe to use, whatever the caller left of them.

    A closed descriptor is filled, so that no file of jp's gets its number; writing to a stdout that was closed fails
    as before, and a closed stderr swallows what it gets. A descriptor that somebody else made non-blocking would
    lose what a slow reader does not take at once. Text is UTF-8 in any locale, file names that are not UTF-8 come out
    as the bytes they are, and nothing fails to encode.
    """
    for descriptor, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        if not _is_open(descriptor):
            os.open(os.devnull, mode)  # the lowest free number, so this one
    for descriptor in (1, 2):
        if not os.get_blocking(descriptor):
            os.set_blocking(descriptor, True)
    codecs.register_error("jp", _encode_anyway)
    sys.stdout = _as_utf8(sys.stdout, 1)
    sys.stderr = _as_utf8(sys.stderr, 2)


def write_stdout(text: str) -> None:
    """Write and flush `text`.

    Raises:
        BrokenPipeError: the reader has left.
        JpError: stdout takes no more for another reason.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise stdout_failed(error) from error


def write_stdout_bytes(data: bytes) -> None:
    """Write and flush `data` as it is; see `write_stdout`."""
    try:
        sys.stdout.flush()
        left = memoryview(data)
        while left:  # what has no buffer, as with PYTHONUNBUFFERED, takes as much as there is room for
            left = left[sys.stdout.buffer.write(left) :]
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise stdout_failed(error) from error


def stdout_failed(error: OSError) -> JpError:
    """Return the error for a stdout that cannot be written to."""
    hint = "look where the output goes: there has to be room"
    return JpError(f"cannot write to stdout: {error.strerror or error}", hint=hint)


def write_stderr(text: str, *, links: bool = False) -> None:
    """Write and flush `text`, with secrets masked and nothing that steers a terminal. What it cannot take is lost.

    With `links`, what it names can be opened from the terminal.
    """
    from jp.render.sanitize import link_message, mask, sanitize

    safe = sanitize(mask(text, os.environ))
    if links:
        safe = link_message(safe)
    try:
        sys.stderr.write(safe)
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return


def _as_utf8(stream: TextIO | None, descriptor: int) -> TextIO:
    """Return `stream`, or one on `descriptor` if Python made none because it was closed."""
    if stream is None:
        return open(descriptor, "w", encoding="utf-8", errors="jp", closefd=False)
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:  # what a test puts in its place may lack it
        reconfigure(encoding="utf-8", errors="jp")
    return stream


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _encode_anyway(error: UnicodeError) -> tuple[str | bytes, int]:
    """Escaped bytes come out as they came in; other lone surrogates become question marks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeEncodeError:
        return "?" * (error.end - error.start), error.end


def json_text(value: object) -> str:
    """Return `value` as JSON. Parts of file names that are not UTF-8 are replaced: JSON cannot contain them."""
    import msgspec

    try:
        return msgspec.json.encode(value, enc_hook=_plain).decode("utf-8")
    except UnicodeEncodeError:
        return msgspec.json.encode(_readable(msgspec.to_builtins(value, enc_hook=_plain))).decode("utf-8")


def _readable(value: Any) -> Any:
    from typing import cast

    match value:
        case str():
            return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        case dict():
            return {_readable(name): _readable(below) for name, below in cast("dict[str, Any]", value).items()}
        case list() | tuple():
            return [_readable(item) for item in cast("list[Any]", value)]
        case _:
            return value


def _plain(value: object) -> str:
    """Return a subtype of text, such as an id or a text with remedies, as plain text.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} has no form in JSON")
    from jp.cli.terminal.wording import worded

    return str(worded(value))
