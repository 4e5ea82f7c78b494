from __future__ import annotations

import json
import os
import re
import select
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from jp.config.entries import McpServerConfig
from jp.conversation.resource import (
    Annotations,
    AudioBlock,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
)
from jp.errors import ConfigurationError, JpError
from jp.mcp import session, transport
from jp.mcp.connection import Connection
from jp.mcp.definitions import Elicitation, Form, FormAnswer, RefusalError, ServerError, UrlRequest
from jp.mcp.session import CallResult
from mcp_connections import PATIENCE, Heard, calling, connected, server, with_server


def text_of(called: CallResult) -> str:
    (block,) = called.content
    assert isinstance(block, TextBlock)
    return block.text or ""


def message_of(error: pytest.ExceptionInfo[JpError]) -> str:
    return error.value.message


def test_a_server_lists_its_tools_and_runs_them(tmp_path: Path) -> None:
    async def work(connection: Connection, heard: Heard) -> None:
        listed = await connection.listing()
        echo = listed.tool("echo")
        assert echo is not None
        assert echo.description == "echo it"
        assert echo.parameters["properties"] == {"text": {"type": "string"}}
        assert echo.hints.sentences == ("changes nothing", "stays within what it knows")
        assert heard.listings == [listed]

        assert text_of(await connection.call(calling("echo", text="hé"))) == "hé"
        assert await connection.call(calling("fail")) == CallResult(
            content=(TextBlock(text="it did not work"),), is_error=True
        )
        assert text_of(await connection.call(calling("structured"))) == '{"degrees":21}'
        assert text_of(await connection.call(calling("half"))) == "a cut ? face"
        assert text_of(await connection.call(calling("noise"))) == "done"
        assert heard.logged[0] == "s: the server starts"
        assert heard.logged[-1] == "s: installing…"
        assert re.fullmatch(r"s: the server is ready after \d+\.\d\d s", heard.logged[1])
        assert heard.failures == []

    with_server(work, tmp_path)


def test_a_server_refuses_answers_with_nonsense_and_may_ask_for_no_tokens(tmp_path: Path) -> None:
    async def work(connection: Connection, heard: Heard) -> None:
        with pytest.raises(RefusalError) as refused:
            await connection.call(calling("refuse"))
        assert message_of(refused) == "the MCP server 's' says: not today"
        with pytest.raises(ServerError, match="not what the protocol says"):
            await connection.call(calling("no_answer"))
        assert "Sampling not supported" in text_of(await connection.call(calling("sample")))
        assert heard.failures == []

    with_server(work, tmp_path)


def test_all_kinds_of_content_arrive_and_what_is_linked_is_read(tmp_path: Path) -> None:
    async def work(connection: Connection, heard: Heard) -> None:
        (picture,) = (await connection.call(calling("picture"))).content
        assert isinstance(picture, ImageBlock)
        assert (picture.mime_type, (picture.blob or b"")[:4]) == ("image/png", b"\x89PNG")

        called = await connection.call(calling("everything"))
        annotations = Annotations(audience=("user",), priority=0.5)
        embedded = Resource(
            uri="mcp+s+memo://embedded", mime_type="text/plain", annotations=annotations, text="embedded words"
        )
        note = Resource(uri="mcp+s+memo://note", mime_type="text/plain", text="a note")
        assert called.content == (
            TextBlock(text="words"),
            AudioBlock(mime_type="audio/wav", blob=b"RIFF"),
            TextBlock(text="[image of type image/png: its content is not base64]"),
            ResourceBlock(resource=embedded),
            ResourceBlock(resource=note),
            ResourceLink(uri="mcp+s+memo://picture", name="a picture", mime_type="image/png"),
            ResourceLink(uri="mcp+s+memo://gone", name="gone"),
        )
        assert heard.logged[2:] == ["s: memo://gone: the MCP server 's' says: no resource memo://gone"]

    with_server(work, tmp_path)


def test_resources_are_read(tmp_path: Path) -> None:
    async def work(connection: Connection, _: Heard) -> None:
        assert await connection.read("memo://note") == (
            Resource(uri="mcp+s+memo://note", mime_type="text/plain", text="a note"),
        )
        assert [(item.uri, item.text) for item in await connection.read("memo://all")] == [
            ("mcp+s+memo://all", "one"),
            ("mcp+s+memo://all#2", "two"),
        ]
        (packed,) = await connection.read("memo://packed")
        (latin,) = await connection.read("memo://latin")
        assert (packed.text, packed.blob, latin.text, latin.blob) == ("words", None, None, b"\xe9")
        with pytest.raises(RefusalError, match="no resource memo://gone"):
            await connection.read("memo://gone")
        with pytest.raises(ServerError, match="not base64"):
            await connection.read("memo://broken")
        assert await connection.resources() == ("mcp+s+memo://note", "mcp+s+memo://picture")

    with_server(work, tmp_path)


