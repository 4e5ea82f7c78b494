from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from jp.conversation.resource import Resource, ResourceBlock, TextBlock
from jp.conversation.thread import (
    AssistantText,
    Parameters,
    Thread,
    ToolCall,
    ToolDefinition,
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
)
from jp.provider.script.provider import Casting, filled, input_tokens
from jp.provider.script.scenario import Body, Call, Failure, Reply, Scenario, When, body_of

FALLBACK = Reply(text="fallback")


def body(*events: ViewEvent) -> Body:
    return body_of(Thread(model="script/demo", system=("Be kind.",), tools=(), events=events))


def user(text: str, turn: int = 0, *, synthetic: bool = False) -> UserText:
    return UserText(text=text, turn=turn, synthetic=synthetic)


def said(text: str, turn: int = 0, *, synthetic: bool = False) -> AssistantText:
    return AssistantText(text=text, turn=turn, synthetic=synthetic)


def called(name: str = "read", turn: int = 0) -> ToolCall:
    return ToolCall(call_id="1", name=name, arguments={}, turn=turn, origin="e")


def result(text: str, name: str = "read", turn: int = 0, *, is_error: bool = False) -> ToolResult:
    content = (TextBlock(text=text),)
    return ToolResult(call="e", call_id="1", name=name, content=content, turn=turn, is_error=is_error)


def attached(uri: str, name: str | None = None, turn: int = 0) -> UserResource:
    return UserResource(resource=Resource(uri=uri, name=name, text="content"), turn=turn)


def chosen(replies: Sequence[Reply], *events: ViewEvent) -> int | None:
    cue = Casting(Scenario(reply=tuple(replies)), body(*events)).cue()
    return None if cue is None else cue.index


def fits(when: When, *events: ViewEvent) -> bool:
    return chosen([Reply(when=when, text="x")], *events) == 0


RESULT = (user("Why?"), called(), result("bug in line 3"))


@pytest.mark.parametrize(
    ("when", "events", "expected"),
    [
        (When(), (user("Why?"),), True),
        (When(), RESULT, True),
        (When(), (), True),
        (When(exact="Why?"), (user("Why?"),), True),
        (When(exact="Why"), (user("Why?"),), False),
        (When(contains="hy"), (user("Why?"),), True),
        (When(contains="HY"), (user("Why?"),), False),
        (When(regex="(?i)^WHY"), (user("Why?"),), True),
        (When(regex="^hy"), (user("Why?"),), False),
        (When(contains="W", regex="z"), (user("Why?"),), False),
        (When(contains="first"), (user("first"), said("x"), user("second", 1)), False),
        (When(contains="Why"), RESULT, False),
        (When(contains="bug"), RESULT, False),
        (When(tool="read"), RESULT, True),
        (When(tool="*"), RESULT, True),
        (When(tool="write"), RESULT, False),
        (When(tool="read"), (user("read"),), False),
        (When(tool="read", contains="bug"), RESULT, True),
        (When(tool="read", contains="Why"), RESULT, False),
        (When(tool="read", error=False), RESULT, True),
        (When(tool="read", error=True), RESULT, False),
        (When(tool="read", error=True), (user("x"), called(), result("no", is_error=True)), True),
        (When(tool="b", contains="two"), (user("x"), called(), result("one", "a"), result("two", "b")), True),
        (When(tool="b", contains="one"), (user("x"), called(), result("one", "a"), result("two", "b")), False),
        (When(tool="read"), (*RESULT, user("Stop.")), False),
        (When(exact="Stop."), (*RESULT, user("Stop.")), True),
        (When(turn=0), RESULT, True),
        (When(turn=1), RESULT, False),
        (When(turn=1), (user("a"), said("b"), user("c", 1)), True),
        (When(contains=""), (attached("file:///a"),), True),
    ],
)
def test_a_condition_holds_or_not(when: When, events: Sequence[ViewEvent], *, expected: bool) -> None:
    assert fits(when, *events) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("notes", True),
        ("file:///w/src/my%20app.py", True),
        ("my app.py", True),
        ("src/my app.py", True),
        ("/w/src/my app.py", True),
        ("app.py", False),
        ("src", False),
    ],
)
def test_a_resource_is_known_by_its_name_its_uri_or_the_end_of_its_path(name: str, *, expected: bool) -> None:
    snapshot = attached("file:///w/src/my%20app.py", "notes")

    assert fits(When(resource=name), snapshot, user("x")) is expected


def test_only_what_this_turn_attached_counts_also_after_a_tool() -> None:
    when = When(resource="a.py")

    assert fits(when, attached("file:///a.py"), user("x"), called(), result("y"))
    assert not fits(when, attached("file:///a.py"), user("x"), said("y"), user("z", 1))


def test_results_of_an_earlier_cycle_are_no_prompt_any_more() -> None:
    events = (user("x"), called(), result("one"), called(), result("two"))

    assert not fits(When(tool="read", contains="one"), *events)
    assert fits(When(tool="read", contains="two"), *events)


