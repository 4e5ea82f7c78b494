"""The `clipboard` scheme: text or a picture from the clipboard, read once by the tool of the platform.

The URI of what was read names its content, so that nothing can read the clipboard again by it.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from base64 import b64decode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, assert_never

import msgspec

from jp.attachment.base import AttachmentError, Declaration, Resolution, ResolveContext, format_size
from jp.conversation.resource import Resource
from jp.process.environment import child_environment, find_program
from jp.remedies import Ask, Option, UseOption, phrase

if TYPE_CHECKING:
    from jp.process.guardian import ProcessLimits

Wanted = Literal["", "text", "image"]

_URI = re.compile(r"clipboard:(?://)?(|text|image)", re.IGNORECASE)
_DISPLAY = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "WSL_INTEROP")
_TIMEOUT_SECS = 10.0
_IMAGES = ("image/png", "image/jpeg", "image/webp", "image/gif", "application/pdf")
_TEXTS = ("text/plain;charset=utf-8", "UTF8_STRING", "text/plain", "STRING", "TEXT")
_MAC_IMAGE = re.compile(rb"\s*\xc2\xabdata PNGf([0-9A-Fa-f]+)\xc2\xbb\s*")
_MAC_SCRIPT = "the clipboard as \xabclass PNGf\xbb"
_WINDOWS_TEXT = "[Console]::OutputEncoding = [Text.Encoding]::UTF8; [Console]::Out.Write((Get-Clipboard -Raw))"
_WINDOWS_IMAGE = (
    "Add-Type -AssemblyName System.Windows.Forms, System.Drawing; "
    "$i = [Windows.Forms.Clipboard]::GetImage(); if ($i) { $m = New-Object IO.MemoryStream; "
    "$i.Save($m, [Drawing.Imaging.ImageFormat]::Png); [Console]::Out.Write([Convert]::ToBase64String($m.ToArray())) }"
)
_PIPE = Ask((UseOption(Option.ATTACH, "-"),), is_open=True)


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A command that prints content of the clipboard, and the coding of its output. `words[0]` is a path."""

    words: tuple[str, ...]
    coding: Literal["plain", "apple", "base64"] = "plain"


class ClipboardHandler:
    """The handler of `clipboard`. `platform` is one of `sys.platform`."""

    def __init__(self, *, limits: ProcessLimits | None = None, platform: str = sys.platform) -> None:
        self._limits = limits
        self._platform = platform

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """Return `clipboard:`, `clipboard:text` or `clipboard:image`.

        Raises:
            AttachmentError: it is another one, such as the URI of what was read.
        """
        return f"clipboard:{_wanted(uri)}"

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        """Read the clipboard.

        Raises:
            AttachmentError: it is empty, has nothing that can be attached, or cannot be read; or a file declares it.
        """
        if declaration.confined:
            message = f"{declaration.written!r} is declared in a file, and the clipboard may hold anything"
            hint = phrase("attach it yourself: `", Ask((UseOption(Option.ATTACH, "clipboard:"),)), "`")
            raise AttachmentError(message, hint=hint)
        if any(exclude.uri == declaration.uri for exclude in excludes):
            return Resolution(resources=(), notices=("the clipboard is not read: it is excluded",))
        wanted = _wanted(declaration.uri)
        clipboard = _Clipboard(context, self._limits)
        texts, images = await clipboard.readings(self._platform)
        # Other programs offer text as a picture, too.
        for reading in [*(texts if wanted != "image" else ()), *(images if wanted != "text" else ())]:
            if data := _decoded(await clipboard.run(reading), reading):
                return Resolution(resources=(_resource(data, context),))
        message = f"the clipboard has no {wanted}" if wanted else "the clipboard is empty"
        raise AttachmentError(message, hint="copy something, and run the command again")


def _wanted(uri: str) -> Wanted:
    match = _URI.fullmatch(uri)
    if match is None:
        hint = "write 'clipboard:', 'clipboard:text' or 'clipboard:image'; what was read stays as it was"
        raise AttachmentError(f"{uri!r} is not a clipboard", hint=hint)
    kind = match[1].lower()
    return "text" if kind == "text" else "image" if kind == "image" else ""


def _resource(data: bytes, context: ResolveContext) -> Resource:
    from jp.attachment.media import BinaryMedia, UnsupportedMedia, identify

    if len(data) > context.max_bytes:
        raise _too_large(context)
    media = identify(data, "clipboard")
    if isinstance(media, UnsupportedMedia):
        raise AttachmentError(f"the clipboard is {media.reason}", hint=media.hint)
    uri = f"clipboard:{hashlib.sha256(data).hexdigest()[:12]}"
    if isinstance(media, BinaryMedia):
        return Resource(uri=uri, mime_type=media.mime_type, name="clipboard", blob=data)
    return Resource(uri=uri, mime_type=media.mime_type, name="clipboard", text=media.text)


