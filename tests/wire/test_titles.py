"""Titles that a cheap model gives to conversations, while a turn of them runs against a server on this machine."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import patient
from anthropic_wire import ending, start, text
from forked import prepare, run_jp
from loopback import JSON, Loopback, Received, Reply, sse
from running import Result
from stage import make_workspace
from terminal import CTRL_C, jp_at_terminal

ALWAYS = "conversation.title.generate.auto=true"
ENV = {"ANTHROPIC_API_KEY": "sk-ant-test-0123456789"}

PATIENT = Path(patient.__file__)


def saying(words: str) -> Reply:
    return Reply(body=sse(start(), *text(0, words), *ending()))


def titled(title: str) -> Reply:
    return saying(json.dumps({"title": title}))


def is_about_title(request: Received) -> bool:
    return request.json()["model"] == "claude-haiku-5-5"


class Server(Loopback):
    """Answers questions with `answer` and requests for a title with `title`, in whatever order they come."""

    def __init__(self, title: Reply | Callable[[Received], Reply], answer: Reply | None = None) -> None:
        self._title = title
        self._answer_reply = answer or saying("Hello")
        super().__init__(otherwise=self._choose)

    @property
    def title_requests(self) -> list[dict[str, Any]]:
        return [request.json() for request in self.requests if is_about_title(request)]

    def _choose(self, request: Received) -> Reply:
        if not is_about_title(request):
            return self._answer_reply
        return self._title if isinstance(self._title, Reply) else self._title(request)


def arguments(server: Loopback, *more: str) -> list[str]:
    base = f"providers.llm.anthropic.base_url={server.url}"
    retries = "assistant.request.max_retries=0"
    return ["query", "--cfg", base, "--cfg", retries, "--model", "anthropic/claude-sonnet-5-5", *more]


def ask(server: Loopback, cwd: Path, *more: str) -> Result:
    return run_jp(*arguments(server, *more), cwd=cwd, env=ENV)


def metadata_files(root: Path) -> list[Path]:
    return sorted((root / ".jp" / "conversations").glob("*/metadata.json"))


def titles(root: Path) -> list[str | None]:
    return [json.loads(path.read_text(encoding="utf-8")).get("title") for path in metadata_files(root)]


def in_log(root: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in root.rglob("events.jsonl"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "work")


def test_a_new_conversation_gets_a_title_beside_its_answer(root: Path) -> None:
    with Server(titled("\x1b[31mWhy the lexer loops.\n")) as server:
        result = ask(server, root, "--cfg", ALWAYS, "-v", "why does the lexer loop?")

    (request,) = server.title_requests
    assert (result.code, result.stdout) == (0, "Hello\n")
    assert titles(root) == ["Why the lexer loops"]
    assert "log: title: 'Why the lexer loops'\n" in result.stderr
    assert re.search(r"log: 20 tokens in, 10 out, \$0\.00\d\d; of these for the title: 10 in, 5 out\n", result.stderr)
    assert [is_about_title(each) for each in server.requests] == [False, True]
    assert "why does the lexer loop?" in json.dumps(request["messages"])
    assert request["output_config"]["format"]["type"] == "json_schema"
    assert (request["thinking"], "tools" in request) == ({"type": "disabled"}, False)
    assert "You give conversations their titles" not in in_log(root)
    assert in_log(root).count('"cycle_end"') == 1


def test_the_title_is_asked_for_once_the_answer_begins(root: Path) -> None:
    gate = threading.Event()
    body = saying("Hello").body

    def title(request: Received) -> Reply:
        gate.set()
        return titled("Beside it")

    with Server(title, Reply(body=body, gates={body.index(b"event: content_block_stop"): gate})) as server:
        result = ask(server, root, "--cfg", ALWAYS, "hello")

    assert (result.code, result.stdout) == (0, "Hello\n")
    assert titles(root) == ["Beside it"]


def test_a_slow_title_is_not_waited_for_and_the_next_turn_tries_again(root: Path) -> None:
    with Server(Reply(body=sse(start()), ends="hang")) as server:
        result = ask(server, root, "--cfg", ALWAYS, "-v", "hello")
        assert server.client_left.wait(20)

    assert (result.code, result.stdout) == (0, "Hello\n")
    assert "; of these for the title: 10 in, 1 out\n" in result.stderr
    assert "log: no title: it took too long; the next turn tries again, up to the third\n" in result.stderr
    assert titles(root) == [None]

    with Server(titled("At last")) as server:
        again = ask(server, root, "--id", "last", "--cfg", ALWAYS, "and now?")

    assert (again.code, titles(root)) == (0, ["At last"])
    assert "hello" in json.dumps(server.title_requests[0]["messages"])
    assert "and now?" in json.dumps(server.title_requests[0]["messages"])


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(status=529, headers=JSON, body=b'{"type":"error","error":{"type":"overloaded_error"}}'), "no title: "),
        (Reply(body=b"", ends="reset"), "no title: "),
        (
            saying("I would call it: the lexer, because it is about nothing else"),
            "no title: 'anthropic/claude-haiku-5-5' gave none",
        ),
        (saying('{"title": " . "}'), "no title: 'anthropic/claude-haiku-5-5' gave none"),
    ],
    ids=["overloaded", "reset", "prose", "blank"],
)
def test_a_title_that_fails_changes_nothing(reply: Reply, words: str, root: Path) -> None:
    with Server(reply) as server:
        quiet = ask(server, root, "--cfg", ALWAYS, "hello")
        loud = ask(server, root, "--new", "--cfg", ALWAYS, "-v", "hello")

    assert quiet == (0, "Hello\n", "")
    assert (loud.code, loud.stdout) == (0, "Hello\n")
    assert f"log: {words}" in loud.stderr
    assert titles(root) == [None, None]
    assert len(server.title_requests) == 2


def test_a_title_that_somebody_gave_meanwhile_stays(root: Path) -> None:
    def title(request: Received) -> Reply:
        (path,) = metadata_files(root)
        path.write_text('{"title": "Mine", "labels": {"a": "b"}}', encoding="utf-8")
        return titled("Generated")

    with Server(title) as server:
        result = ask(server, root, "--cfg", ALWAYS, "hello")

    assert result.code == 0
    assert len(server.title_requests) == 1
    assert titles(root) == ["Mine"]


def test_a_title_that_was_taken_away_stays_away_until_somebody_gives_one(root: Path) -> None:
    with Server(titled("Mine")) as server:
        prepare(
            arguments(server, "hi"),
            ("conversation", "edit", "last", "--no-title"),
            arguments(server, "--id", "last", "--cfg", ALWAYS, "again"),
            arguments(server, "--id", "last", "--fork", "--cfg", ALWAYS, "in a fork"),
            cwd=root,
            env=ENV,
        )

    assert server.title_requests == []
    assert titles(root) == [None, None]

    options = (("--title", "Given"), ("--no-title",), ("--title", "Given again"))
    prepare(*(("conversation", "edit", "last", *option) for option in options), cwd=root)
    (metadata,) = [path for path in metadata_files(root) if "Given again" in path.read_text(encoding="utf-8")]
    assert "untitled" not in json.loads(metadata.read_text(encoding="utf-8"))


def test_a_title_that_is_taken_away_while_one_is_awaited_stays_away(root: Path) -> None:
    def give(_: Received) -> Reply:
        (path,) = metadata_files(root)
        path.write_text(json.dumps({"untitled": True}), encoding="utf-8")
        return titled("Generated")

    with Server(give) as server:
        ask(server, root, "--cfg", ALWAYS, "hi")

    assert titles(root) == [None]


def test_a_failing_question_gets_no_title(root: Path) -> None:
    with Server(titled("Never"), Reply(status=400, headers=JSON, body=b'{"type":"error","error":{}}')) as server:
        result = ask(server, root, "--cfg", ALWAYS, "hello")

    assert result.code == 5
    assert server.title_requests == []


def test_nobody_is_asked_for_a_title_that_is_not_wanted(root: Path) -> None:
    wishes = {
        "never": ["--cfg", "conversation.title.generate.auto=false"],
        "no terminal": [],
        "not kept": ["--cfg", ALWAYS, "--no-persist"],
        "temporary": ["--cfg", ALWAYS, "--new", "--tmp"],
        "titled": ["--cfg", ALWAYS, "--new", "--title", "Mine"],
        "dry run": ["--cfg", ALWAYS, "--dry-run"],
    }
    with Server(titled("Never")) as server:
        prepare(*(arguments(server, *options, wish) for wish, options in wishes.items()), cwd=root, env=ENV)

    assert server.title_requests == []
    assert len(server.requests) == len(wishes) - 1
    assert titles(root).count("Mine") == 1
    assert "Never" not in titles(root)


def test_a_heading_becomes_the_title_without_a_model(root: Path) -> None:
    with Server(titled("Generated")) as server:
        ignoring = ("--cfg", "conversation.title.from_heading=false")
        prepare(
            arguments(server, "--cfg", ALWAYS, "# The lexer\n\nwhy does it loop?"),
            arguments(server, "--new", "--cfg", ALWAYS, *ignoring, "# Ignored\n\nwhy?"),
            cwd=root,
            env=ENV,
        )

    assert titles(root) == ["The lexer", "Generated"]
    assert len(server.title_requests) == 1


def test_only_the_first_three_turns_try(root: Path) -> None:
    with Server(saying("no title\nat all")) as server:
        questions = [("one",), *(("--id", "last", number) for number in ("two", "three", "four", "five"))]
        prepare(*(arguments(server, "--cfg", ALWAYS, *words) for words in questions), cwd=root, env=ENV)

    assert len(server.title_requests) == 3


def test_a_secret_of_the_environment_does_not_become_a_title(root: Path) -> None:
    with Server(titled(f"Key {ENV['ANTHROPIC_API_KEY']}")) as server:
        ask(server, root, "--cfg", ALWAYS, "hello")

    assert titles(root) == ["Key ***"]


def test_the_script_provider_writes_titles_only_where_it_is_configured(root: Path) -> None:
    (root / ".jp" / "scenarios" / "titles.toml").write_text(
        '[[reply]]\ntext = \'{"title": "From a script"}\'\n', encoding="utf-8"
    )

    silent = run_jp("query", "--cfg", ALWAYS, "-v", "hello", cwd=root)
    assert titles(root) == [None]
    run_jp(
        "query", "--new", "--cfg", ALWAYS, "--cfg", "conversation.title.generate.model=script/titles", "hello", cwd=root
    )

    assert "log: no title: no cheap model is known beside 'script/test'" in silent.stderr
    assert titles(root) == [None, "From a script"]


def test_a_title_model_that_does_not_exist_is_said_with_v(root: Path) -> None:
    unknown = ("--cfg", "conversation.title.generate.model=nobody/x")
    result = run_jp("query", "--cfg", ALWAYS, *unknown, "-v", "hello", cwd=root)

    assert (result.code, result.stdout) == (0, "You said: hello\n")
    assert "log: no title: there is no provider 'nobody'\n" in result.stderr


def test_json_has_the_answer_and_nothing_of_the_title(root: Path) -> None:
    with Server(titled("Beside it")) as server:
        result = ask(server, root, "--cfg", ALWAYS, "-F", "json", "hello")

    assert (result.code, result.stderr) == (0, "")
    assert "Beside it" not in result.stdout
    assert [json.loads(line)["type"] for line in result.stdout.splitlines()].count("cycle_end") == 1
    assert titles(root) == ["Beside it"]


def test_at_a_terminal_a_title_is_the_default_and_its_cost_is_shown(root: Path) -> None:
    with (
        Server(titled("Beside it")) as server,
        jp_at_terminal(*arguments(server, "hello"), cwd=root, env=ENV) as terminal,
    ):
        assert terminal.finish() == 0

    assert re.search(r"note: 20 tokens in, 10 out, \$0\.\d+; of these for the title: 10 in, 5 out\n", terminal.shown)
    assert titles(root) == ["Beside it"]


def test_ctrl_c_while_a_title_is_awaited_ends_the_wait_and_not_the_answer(root: Path) -> None:
    with (
        Server(Reply(body=sse(start()), ends="hang")) as server,
        jp_at_terminal(*arguments(server, "hello"), cwd=root, env=ENV, script=PATIENT) as terminal,
    ):
        terminal.expect("Hello\n")
        assert [is_about_title(request) for request in server.wait_for_requests(2)] == [False, True]
        terminal.expect("waiting\n")
        terminal.type(CTRL_C)
        terminal.expect("note: ")
        assert terminal.finish() == 0

    assert titles(root) == [None]
