from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest

from jp.attachment.base import AttachmentError, Declaration, Resolution, ResolveContext
from jp.attachment.registry import CheckedHandler
from jp.conversation.resource import Annotations, Resource

GOOD = Resource(uri="echo:a", mime_type="text/plain", text="text", annotations=Annotations(priority=0.5))
PICTURE = Resource(uri="echo:b", mime_type="image/png", blob=b"\x89PNG")


class Handler:
    """Gives what it is told to."""

    def __init__(self, give: Callable[[], Any]) -> None:
        self._give = give

    def canonical(self, uri: str, context: ResolveContext) -> str:
        return self._give()

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        return self._give()


def guarded(give: Callable[[], Any]) -> CheckedHandler:
    return CheckedHandler(Handler(give), "echo", lambda: "'m:H' of the package 'p'")


def resolved(given: object, context: ResolveContext) -> Resolution:
    return anyio.run(guarded(lambda: given).resolve, Declaration(uri="echo:a", written="echo:A"), context)


def failing(error: BaseException) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


def test_what_a_handler_gives_comes_as_it_is(context: ResolveContext) -> None:
    resolution = Resolution(resources=(GOOD, PICTURE), notices=("one was left out",))

    assert resolved(resolution, context) == resolution
    assert guarded(lambda: "echo+more:a").canonical("echo+more:A", context) == "echo+more:a"


@pytest.mark.parametrize("given", [None, 5, "file:/etc/passwd", "", "no uri", "echo:\udcff"])
def test_a_canonical_uri_has_the_same_scheme(given: object, context: ResolveContext) -> None:
    with pytest.raises(
        AttachmentError, match=r"^'echo:A': the attachment scheme 'echo', 'm:H' of the package 'p', gave "
    ):
        guarded(lambda: given).canonical("echo:A", context)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (None, "gave 'NoneType' where a Resolution has to be"),
        ((GOOD,), "gave 'tuple' where a Resolution has to be"),
        (Resolution(resources=(5,)), "gave what cannot be stored: "),  # pyright: ignore[reportArgumentType]  a defect
        (Resolution(resources=(Resource(uri="echo:a", text=b"x"),)), "cannot be stored"),  # pyright: ignore[reportArgumentType]  a defect
        (Resolution(resources=(Resource(uri="echo:a", text=object()),)), "cannot be stored"),  # pyright: ignore[reportArgumentType]  a defect
        (Resolution(resources=(Resource(uri="echo:a", text="\udcff"),)), "cannot be stored"),
        (Resolution(resources=(Resource(uri="echo:a", text="x", name=5),)), "cannot be stored"),  # pyright: ignore[reportArgumentType]  a defect
        (Resolution(resources=(GOOD,), notices=(5,)), "cannot be stored"),  # pyright: ignore[reportArgumentType]  a defect
        (Resolution(resources=(Resource(uri="a", text="x"),)), "gave a resource whose URI is 'a'"),
        (Resolution(resources=(Resource(uri="echo:a"),)), "'echo:a' with other than just one of text and blob"),
        (Resolution(resources=(Resource(uri="echo:a", text="", blob=b""),)), "just one of text and blob"),
        (Resolution(resources=(Resource(uri="echo:a", sha256="0" * 64, size=1, chars=1),)), "just one of text and"),
        (Resolution(resources=(Resource(uri="echo:a", text="x" * 2000),)), "at most 1.0 KiB"),
        (Resolution(resources=tuple(Resource(uri=f"echo:{n}", text="x" * 1000) for n in range(11))), "the most is 10"),
        (Resolution(resources=tuple(Resource(uri=f"echo:{n}", text="") for n in range(2001))), "gave 2,001 resources"),
    ],
)
def test_what_cannot_be_attached_names_scheme_and_package(given: object, problem: str, context: ResolveContext) -> None:
    bounded = ResolveContext(root=context.root, cwd=context.cwd, max_bytes=1024)

    with pytest.raises(AttachmentError) as raised:
        resolved(given, bounded)

    assert raised.value.message.startswith("'echo:A': the attachment scheme 'echo', 'm:H' of the package 'p', gave ")
    assert problem in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize("error", [KeyError("x"), SystemExit(3), ExceptionGroup("", [KeyError("x"), OSError()])])
def test_whatever_is_raised_is_a_defect(error: BaseException, context: ResolveContext) -> None:
    handler = guarded(failing(error))

    with pytest.raises(AttachmentError, match=f"package 'p', failed: {type(error).__name__}: "):
        handler.canonical("echo:A", context)
    with pytest.raises(AttachmentError, match=f"package 'p', failed: {type(error).__name__}: "):
        anyio.run(handler.resolve, Declaration(uri="echo:a", written="echo:A"), context)


def test_what_a_handler_means_to_say_is_said_also_out_of_a_task(context: ResolveContext) -> None:
    meant = AttachmentError("there is no such page", hint="Look.")

    for error in (meant, ExceptionGroup("", [ExceptionGroup("", [meant])])):
        with pytest.raises(AttachmentError) as raised:
            guarded(failing(error)).canonical("echo:A", context)
        assert raised.value is meant


def test_who_stops_a_query_stops_its_handlers(context: ResolveContext) -> None:
    with pytest.raises(KeyboardInterrupt):
        guarded(failing(KeyboardInterrupt())).canonical("echo:A", context)
