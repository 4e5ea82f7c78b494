"""What options, profiles and configuration come to: what is done, to which turns, and by whom."""

from __future__ import annotations

import pytest

from jp.app.compaction.order import (
    Budget,
    PolicyFlags,
    RangeFlags,
    SummaryOrder,
    configured_budget,
    configured_keep,
    listed_profiles,
    order_of,
    parse_bound,
    parse_budget,
    parse_keep,
    parse_turn_bounds,
)
from jp.compaction.overlays import (
    Ago,
    AtTurn,
    BeforeLast,
    Bound,
    Keep,
    KeepFor,
    KeepTokens,
    KeepTurns,
    RangeRequest,
    SinceCompaction,
    StreamShape,
    TurnFacts,
    resolve,
)
from jp.compaction.planning import Planner, PolicyRequest
from jp.compaction.projection import project
from jp.compaction.status_lines import PlainStatusFormatter
from jp.config.assignment import read_partial
from jp.config.layers import Layer, Origin
from jp.config.layers import resolve as resolved_settings
from jp.config.model import CompactionConfig, ProfileConfig, SummaryConfig, profiles_of
from jp.conversation.entries import ToolCallPolicy
from jp.conversation.thread import ToolCall
from jp.errors import ConfigurationError, UsageError
from logs import log, whole_turn

STRIP = ToolCallPolicy(policy="strip", request=True, response=True)
DIGEST = ToolCallPolicy(policy="digest", request=True, response=True)
OWN = ProfileConfig(summary=SummaryConfig(policy="summarize", model="ollama/small", instructions="Keep names."))
CONFIG = CompactionConfig(profiles={"own": OWN, "light": ProfileConfig(tool_calls="omit")})
TWENTY = StreamShape(
    turns=tuple(TurnFacts(number=number, id=f"t{number}", began=None, tokens=1) for number in range(20))
)


def resolved(**flags: str) -> tuple[int, int] | None:
    wish = order_of(CompactionConfig(), ranges=RangeFlags(**flags)).bounds
    found = resolve(wish, TWENTY, "tools", now=0.0)
    return None if found is None else (found.first, found.last)


def test_without_options_the_usual_profile_is_done_to_all_but_the_newest_turns() -> None:
    order = order_of(CompactionConfig())

    assert (order.name, order.wish) == ("default", PolicyRequest(reasoning=True, tools=DIGEST, resources=True))
    assert order.bounds == RangeRequest(keep_first=KeepTurns(0), keep_last=KeepTurns(3))
    assert resolved() == (0, 16)


def test_options_for_the_range_alone_narrow_the_profile_and_make_no_policy_of_their_own() -> None:
    order = order_of(CompactionConfig(default_profile="light"), ranges=RangeFlags(keep_last="5"))

    assert (order.name, order.wish) == ("light", PolicyRequest(reasoning=True))
    assert order.bounds.keep_last == KeepTurns(5)


def test_options_that_say_what_to_do_stand_in_place_of_every_profile() -> None:
    order = order_of(CONFIG, policies=PolicyFlags(reasoning=True))

    assert (order.name, order.wish) == ("", PolicyRequest(reasoning=True))
    with pytest.raises(UsageError, match="exclude each other"):
        order_of(CONFIG, profile="own", policies=PolicyFlags(summary=""))


@pytest.mark.parametrize(
    ("mode", "policy"),
    [
        ("strip", STRIP),
        ("digest", DIGEST),
        ("strip-requests", ToolCallPolicy(policy="strip", request=True)),
        ("strip-responses", ToolCallPolicy(policy="strip", response=True)),
        ("omit", ToolCallPolicy(policy="omit")),
    ],
)
def test_each_way_with_tools_is_a_policy(mode: str, policy: ToolCallPolicy) -> None:
    assert order_of(CONFIG, policies=PolicyFlags(tools=mode)).wish == PolicyRequest(tools=policy)