def _too_large(context: ResolveContext) -> AttachmentError:
    hint = "copy less of it, or raise 'conversation.max_attachment_bytes'"
    return AttachmentError(f"the clipboard has more than {format_size(context.max_bytes)}", hint=hint)


class _Clipboard:
    """The clipboard, as a tool of the platform gives it."""

    def __init__(self, context: ResolveContext, limits: ProcessLimits | None) -> None:
        self._context = context
        self._limits = limits
        self._directory = str(context.root.absolute())
        passed = child_environment(
            os.environ, cwd=str(context.cwd.absolute()), directory=self._directory, named=_DISPLAY
        )
        # A program that came with a repository must not get what its user has copied.
        self._is_outside = _OutsideOf(self._directory if context.anchored else "")
        places = filter(self._is_outside, passed.get("PATH", os.defpath).split(os.pathsep))
        self._environment = {**passed, "PATH": os.pathsep.join(places)}

    async def readings(self, platform: str) -> tuple[list[Reading], list[Reading]]:
        """Return the commands that print text and pictures, the best first.

        Raises:
            AttachmentError: there is no tool.
        """
        if platform == "darwin" and (paste := self._find("pbpaste")):
            script = self._find("osascript")
            images = [Reading(words=(script, "-e", _MAC_SCRIPT), coding="apple")] if script else []
            return [Reading(words=(paste,))], images
        if self._environment.get("WAYLAND_DISPLAY") and (paste := self._find("wl-paste")):
            return await self._offered((paste, "--list-types"), (paste, "--no-newline", "--type"), ())
        if self._environment.get("DISPLAY") and (paste := self._find("xclip")):
            start = (paste, "-selection", "clipboard", "-t")
            return await self._offered((*start, "TARGETS", "-o"), start, ("-o",))
        if shell := self._find("powershell.exe"):
            start = (shell, "-NoProfile", "-NonInteractive", "-STA", "-Command")
            text, image = (
                Reading(words=(*start, _WINDOWS_TEXT)),
                Reading(words=(*start, _WINDOWS_IMAGE), coding="base64"),
            )
            return [text], [image]
        raise self._no_tool()

    async def _offered(
        self, list_types: tuple[str, ...], before: tuple[str, ...], after: tuple[str, ...]
    ) -> tuple[list[Reading], list[Reading]]:
        types = (await self.run(Reading(words=list_types))).decode("utf-8", "replace").split("\n")
        texts, images = (
            [Reading(words=(*before, kind, *after)) for kind in kinds if kind in types] for kinds in (_TEXTS, _IMAGES)
        )
        return texts, images

    def _find(self, name: str) -> str | None:
        found = find_program(name, self._directory, self._environment)
        return found if found is not None and self._is_outside(found) else None

    def _no_tool(self) -> AttachmentError:
        has_display = any(self._environment.get(name) for name in ("WAYLAND_DISPLAY", "DISPLAY"))
        missing = "install wl-clipboard (Wayland) or xclip (X11)" if has_display else "there is no display here"
        hint = phrase(f"{missing}, or pipe it in: `command | ", _PIPE, "`")
        return AttachmentError("nothing here can read the clipboard", hint=hint)

    async def run(self, reading: Reading) -> bytes:
        """Return the output of a command; empty where it fails, as tools do where there is nothing of a type."""
        from jp.process.guardian import OutputLimits, ProcessLimits, Program, run

        # Hexadecimal digits take two bytes for each.
        most = 2 * self._context.max_bytes + 1024
        program = Program(words=reading.words, directory=self._directory, environment=self._environment)
        limits = self._limits or ProcessLimits(timeout_secs=_TIMEOUT_SECS)
        try:
            ended = await run(program, output=OutputLimits(kept=most, most=most), limits=limits)
        except OSError as error:
            message = f"cannot run {reading.words[0]!r}: {error.strerror or error}"
            raise AttachmentError(message, hint="run it in a shell to see why") from None
        if ended.stopped == "time":
            message = f"{reading.words[0]!r} did not give the clipboard within {limits.timeout_secs:g} s"
            raise AttachmentError(message, hint=phrase("pipe it in instead: `command | ", _PIPE, "`"))
        if ended.stopped == "output":
            raise _too_large(self._context)
        return b"" if ended.exit_code else ended.stdout.head + ended.stdout.tail


class _OutsideOf:
    """Tells which absolute paths do not lead into a workspace; `root` is empty outside any."""

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root) if root else ""

    def __call__(self, place: str) -> bool:
        found = os.path.realpath(place)
        return place.startswith("/") and not (self._root and f"{found}/".startswith(f"{self._root.rstrip('/')}/"))


def _decoded(data: bytes, reading: Reading) -> bytes:
    match reading.coding:
        case "plain":
            return data
        case "apple":
            match = _MAC_IMAGE.fullmatch(data)
            return bytes.fromhex(match[1].decode()) if match else b""
        case "base64":
            return b64decode(data)
        case _:
            assert_never(reading.coding)