def test_the_first_reply_that_fits_is_given() -> None:
    replies = [Reply(when=When(contains="zzz"), text="a"), Reply(when=When(contains="h"), text="b"), FALLBACK]

    assert chosen(replies, user("Why?")) == 1
    assert chosen(replies, user("No.")) == 2


def test_without_a_reply_that_fits_there_is_none() -> None:
    assert chosen([Reply(when=When(contains="zzz"), text="a")], user("Why?")) is None


def test_how_often_a_reply_was_used_is_counted_in_the_conversation() -> None:
    replies = [Reply(times=2, text="a"), FALLBACK]
    one = (user("x"), said("a"))
    two = (*one, user("x", 1), said("a", 1))

    assert chosen(replies, user("x")) == 0
    assert chosen(replies, *one, user("x", 1)) == 0
    assert chosen(replies, *two, user("x", 2)) == 1


def test_calls_and_their_results_count_as_uses_too() -> None:
    replies = [Reply(times=1, calls=(Call(name="read"),)), Reply(times=1, text="done"), FALLBACK]

    assert chosen(replies, user("x")) == 0
    assert chosen(replies, user("x"), called(), result("y")) == 1
    assert chosen(replies, user("x"), called(), result("y"), said("done"), user("z", 1)) == 2


def test_an_answer_that_no_reply_gave_counts_for_none() -> None:
    replies = [Reply(when=When(contains="x"), times=1, text="a")]

    assert chosen(replies, user("y"), said("from another model"), user("x", 1)) == 0


def test_words_of_jp_itself_are_no_prompt_and_no_answer() -> None:
    replies = [Reply(when=When(turn=0), times=1, text="a"), FALLBACK]
    summary = (user("[summary]", synthetic=True), said("They spoke.", synthetic=True))

    assert chosen(replies, *summary, user("x", 0)) == 0
    assert chosen([Reply(when=When(exact="x"), text="a")], user("x"), user("[reference]", synthetic=True)) == 0


LONG = Reply(text="one two three", error=Failure(kind="cut", after=4, attempts=1))
CONTINUE = user("Continue.", synthetic=True)


def test_an_answer_that_was_cut_goes_on_where_it_stopped() -> None:
    cue = Casting(Scenario(reply=(LONG,)), body(user("x"), said("one "), CONTINUE)).cue()

    assert cue is not None
    assert (cue.index, cue.begun) == (0, "one ")


def test_going_on_is_the_same_use() -> None:
    once = Reply(times=1, text=LONG.text)

    assert chosen([once, FALLBACK], user("x"), said("one "), CONTINUE) == 0
    assert chosen([once, FALLBACK], user("x"), said("one "), CONTINUE, said("two"), CONTINUE) == 0
    assert chosen([once, FALLBACK], user("x"), said("one "), CONTINUE, said("two three"), user("x", 1)) == 1
    twice = replace(once, times=2)
    assert chosen([twice, FALLBACK], user("x"), said("one "), CONTINUE, said("two three"), user("x", 1)) == 0


@pytest.mark.parametrize("begun", ["other", "one two three"])
def test_only_a_reply_that_has_more_to_say_can_go_on(begun: str) -> None:
    assert chosen([Reply(text=LONG.text)], user("x"), said(begun), CONTINUE) is None


def test_a_reply_whose_text_is_complete_can_still_make_its_calls() -> None:
    reply = Reply(text="one", calls=(Call(name="read"),))

    assert chosen([reply], user("x"), said("one"), CONTINUE) == 0


def test_a_reply_that_was_cut_after_its_last_word_can_still_end_well() -> None:
    reply = Reply(text="one", error=Failure(kind="cut", after=3, attempts=1))

    assert chosen([reply], user("x"), said("one"), CONTINUE) == 0


def test_a_reply_for_answers_that_were_begun_is_given_only_then_and_whole() -> None:
    replies = [Reply(when=When(begun=True), times=1, text="part two"), Reply(text="part one", stop="length")]

    assert chosen(replies, user("x")) == 1
    cue = Casting(Scenario(reply=tuple(replies)), body(user("x"), said("part one"), CONTINUE)).cue()
    assert cue is not None
    assert (cue.index, cue.begun) == (0, "")
    assert chosen(replies, user("x"), said("part one"), CONTINUE, said("part two"), CONTINUE) is None
    earlier = (user("x"), said("part one"), CONTINUE, said("part two"), user("x", 1))
    assert chosen(replies, *earlier) == 1
    assert chosen(replies, *earlier, said("part one", 1), CONTINUE) is None


def test_the_place_of_an_exchange_tells_attempts_apart() -> None:
    cue = Casting(Scenario(reply=(FALLBACK,)), body(user("x"), said("a"), user("y", 1))).cue()

    assert cue is not None
    assert cue.place == 1


