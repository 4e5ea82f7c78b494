from __future__ import annotations

import pytest

from jp.conversation.entries import AnyEntry, ChatRequest, RequestContext, Revert, TurnStart
from jp.conversation.resource import Payload, Resource
from jp.tool.toolbox import ON_CONTENT, STANDING, STANDING_SETTINGS, standing_names

NONE: frozenset[str] = frozenset()
PLAIN = RequestContext(provider="p", model="m", renderer=1)
OFFERED = RequestContext(provider="p", model="m", renderer=1, tools=Payload(text="[]"))
SNAPSHOT = ChatRequest(content="q", resources=(Resource(uri="file:///a", text="a"),))
DECLARED = ChatRequest(content="q", attachments=("file:a",))


@pytest.mark.parametrize(
    ("entries", "has_tools", "attaches", "expected"),
    [
        ((), False, False, NONE),
        ((TurnStart(id="t"), ChatRequest(content="q"), PLAIN), False, False, NONE),
        ((), True, False, STANDING),
        ((), False, True, ON_CONTENT),
        ((), True, True, STANDING),
        ((SNAPSHOT,), False, False, ON_CONTENT),
        ((DECLARED,), False, False, ON_CONTENT),
        ((TurnStart(id="t"), SNAPSHOT, Revert(entries=("t",))), False, False, ON_CONTENT),
        ((OFFERED, PLAIN), False, False, ON_CONTENT),
    ],
)
def test_what_a_request_offers_by_itself_stays_once_it_was_offered(
    entries: tuple[AnyEntry, ...],
    has_tools: bool,  # noqa: FBT001  a table
    attaches: bool,  # noqa: FBT001  a table
    expected: frozenset[str],
) -> None:
    assert standing_names(entries, has_tools=has_tools, attaches=attaches) == expected


def test_each_of_them_is_offered_and_runs_without_asking_but_what_runs_a_command() -> None:
    assert set(STANDING_SETTINGS) == STANDING
    assert {settings.enable for settings in STANDING_SETTINGS.values()} == {"always"}
    assert {settings.run for settings in STANDING_SETTINGS.values()} == {"unattended"}
    assert [name for name, settings in STANDING_SETTINGS.items() if settings.rules] == ["refresh_resource"]
