from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from doubles import MemoryRecorder
from jp.config.entries import ResultMode, RuleConfig, ToolConfig
from jp.conversation.entries import Facts, JsonObject, ToolCallRequest
from jp.conversation.resource import TextBlock
from jp.conversation.thread import ToolDefinition
from jp.tool.base import ConfiguredTool, ToolInvocation, ToolOutput
from jp.tool.consent import (
    Allowed,
    Answers,
    Asking,
    Consent,
    Decision,
    Declined,
    Denied,
    Edited,
    Given,
    Granted,
    Nobody,
    Proposal,
    Replaced,
)
from jp.tool.rules import CheckedCall

PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "lines": {"type": "integer", "default": 1}},
    "required": ["path"],
    "additionalProperties": False,
}
OUTPUT = ToolOutput(content=(TextBlock(text="secret"),), facts=Facts(path="a"))

CallReply = Granted | Declined | Edited | Nobody
ResultReply = Granted | Declined | Replaced | Nobody


class Write:
    """A tool that says what it would do."""

    definition = ToolDefinition(name="write", description="", parameters=PARAMETERS)

    def __init__(self, *, fails: bool = False, hangs: bool = False) -> None:
        self._fails = fails
        self._hangs = hangs

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        raise NotImplementedError

    async def preview(self, invocation: ToolInvocation) -> str | None:
        if self._fails:
            raise ZeroDivisionError
        if self._hangs:
            await anyio.sleep_forever()
        return f"would write {invocation.arguments['path']} in {invocation.root}"


class Person:
    """Answers one question after the other, and keeps what was asked."""

    def __init__(self, *replies: CallReply, results: tuple[ResultReply, ...] = ()) -> None:
        self._replies = list(replies)
        self._results = list(results)
        self.asked: list[tuple[str, JsonObject, str | None]] = []

    async def approve(self, proposal: Proposal) -> CallReply:
        return self._reply("approve", proposal)

    async def edit(self, proposal: Proposal) -> CallReply:
        return self._reply("edit", proposal)

    async def deliver(self, call: ToolCallRequest, output: ToolOutput) -> ResultReply:
        self.asked.append(("deliver", {}, call.name))
        return self._results.pop(0)

    async def edit_result(self, call: ToolCallRequest, output: ToolOutput) -> ResultReply:
        self.asked.append(("edit_result", {}, call.name))
        return self._results.pop(0)

    def _reply(self, how: str, proposal: Proposal) -> CallReply:
        assert proposal.problems({"path": "a"}) == []
        assert proposal.problems({"pth": "a"}) == ["'path' is missing", "'pth' is not known; did you mean 'path'?"]
        self.asked.append((how, proposal.arguments, proposal.preview))
        return self._replies.pop(0)


def checked(settings: ToolConfig | None = None, path: str = "a", tool: Write | None = None) -> CheckedCall:
    call = ToolCallRequest(id="e1", call_id="x", name="write", arguments={"path": path})
    configured = ConfiguredTool(tool=tool or Write(), settings=settings or ToolConfig())
    return CheckedCall(call=call, configured=configured, arguments={"path": path, "lines": 1})


def invocation(call: CheckedCall) -> ToolInvocation:
    return ToolInvocation(arguments=call.arguments, root=Path("/w"))


def decided(consent: Consent, call: CheckedCall) -> Decision | Asking:
    return anyio.run(consent.known, call, Path("/w"))


def asked(consent: Consent, call: CheckedCall, *, edits_first: bool = False) -> CheckedCall | Denied:
    asking = Asking(checked=call, edits_first=edits_first)
    return anyio.run(consent.ask, asking, MemoryRecorder(), invocation)


def given(consent: Consent, mode: ResultMode | None, output: ToolOutput = OUTPUT) -> Given:
    return anyio.run(consent.deliver, checked(ToolConfig(result=mode)), output)


def text_of(result: Given) -> str:
    (block,) = result.output.content
    assert isinstance(block, TextBlock)
    return block.text or ""


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (ToolConfig(run="unattended"), Allowed()),
        (ToolConfig(run="skip"), Denied(cause="skipped")),
        (ToolConfig(rules=(RuleConfig(arguments={"path": "src/**"}, run="unattended"),)), Allowed()),
    ],
)
def test_settings_and_rules_decide_without_asking(settings: ToolConfig, expected: Decision) -> None:
    assert decided(Consent(Answers(), None), checked(settings, "src/a")) == expected


def test_what_is_not_decided_is_asked_and_what_is_to_be_edited_is_edited_first() -> None:
    consent = Consent(Answers(), None)
    rules = (RuleConfig(arguments={"path": "src/**"}, run="unattended"),)

    for settings, edits_first in (
        (ToolConfig(), False),
        (ToolConfig(run="edit"), True),
        (ToolConfig(rules=rules), False),
    ):
        call = checked(settings)
        assert decided(consent, call) == Asking(checked=call, edits_first=edits_first)
    assert decided(Consent(Answers(approve_all=True), None), checked(ToolConfig(run="edit"))) == Allowed()