def test_of_many_questions_at_once_a_few_are_asked_and_the_others_canceled(tmp_path: Path) -> None:
    others_are_canceled = anyio.Event()
    asked: list[Elicitation] = []

    async def elicit(elicitation: Elicitation) -> FormAnswer:
        asked.append(elicitation)
        await others_are_canceled.wait()
        return FormAnswer(action="decline")

    async def work(connection: Connection, _: Heard) -> None:
        call = calling("ask_often", elicit=elicit, progress=lambda _: others_are_canceled.set())
        answers = json.loads(text_of(await connection.call(call)))
        assert answers == [["cancel"] * 2, ["decline"] * 4]

    with_server(work, tmp_path)

    assert len(asked) == 4


def test_a_tool_says_how_far_it_is_and_asks_while_it_runs(tmp_path: Path) -> None:
    asked: list[Elicitation] = []
    shown: list[str] = []

    async def elicit(elicitation: Elicitation) -> FormAnswer:
        asked.append(elicitation)
        return FormAnswer(action="accept", values={"name": "Ada", "colour": "r"})

    async def work(connection: Connection, _: Heard) -> None:
        assert text_of(await connection.call(calling("steps", progress=shown.append))) == "done"
        answer = json.loads(text_of(await connection.call(calling("ask", elicit=elicit))))
        assert answer == {"action": "accept", "content": {"name": "Ada", "colour": "r"}}
        declined = json.loads(text_of(await connection.call(calling("ask_page"))))
        assert declined == {"action": "decline"}
        await connection.call(calling("ask_page", elicit=elicit))

    with_server(work, tmp_path)

    assert shown == ["step 1 (1 of 2)", "step 2 (2 of 2)"]
    form, page = asked
    assert isinstance(form, Form)
    assert [(field.question.id, field.kind, field.required) for field in form.fields] == [
        ("name", "text", True),
        ("age", "integer", False),
        ("member", "boolean", False),
        ("colour", "choice", True),
        ("days", "choices", False),
    ]
    assert page == UrlRequest(server="s", message="Sign in", url="https://example.com/login")


def test_a_list_that_changes_is_read_again(tmp_path: Path) -> None:
    async def work(connection: Connection, heard: Heard) -> None:
        before = await connection.listing()
        await connection.call(calling("change"))
        await heard.listed_again.wait()
        assert [tool.name for tool in before.tools] == ["change", "echo"]
        assert [tool.name for tool in heard.listings[-1].tools] == ["change", "echo", "fail"]
        assert await connection.listing() == before

    with_server(work, tmp_path, server(MCP_TOOLS="echo,change"))


def test_a_list_is_bounded_and_names_that_nobody_can_mean_are_omitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def few(connection: Connection, _: Heard) -> None:
        assert [tool.name for tool in (await connection.listing()).tools] == ["echo"]

    async def many(connection: Connection, _: Heard) -> None:
        with pytest.raises(ServerError, match="the MCP server 's' lists more than 100 tools"):
            await connection.listing()

    monkeypatch.setattr(session, "_MOST_TOOLS", 100)
    with_server(few, tmp_path, server(MCP_TOOLS=f"echo,,{'x' * 300},echo"))
    with_server(many, tmp_path, server(MCP_TOOLS=",".join(f"tool{number}" for number in range(101))))


def test_a_call_that_is_given_up_is_cancelled_and_the_session_goes_on(tmp_path: Path) -> None:
    trace = tmp_path / "trace"

    async def work(connection: Connection, _: Heard) -> None:
        await connection.listing()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.call, calling("hang"))
            while "tools/call" not in trace.read_text(encoding="utf-8"):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        assert text_of(await connection.call(calling("echo", text="still here"))) == "still here"

    with_server(work, tmp_path, server(MCP_TRACE=str(trace)))

    assert "notifications/cancelled" in trace.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("tool", "why"),
    [
        ("die", "the MCP server 's' ended with exit code 3; the last that it said: the disk is on fire"),
        ("flood", "the MCP server 's' was stopped: it sent a message of more than 1,000,000 bytes"),
    ],
)
def test_a_server_that_ends_in_mid_call_is_an_error_for_it_and_every_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, why: str
) -> None:
    monkeypatch.setattr(transport, "LONGEST_MESSAGE", 1_000_000)

    async def work(connection: Connection, heard: Heard) -> None:
        for name in (tool, "echo"):
            with pytest.raises(ServerError) as error:
                await connection.call(calling(name, text="x"))
            assert message_of(error) == why
        assert heard.failures == [why]

    with_server(work, tmp_path)


