"""Every recorded conversation, played through the real turn: each of its requests, with tools of the test's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import anyio
import msgspec
import pytest

from doubles import MemoryRecorder, Screen
from jp.conversation.entries import AnyEntry, ChatRequest, ChatResponse, CycleEnd, ToolCallRequest, ToolCallResponse
from jp.provider.registry import PROVIDERS
from loopback import Loopback
from recordings import recording_of, reply_to, streamed
from replays import CASES, file_of, play

OWN_IDS = frozenset({"google", "ollama"})
"""Where the recordings have ids that the recorder made up: ours are others."""


class Told(msgspec.Struct, frozen=True):
    """One piece of an answer: `value` is a text, arguments or data."""

    kind: str
    value: Any
    call_id: str = ""
    name: str = ""


ASKED = Told("asked", None)


def recorded(entries: Sequence[AnyEntry], *, own_ids: bool) -> Iterator[tuple[Told, str]]:
    """What the log holds of the answers, each with its metadata as JSON; what was asked stands between them."""
    for entry in entries:
        match entry:
            case ChatRequest():
                yield ASKED, ""
            case ChatResponse(message=str(text), metadata=metadata):
                yield Told("message", text), msgspec.json.encode(metadata).decode()
            case ChatResponse(reasoning=str(text), metadata=metadata):
                yield Told("reasoning", text), msgspec.json.encode(metadata).decode()
            case ChatResponse(metadata=metadata):
                yield Told("structured", entry.data), msgspec.json.encode(metadata).decode()
            case ToolCallRequest(call_id=call_id, name=name, arguments=arguments, metadata=metadata):
                yield Told("tool_call", arguments, "" if own_ids else call_id, name), str(metadata)
            case _:
                pass


def joined(told: Sequence[tuple[Told, str]]) -> list[tuple[Told, str]]:
    """The pieces of an answer that was continued as one."""
    whole: list[tuple[Told, str]] = []
    for each, metadata in told:
        if each.kind == "message" and whole and whole[-1][0].kind == "message":
            before, opaque = whole.pop()
            whole.append((Told("message", before.value + each.value), opaque + metadata))
        else:
            whole.append((each, metadata))
    return [each for each in whole if each[0] != ASKED]


def by_kind(told: Sequence[Told]) -> dict[str, list[Any]]:
    """All that was thought, said and called: for a model that thought again in the middle of a sentence."""
    kinds = ("reasoning", "message", "tool_call")
    texts = {kind: [each.value for each in told if each.kind == kind] for kind in kinds}
    return {
        "reasoning": ["".join(texts["reasoning"])],
        "message": ["".join(texts["message"])],
        "tool_call": texts["tool_call"],
    }


def as_expected(outcome: dict[str, Any], *, own_ids: bool) -> Told:
    match outcome["kind"]:
        case "tool_call":
            return Told("tool_call", outcome["arguments"], "" if own_ids else outcome["id"], outcome["name"])
        case "structured":
            return Told("structured", outcome["data"])
        case kind:
            return Told(kind, outcome["text"])


def is_within(value: Any, metadata: str) -> bool:
    """Whether the opaque texts of a recording stand in our metadata, byte for byte; `field` is the recorder's own."""
    match value:
        case str():
            return msgspec.json.encode(value).decode().strip('"') in metadata
        case dict():
            opaque = cast("dict[str, Any]", value)
            return all(is_within(below, metadata) for name, below in opaque.items() if name != "field")
        case list():
            return all(is_within(below, metadata) for below in cast("list[Any]", value))
        case _:
            return True


@pytest.mark.parametrize(
    ("provider", "case", "end"),
    [
        *((provider, case, "\n") for provider, cases in CASES.items() for case in cases),
        *((provider, cases[0], "\r\n") for provider, cases in CASES.items()),
    ],
)
def test_a_recorded_conversation_comes_out_as_it_was_expected(
    provider: str, case: str, end: str, tmp_path: Path
) -> None:
    recording = recording_of(provider, file_of(case))
    recorder, screen = MemoryRecorder(), Screen()
    exchanges = streamed(recording)

    replies = [reply_to(exchange, f"{case} {end} {i}", end=end) for i, exchange in enumerate(exchanges)]
    with Loopback(*replies) as server:
        outcomes = anyio.run(lambda: play(recording, recorder, screen, url=server.url, root=tmp_path))
        assert len(server.requests) == len(exchanges)

    own_ids = provider in OWN_IDS
    expected = [outcome for turn in recording["expected"]["turns"] for outcome in turn["outcomes"]]
    told = joined(list(recorded(recorder.entries, own_ids=own_ids)))
    says_nothing = not recording["expected"]["turns"][-1]["outcomes"]
    assert [outcome.ending for outcome in outcomes[:-1]] == ["answered"] * (len(outcomes) - 1)
    assert outcomes[-1].ending == ("empty" if says_nothing else "answered")
    wanted = [as_expected(outcome, own_ids=own_ids) for outcome in expected]
    if any(quirk.startswith("interleaving") for quirk in recording["expected"]["quirks"]):
        assert by_kind([each for each, _ in told]) == by_kind(wanted)
        return
    assert [each for each, _ in told] == wanted
    for (_, metadata), outcome in zip(told, expected, strict=True):
        opaque: dict[str, Any] = outcome.get("metadata") or {}
        assert [value for value in opaque.values() if not is_within(value, metadata)] == []
    calls = [entry for entry in recorder.entries if isinstance(entry, ToolCallRequest)]
    answered = [entry.request for entry in recorder.entries if isinstance(entry, ToolCallResponse)]
    assert [call.id for call in calls] == answered
    assert all(entry.finish in {"stop", "tools", "length"} for entry in recorder.entries if isinstance(entry, CycleEnd))


def test_recordings_of_every_provider_are_played() -> None:
    assert {*CASES, "script"} == set(PROVIDERS)
