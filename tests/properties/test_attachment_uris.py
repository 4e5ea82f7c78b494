from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from unicodedata import normalize

import anyio
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jp.attachment.base import AttachmentError, ResolveContext, encode
from jp.attachment.file_paths import decode
from jp.attachment.registry import AttachmentRegistry, plan_resolution, resolve_all
from jp.conversation.resource import Resource

# Characters that paths, URIs, globs and Unicode give a meaning, and some that they do not.
LETTERS = st.sampled_from([*"aAbB.~!*?[]-^#%:@&+'\" \\\n\t", "%41", "é", "e\u0301", "\u0323", "\u0308", "ß", "✓", "🙂"])
TEXT_NAMES = st.lists(LETTERS, min_size=1, max_size=6).map("".join)
BYTE_NAMES = st.binary(min_size=1, max_size=6).map(os.fsdecode)
NAMES = (TEXT_NAMES | BYTE_NAMES).filter(lambda name: name not in {".", ".."} and not set(name) & {"/", "\0"})


@contextmanager
def workspace(*names: str) -> Generator[ResolveContext]:
    """A root with files of these names, each of which holds its own name, as bytes in hexadecimal."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(os.path.realpath(directory)) / "root"
        (root / "sub").mkdir(parents=True)
        for name in names:
            # A file system may refuse a name, or take two for one.
            with suppress(OSError):
                (root / name).write_text(os.fsencode(name).hex(), encoding="utf-8")
        assume({"sub", *names} == {path.name for path in root.iterdir()} and "sub" not in names)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOME", str(root))
            yield ResolveContext(root=root, cwd=root)


def canonical(text: str, context: ResolveContext) -> str:
    return AttachmentRegistry().declare(text, context, confined=False).text


def attached(text: str, context: ResolveContext) -> tuple[Resource, ...]:
    plan = plan_resolution([], [AttachmentRegistry().declare(text, context, confined=False)], delivered=())
    return anyio.run(resolve_all, plan, AttachmentRegistry(), context).resources


def spellings(name: str, context: ResolveContext) -> list[str]:
    """Ways to write the file `name` in the root."""
    every_byte = "".join(f"%{byte:02x}" for byte in os.fsencode(name))
    return [
        f"./{name}",
        f"sub/../{name}",
        f".//sub/.././{name}/",
        f"{context.root}/{name}",
        f"file:./{encode(name)}",
        f"file:{every_byte}",
        f"FILE:sub/%2E./{every_byte.upper()}",
        f"file://{encode(str(context.root))}/{encode(name)}",
        f"file://localhost{context.root}//{every_byte}/",
        f"~/{name}",
        f"file:~/{every_byte}",
    ]


@given(NAMES)
def test_every_spelling_of_a_file_has_one_canonical_form(name: str) -> None:
    with workspace(name) as context:
        assert len({canonical(text, context) for text in spellings(name, context)}) == 1


PATHS = st.text(st.characters(codec="utf-8"), max_size=8) | st.lists(NAMES | st.just(".."), max_size=3).map("/".join)


@given(text=PATHS, is_uri=st.booleans())
def test_what_is_canonical_stays_as_it_is(*, text: str, is_uri: bool) -> None:
    with workspace() as context:
        try:
            first = canonical(f"file:{text}" if is_uri else text, context)
        except AttachmentError:
            return

        assert canonical(first, context) == first
        assert first.isascii()


@given(st.lists(NAMES, min_size=2, max_size=5, unique=True))
def test_distinct_files_never_agree(names: list[str]) -> None:
    with workspace(*names) as context:
        declared = {canonical(f"./{name}", context) for name in names}
        resources = [attached(f"./{name}", context) for name in names]

    assert len(declared) == len(names)
    assert len({resource.uri for [resource] in resources}) == len(names)


@given(st.lists(NAMES, min_size=1, max_size=5, unique=True))
def test_every_file_is_opened_under_its_own_name(names: list[str]) -> None:
    with workspace(*names) as context:
        for name in names:
            [resource] = attached(f"./{name}", context)
            [again] = attached(canonical(f"./{name}", context), context)

            assert resource.text == os.fsencode(name).hex()
            assert again == resource


@given(st.lists(NAMES, min_size=1, max_size=5, unique=True))
def test_a_directory_and_its_files_have_the_same_identities(names: list[str]) -> None:
    visible = [name for name in names if not name.startswith(".")]
    assume(visible)
    with workspace(*names) as context:
        together = attached(".", context)
        alone = [resource for name in visible for resource in attached(f"./{name}", context)]

    assert sorted(resource.uri for resource in together) == sorted(resource.uri for resource in alone)


@given(TEXT_NAMES.filter(lambda name: name not in {".", ".."}))
def test_a_lone_file_is_found_by_both_unicode_forms(name: str) -> None:
    with workspace(name) as context:
        forms = {normalize(form, name) for form in ("NFC", "NFD")}

        assert len({canonical(f"./{form}", context) for form in forms}) == 1
        assert len({attached(f"./{form}", context)[0].uri for form in forms}) == 1


@given(NAMES)
def test_a_name_survives_encoding(name: str) -> None:
    assert decode(encode(name)) == name