@pytest.mark.parametrize(
    ("start", "why"),
    [
        ("exit", "the MCP server 's' ended with exit code 1; the last that it said: there is no configuration"),
        ("hang", "the MCP server 's' did not start within 0.1 s"),
        ("refuse", "the MCP server 's' says: no licence"),
        ("noise", "the MCP server 's' was stopped: it printed more than 1,048,576 bytes that are no messages"),
        ("blanks", "the MCP server 's' was stopped: it printed more than 10,000 bytes that are no messages"),
    ],
)
def test_a_server_that_does_not_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str, why: str
) -> None:
    monkeypatch.setattr(transport, "GRACE_SECS", 0.05)
    if start == "blanks":  # of the shortest lines there would be a million
        monkeypatch.setattr(transport, "_MOST_NOISE", 10_000)
    config = McpServerConfig(
        command=server().command,
        arguments=server().arguments,
        environment={"MCP_START": start},
        startup_timeout_secs=0.1 if start == "hang" else 20,
    )

    async def work(connection: Connection, heard: Heard) -> None:
        with pytest.raises(JpError) as error:
            await connection.listing()
        assert message_of(error) == why
        assert heard.failures == [why]
        assert sum(map(len, heard.logged)) < 3000

    with_server(work, tmp_path, config)


def test_a_program_that_is_not_there_or_does_not_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program", encoding="utf-8")

    async def missing(connection: Connection, _: Heard) -> None:
        with pytest.raises(ConfigurationError, match=r"'no-such-server' of the MCP server 's' is not there"):
            await connection.listing()

    async def text(connection: Connection, _: Heard) -> None:
        with pytest.raises(ServerError, match=r"cannot be started.*Permission denied"):
            await connection.listing()

    with_server(missing, tmp_path, McpServerConfig(command="no-such-server"))
    with_server(text, tmp_path, McpServerConfig(command="./text"))


@pytest.mark.parametrize("config", [McpServerConfig(), McpServerConfig(command="a", url="http://localhost")])
def test_a_server_is_a_command_or_an_address(tmp_path: Path, config: McpServerConfig) -> None:
    async def work(connection: Connection, _: Heard) -> None:
        with pytest.raises(ConfigurationError, match=r"has (neither|both) a command"):
            await connection.listing()

    with_server(work, tmp_path, config)


def test_a_server_gets_what_programs_need_what_was_named_and_no_secret(tmp_path: Path) -> None:
    config = McpServerConfig(
        command=server().command,
        arguments=server().arguments,
        variables=("NOTES_TOKEN",),
        environment={"NOTES_PLACE": "here"},
    )
    environment = {"PATH": os.environ["PATH"], "NOTES_TOKEN": "t", "OTHER_API_KEY": "secret", "LANG": "C.UTF-8"}

    async def run() -> dict[str, object]:
        async with connected(config, tmp_path, environment=environment) as (connection, _):
            return json.loads(text_of(await connection.call(calling("environment"))))
        raise AssertionError

    found = anyio.run(run)

    assert found["directory"] == str(tmp_path)
    variables = found["variables"]
    assert isinstance(variables, dict)
    assert {name: variables[name] for name in ("NOTES_TOKEN", "NOTES_PLACE", "LANG")} == {
        "NOTES_TOKEN": "t",
        "NOTES_PLACE": "here",
        "LANG": "C.UTF-8",
    }
    assert "OTHER_API_KEY" not in variables


def test_nothing_of_a_server_outlives_its_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "GRACE_SECS", 0.05)
    os.mkfifo(tmp_path / "alive")
    alive = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)

    async def work(connection: Connection, _: Heard) -> None:
        called = await connection.call(calling("slow_to_end", path=str(tmp_path / "alive")))
        assert text_of(called) == "started"
        with pytest.raises(BlockingIOError):
            os.read(alive, 1)

    with_server(work, tmp_path)

    try:
        assert select.select([alive], [], [], PATIENCE)[0]
        assert os.read(alive, 1) == b""
    finally:
        os.close(alive)