def test_a_profile_that_strips_requests_is_seen_in_the_view() -> None:
    config = CompactionConfig(profiles={"default": ProfileConfig(tool_calls="strip-requests")})
    entries = log(*whole_turn(0), *whole_turn(1))
    order = order_of(config, ranges=RangeFlags(keep_last="1"))

    plan = Planner(entries, PlainStatusFormatter(), {}, now=0.0).plan(order.wish, order.bounds)
    events = project([*entries, *plan.overlays], PlainStatusFormatter()).events

    assert [event.arguments for event in events if isinstance(event, ToolCall)] == [{}, {"command": "make test"}]
    assert "[compacted]" not in str(events)


@pytest.mark.parametrize("policies", [PolicyFlags(tools="all"), PolicyFlags(resources="old")])
def test_a_policy_that_nobody_knows_is_refused(policies: PolicyFlags) -> None:
    with pytest.raises(UsageError, match="cannot be"):
        order_of(CONFIG, policies=policies)


def test_a_summary_is_absent_or_asked_for_or_asked_for_with_a_context() -> None:
    absent, bare, valued = (
        order_of(CONFIG, policies=PolicyFlags(reasoning=True, summary=summary)) for summary in (None, "", "the API")
    )

    assert [order.wish.summary for order in (absent, bare, valued)] == [False, True, True]
    assert [order.summary.instructions for order in (absent, bare, valued)] == ["", "", "the API"]


@pytest.mark.parametrize(
    ("profile", "model", "expected"),
    [
        ("own", None, SummaryOrder(model="ollama/small", instructions="Keep names.")),
        ("own", "openai/x", SummaryOrder(model="openai/x", instructions="Keep names.")),
        ("heavy", None, SummaryOrder()),
        ("heavy", "openai/x", SummaryOrder(model="openai/x")),
        ("light", "openai/x", SummaryOrder(model="openai/x")),
    ],
)
def test_a_model_on_the_command_line_goes_before_the_profiles(
    profile: str, model: str | None, expected: SummaryOrder
) -> None:
    order = order_of(CONFIG, profile=profile, model=model)

    assert order.summary == expected
    assert order.wish.summary is (profile != "light")


def test_a_profile_of_the_users_own_stands_in_place_of_one_that_is_built_in() -> None:
    assert sorted(profiles_of(CONFIG)) == ["default", "heavy", "light", "own"]
    assert profiles_of(CONFIG)["light"] == ProfileConfig(tool_calls="omit")
    assert profiles_of(CompactionConfig(profiles={}))["default"].tool_calls == "digest"
    with pytest.raises(ConfigurationError, match="no compaction profile 'hevay'") as caught:
        order_of(CONFIG, profile="hevay")
    assert caught.value.hint == "did you mean 'heavy'?"
    with pytest.raises(ConfigurationError) as caught:
        order_of(CONFIG, profile="zzz")
    assert caught.value.hint == "there are: default, heavy, light, own"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"end": "15", "keep_first": "1"}, (1, 15)),
        ({"start": "4", "keep_last": "2"}, (4, 17)),
        ({"end": "15", "keep_first": "17"}, None),
        ({"start": "4", "keep_last": "16"}, None),
        ({"keep_first": "2", "keep_last": "2"}, (2, 17)),
        ({"end": "-0"}, (0, 19)),
        ({"end": "-3"}, (0, 16)),
        ({"start": "18"}, None),
        ({"start": "18", "end": "99"}, (18, 19)),
        ({"turn": "0"}, (0, 0)),
        ({"turn": "-1"}, (19, 19)),
        ({"turn": "2..5"}, (2, 5)),
        ({"turn": "17.."}, (17, 19)),
        ({"turn": "..-2"}, (0, 18)),
        ({"turn": ".."}, (0, 19)),
        ({"keep_last": "0"}, (0, 19)),
    ],
)
def test_an_end_that_is_given_is_not_kept_any_more_and_the_other_one_is(
    flags: dict[str, str], expected: tuple[int, int] | None
) -> None:
    assert resolved(**flags) == expected