CUT = "file [[cut:n0nce:0123abcd:+9]]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{user}}!", "Why?!"),
        ("{{result}}", "bug {{user}}\nfile [[cut:n0nce:0123abcd:+9]]"),
        ("{{resources}}", "notes, b c.py"),
        ("{{turn}}", "3"),
        ("{{uri}}", "file:///w/b%20c.py"),
        ("{{handle}}", "0123abcd"),
        ("{{ user }} {{usr}} {user}", "{{ user }} {{usr}} {user}"),
    ],
)
def test_placeholders_are_filled_once_and_nothing_else_is(text: str, expected: str) -> None:
    output = ToolResult(
        call="e",
        call_id="1",
        name="read",
        content=(TextBlock(text="bug {{user}}"), ResourceBlock(resource=Resource(uri="file:///f", text=CUT))),
        turn=3,
    )
    request = body(attached("file:///a", "notes", 3), attached("file:///w/b%20c.py", None, 3), user("Why?", 3), output)
    cue = Casting(Scenario(reply=(FALLBACK,)), request).cue()

    assert cue is not None
    assert filled(text, cue.prompt, request) == expected


def test_without_a_result_or_resources_placeholders_are_empty() -> None:
    request = body(user("x"))
    cue = Casting(Scenario(reply=(FALLBACK,)), request).cue()

    assert cue is not None
    assert filled("[{{result}}{{handle}}{{resources}}{{uri}}]", cue.prompt, request) == "[]"


def test_tokens_are_those_of_the_request_up_to_the_prompt() -> None:
    asked, begun = body(user("x" * 400)), body(user("x" * 400), said("one "), CONTINUE)
    cue = Casting(Scenario(reply=(LONG,)), begun).cue()

    assert cue is not None
    assert filled("{{tokens}}", cue.prompt, begun) == str(input_tokens(asked, 1))
    assert 100 < input_tokens(asked, 1) < 150
    assert input_tokens(begun, 3) > input_tokens(asked, 1)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ((user("y" * 200),), f"in turn 0 the user says '{'y' * 99}…'"),
        ((user("x", 0), said("a"), user("y", 1)), "in turn 1 the user says 'y'"),
        (
            (user("y"), called(), result("one", "a"), result("two", "b")),
            "in turn 0 tool 'a' answers 'one' and tool 'b' answers 'two'",
        ),
        ((user("y"), said("half"), CONTINUE), "in turn 0 the answer 'half' was cut off"),
    ],
)
def test_what_no_reply_fits_is_explained(events: Sequence[ViewEvent], expected: str) -> None:
    replies = (
        Reply(when=When(contains="x", turn=0), times=1, text="a"),
        Reply(when=When(tool="c", error=False), text="b"),
        Reply(when=When(begun=True, exact="never"), text="c"),
    )
    casting = Casting(Scenario(reply=replies), body(*events))

    assert casting.cue() is None
    used = 1 if "turn 1" in expected else 0
    wants = (
        f"the replies want: reply[0] contains = 'x', turn = 0 (used {used} of 1 times); "
        "reply[1] tool = 'c', error = False; reply[2] exact = 'never', begun = True"
    )
    assert casting.explain() == (expected, wants)


@pytest.mark.parametrize("choice", ["required", "read"])
def test_an_answer_that_lacks_a_demanded_call_is_not_called_cut(choice: str) -> None:
    thread = Thread(
        model="script/demo",
        system=(),
        tools=(ToolDefinition(name="read", description="", parameters={}),),
        events=(user("x"), said("Hello."), user("Make the call.", synthetic=True)),
        parameters=Parameters(tool_choice=choice),
    )
    casting = Casting(Scenario(reply=(Reply(text="Hello."),)), body_of(thread))

    assert casting.cue() is None
    assert casting.explain() == (
        "in turn 0 the answer 'Hello.' called no tool, and the call was demanded again",
        "the replies want: reply[0] anything; one with `begun = true` answers the demand",
    )


@pytest.mark.parametrize(("choice", "tools"), [("auto", 1), ("none", 1), ("required", 0)])
def test_a_call_that_nobody_demands_is_not_missed(choice: str, tools: int) -> None:
    thread = Thread(
        model="script/demo",
        system=(),
        tools=(ToolDefinition(name="read", description="", parameters={}),) * tools,
        events=(user("x"), said("Hello."), CONTINUE),
        parameters=Parameters(tool_choice=choice),
    )

    question, hint = Casting(Scenario(reply=(Reply(text="Hello."),)), body_of(thread)).explain()

    assert question == "in turn 0 the answer 'Hello.' was cut off"
    assert "demand" not in hint


def test_a_demand_that_was_not_repeated_is_the_user_s_question() -> None:
    thread = Thread(
        model="script/demo",
        system=(),
        tools=(ToolDefinition(name="read", description="", parameters={}),),
        events=(user("y"),),
        parameters=Parameters(tool_choice="required"),
    )
    casting = Casting(Scenario(reply=(Reply(when=When(exact="x"), text="Hello."),)), body_of(thread))

    assert casting.cue() is None
    assert casting.explain() == ("in turn 0 the user says 'y'", "the replies want: reply[0] exact = 'x'")


def test_a_reply_without_conditions_wants_anything() -> None:
    casting = Casting(Scenario(reply=(Reply(times=1, text="a"),)), body(user("x"), said("a"), user("y", 1)))

    assert casting.cue() is None
    assert casting.explain()[1] == "the replies want: reply[0] anything (used 1 of 1 times)"
