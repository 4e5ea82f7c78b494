from __future__ import annotations

import pytest

from jp.conversation.entries import AnyEntry, ChatRequest, RequestContext, Revert, TurnStart
from jp.conversation.resource import Payload, Resource
from jp.tool.toolbox import AUTOMATIC, AUTOMATIC_SETTINGS, CONTENT_TOOLS, automatic_names

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
        ((), True, False, AUTOMATIC),
        ((), False, True, CONTENT_TOOLS),
        ((), True, True, AUTOMATIC),
        ((SNAPSHOT,), False, False, CONTENT_TOOLS),
        ((DECLARED,), False, False, CONTENT_TOOLS),
        ((TurnStart(id="t"), SNAPSHOT, Revert(entries=("t",))), False, False, CONTENT_TOOLS),
        ((OFFERED, PLAIN), False, False, CONTENT_TOOLS),
    ],
)
def test_what_a_request_offers_by_itself_stays_once_it_was_offered(
    entries: tuple[AnyEntry, ...],
    has_tools: bool,  # noqa: FBT001  a table
    attaches: bool,  # noqa: FBT001  a table
    expected: frozenset[str],
) -> None:
    assert automatic_names(entries, has_tools=has_tools, attaches=attaches) == expected


def test_each_of_them_is_offered_and_runs_without_asking_but_what_runs_a_command() -> None:
    assert set(AUTOMATIC_SETTINGS) == AUTOMATIC
    assert {settings.enable for settings in AUTOMATIC_SETTINGS.values()} == {"always"}
    assert {settings.run for settings in AUTOMATIC_SETTINGS.values()} == {"unattended"}
    assert [name for name, settings in AUTOMATIC_SETTINGS.items() if settings.rules] == ["refresh_resource"]
