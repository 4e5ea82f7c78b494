from __future__ import annotations

from base64 import b64encode
from contextlib import aclosing

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from doubles import ScriptedProvider, Step, answer
from jp.conversation.entries import Usage
from jp.conversation.thread import Thread, UserText
from jp.provider.base import Part, Provider, UsageReport, WireRequest
from jp.provider.errors import ProviderError
from jp.turn.measuring import MeasuringProvider, prompt_size

THREAD = Thread(model="m", system=("Be brief.",), tools=(), events=(UserText(text="Hi", turn=0),))
REPORT = UsageReport(Usage(input=10, cache_read=20, cache_write=5, output=3))


def measuring(*steps: Step) -> MeasuringProvider:
    return MeasuringProvider(ScriptedProvider([*steps]))


async def taken(provider: Provider, most: int = 100) -> list[Part]:
    found: list[Part] = []
    async with aclosing(provider.stream(provider.render(THREAD))) as parts:
        async for part in parts:
            found.append(part)
            if len(found) == most:
                break
    return found


def test_a_report_is_kept_beside_the_estimate_of_the_same_request() -> None:
    provider = measuring(UsageReport(Usage(input=1)), REPORT, *answer("a"))

    assert anyio.run(taken, provider) == anyio.run(
        taken, ScriptedProvider([UsageReport(Usage(input=1)), REPORT, *answer("a")])
    )
    (measured,) = provider.measured
    size = prompt_size(provider.render(THREAD).sections)
    assert (measured.model, measured.estimated, measured.reported) == ("m", size.total, 35)


def test_an_answer_that_breaks_off_after_its_report_teaches_too() -> None:
    left = measuring(REPORT, *answer("a"))
    anyio.run(taken, left, 1)

    failed = measuring(REPORT, ProviderError("gone", kind="cut"))
    with pytest.raises(ProviderError):
        anyio.run(taken, failed)

    assert len(left.measured) == len(failed.measured) == 1


def test_pictures_teach_nothing_of_words() -> None:
    provider = measuring(REPORT, *answer("a"))
    picture = b64encode(b"\x89PNG\r\n\x1a\n" + bytes(900)).decode()
    request = provider.render(THREAD)
    request = replace(request, sections=replace(request.sections, tools=(f'"{picture}"'.encode(),)))

    def render(_: Thread) -> WireRequest:
        return request

    provider.inner.__dict__["render"] = render
    anyio.run(taken, provider)

    assert provider.measured == []


def test_without_a_report_nothing_is_learned() -> None:
    provider = measuring(*answer("a"))
    anyio.run(taken, provider)

    assert provider.measured == []


def test_it_is_the_provider_that_it_measures() -> None:
    provider = measuring()

    assert (provider.id, provider.renderer) == (provider.inner.id, provider.inner.renderer)
    assert msgspec.json.encode(provider.render(THREAD).body) == msgspec.json.encode(provider.inner.render(THREAD).body)
    assert provider.locate_rejected(THREAD, ProviderError("x", kind="rejected_reasoning")) == ()