def test_rules_see_what_links_on_the_disk_make_of_a_path() -> None:
    rules = (RuleConfig(arguments={"path": "src/**"}, run="unattended"),)
    consent = Consent(Answers(), None, real=lambda path: path.replace("/src/link", "/keys"))

    assert decided(consent, checked(ToolConfig(rules=rules), "src/a")) == Allowed()
    assert isinstance(decided(consent, checked(ToolConfig(rules=rules), "src/link/a")), Asking)


def test_a_person_says_yes_or_no_and_sees_what_would_be_done() -> None:
    person = Person(Granted(), Declined(reason="not on Fridays"), Nobody())
    consent = Consent(Answers(), person)
    call = checked()

    assert asked(consent, call) == replace(call, is_agreed=True)
    assert asked(consent, checked()) == Denied(cause="declined", reason="not on Fridays")
    assert asked(consent, checked()) == Denied(cause="nobody")
    assert person.asked == [("approve", {"path": "a", "lines": 1}, "would write a in /w")] * 3


def test_where_nobody_can_be_asked_the_call_is_denied() -> None:
    assert asked(Consent(Answers(), None), checked()) == Denied(cause="nobody")


@pytest.mark.parametrize("tool", [Write(fails=True), Write(hangs=True)])
def test_a_preview_that_fails_or_does_not_come_is_none(tool: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jp.tool.consent.PREVIEW_SECS", 0)
    person = Person(Granted())

    assert isinstance(asked(Consent(Answers(), person), checked(tool=tool)), CheckedCall)
    assert person.asked == [("approve", {"path": "a", "lines": 1}, None)]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [(Granted(remember=True), True), (Declined(remember=True), False)],
)
def test_an_answer_that_is_to_be_remembered_answers_the_same_call_and_no_other(
    reply: Granted | Declined, *, expected: bool
) -> None:
    person = Person(reply, Nobody())
    consent = Consent(Answers(), person)

    for _ in range(2):
        answer = asked(consent, checked())
        assert isinstance(answer, CheckedCall) == expected
    assert asked(consent, checked(path="b")) == Denied(cause="nobody")
    assert len(person.asked) == 2


def test_arguments_that_a_person_changed_are_asked_about_again_and_then_run() -> None:
    person = Person(Edited(arguments={"path": "b"}), Granted())

    answer = asked(Consent(Answers(), person), checked())

    assert isinstance(answer, CheckedCall)
    assert (answer.arguments, answer.is_edited) == ({"path": "b", "lines": 1}, True)
    assert answer.call.arguments == {"path": "a"}
    assert [(how, preview) for how, _, preview in person.asked] == [
        ("approve", "would write a in /w"),
        ("approve", "would write b in /w"),
    ]


def test_a_call_that_is_to_be_edited_opens_the_editor_once() -> None:
    person = Person(Edited(arguments={"path": "b"}), Declined())

    assert asked(Consent(Answers(), person), checked(), edits_first=True) == Denied(cause="declined")
    assert [how for how, _, _ in person.asked] == ["edit", "approve"]


@pytest.mark.parametrize(
    ("mode", "answers"),
    [(None, Answers(deny_all=True)), ("unattended", Answers()), ("ask", Answers(approve_all=True))],
)
def test_a_result_is_given_where_nothing_has_to_be_asked(mode: ResultMode | None, answers: Answers) -> None:
    assert given(Consent(answers, None), mode) == Given(output=OUTPUT)


@pytest.mark.parametrize(
    ("mode", "answers", "why", "denied"),
    [
        ("skip", Answers(approve_all=True), "the configuration says that results of 'write' are skipped", False),
        ("ask", Answers(deny_all=True), "the user denied everything", True),
        ("edit", Answers(), "nobody can be asked", True),
    ],
)
def test_a_result_that_is_kept_back_is_not_told(mode: ResultMode, answers: Answers, why: str, *, denied: bool) -> None:
    result = given(Consent(answers, None), mode, ToolOutput(content=OUTPUT.content, is_error=True, facts=OUTPUT.facts))

    assert why in text_of(result)
    assert (result.denied, result.output.is_error, result.output.facts) == (denied, True, None)
    assert "secret" not in str(result.output)


def test_a_person_gives_a_result_keeps_it_back_or_changes_it() -> None:
    person = Person(results=(Granted(), Declined(reason="private"), Replaced(text="***"), Nobody()))
    consent = Consent(Answers(), person)

    assert given(consent, "ask") == Given(output=OUTPUT)
    assert "The user said: private" in text_of(given(consent, "edit"))
    assert text_of(given(consent, "edit")) == "***"
    assert given(consent, "ask").denied
    assert [how for how, _, _ in person.asked] == ["deliver", "edit_result", "edit_result", "deliver"]