@pytest.mark.parametrize(
    "flags",
    [
        RangeFlags(turn="1", start="1"),
        RangeFlags(turn="1", end="1"),
        RangeFlags(turn="1", keep_first="1"),
        RangeFlags(turn="1", keep_last="1"),
        RangeFlags(start="1", keep_first="1"),
        RangeFlags(end="1", keep_last="1"),
        RangeFlags(turn="5..2"),
        RangeFlags(end="last"),
    ],
)
def test_ranges_that_contradict_themselves_are_refused(flags: RangeFlags) -> None:
    with pytest.raises(UsageError):
        order_of(CONFIG, ranges=flags)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("0", AtTurn(0)),
        ("12", AtTurn(12)),
        ("-0", BeforeLast(0)),
        ("-3", BeforeLast(3)),
        ("5h", Ago(18_000)),
        (" last ", SinceCompaction()),
    ],
)
def test_a_bound_is_a_turn_a_time_or_the_last_compaction(text: str, bound: Bound) -> None:
    assert parse_bound(text, option="--from") == bound


@pytest.mark.parametrize("text", ["", "-", "--3", "1.5", "@1", "last-compaction", "²", "2..5"])
def test_what_is_no_bound_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(UsageError, match="--from cannot be") as caught:
        parse_bound(text, option="--from")
    assert "0 is the first" in caught.value.hint


@pytest.mark.parametrize("text", ["", "x", "1..=2", "-0", "1...3", "last", "5h"])
def test_what_is_no_range_of_turns_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--turn cannot be"):
        parse_turn_bounds(text, option="--turn")


@pytest.mark.parametrize(
    ("value", "keep"),
    [
        (4, KeepTurns(4)),
        ("4", KeepTurns(4)),
        ("2h", KeepFor(7200)),
        ("20k", KeepTokens(20_000)),
        ("1.5K tokens", KeepTokens(1_500)),
        ("300 tokens", KeepTokens(300)),
    ],
)
def test_what_is_kept_is_turns_or_a_time_or_tokens(value: int | str, keep: Keep) -> None:
    assert parse_keep(value, option="--keep") == keep
    assert configured_keep(value, key="k") == keep


@pytest.mark.parametrize("text", ["", "some", "1.5", "-1", "20kk", "k"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--keep cannot be"):
        parse_keep(text, option="--keep")


def test_what_the_configuration_cannot_mean_is_an_error_of_the_configuration() -> None:
    with pytest.raises(ConfigurationError, match="keep_last cannot be 'some'"):
        order_of(CompactionConfig(keep_last="some"))


@pytest.mark.parametrize(
    ("text", "budget", "of_1000"),
    [
        ("40k", Budget(tokens=40_000), 40_000),
        ("1.5k", Budget(tokens=1_500), 1_500),
        ("700 tokens", Budget(tokens=700), 700),
        (900, Budget(tokens=900), 900),
        ("25%", Budget(percent=25.0), 250),
    ],
)
def test_a_budget_is_a_number_of_tokens_or_a_share(text: int | str, budget: Budget, of_1000: int) -> None:
    assert parse_budget(text, option="--budget") == budget
    assert budget.of(1_000) == of_1000


@pytest.mark.parametrize("text", ["", "0", "0%", "120%", "much", "-3"])
def test_what_is_no_budget_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--budget cannot be"):
        parse_budget(text, option="--budget")
    with pytest.raises(ConfigurationError, match="a key cannot be"):
        configured_budget(text, key="a key")


def test_a_profile_says_its_budget_unless_an_option_does() -> None:
    config = CompactionConfig(profiles={"slim": ProfileConfig(reasoning="strip", budget="60%")})

    assert order_of(config, profile="slim").budget == Budget(percent=60.0)


def test_profiles_are_listed_with_where_they_come_from() -> None:
    said = {"conversation": {"compaction": {"profiles": {"slim": {"reasoning": "strip"}}}}}
    own = Layer(origin=Origin(kind="user", where="config.toml"), change=read_partial(said))
    listed = {one.name: (one.source, one.is_default) for one in listed_profiles(resolved_settings([own]))}

    assert listed["default"] == ("built in", True)
    assert listed["slim"][0] != "built in"
