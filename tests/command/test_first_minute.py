"""The first minute with jp: habits from other tools, words without a command, and a model without `jp init`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chat_wire import answer, says
from failures import check_failure, json_error
from forked import run_jp
from jp.provider.registry import vendors
from loopback import JSON, Loopback, Reply
from running import home_beside
from stage import logs, make_workspace, only_log
from terminal import jp_at_terminal


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace for commands that are refused."""
    return make_workspace(tmp_path_factory.mktemp("first") / "work")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["query", "hi", "-c"], "-c sets a value of the configuration, as in `-c KEY=VALUE`; `jp query` continues"),
        (["-c"], "`jp query` continues this terminal's conversation; `--id last` continues the most recent one"),
        (["query", "-s", "You are terse", "hi"], "-s is --schema, the form of the answer; `--system TEXT` sets the"),
        (["query", "-f", "a.txt", "hi"], "`--attach FILE` attaches a file"),
        (["-f", "a.txt", "hi"], "with `jp query`: `--attach FILE` attaches a file"),
        (["query", "-o", "temperature", "0", "hi"], "`--param K=V` sets a parameter, such as `--param temperature=0`"),
        (["query", "-o", "out.md", "hi"], "`> FILE` writes the answer to a file"),
        (["query", "--json", "hi"], "`--format json` prints JSON; `--schema SCHEMA` has the model answer with JSON"),
        (["conversation", "ls", "--json"], "`--format json` prints JSON; jp conversation ls --help"),
        (["query", "--save", "x", "hi"], "`jp prompt add NAME` saves a prompt; every conversation is saved"),
        (["query", "--last", "hi"], "`--id last` continues the most recent one"),
        (["query", "--continue", "hi"], "`jp query` continues this terminal's conversation"),
        (
            ["-c", "and more"],
            "-c (--cfg) took 'and more' as its value; `jp query` continues this terminal's conversation",
        ),
        (["-m", "opus", "hi"], "options of a command come after its name, as in `jp query -m …`"),
        (["hi"], "`jp query hi` asks the model"),
        (["aliases"], "`jp model ls` lists models and their aliases"),
        (["logs"], "`jp conversation ls` lists conversations"),
        (["models"], "`jp model ls` lists models"),
        (["templates"], "`jp prompt ls` lists saved prompts"),
        (["tools"], "`jp tool ls` lists tools"),
        (["resume"], "`jp query` continues this terminal's conversation"),
        (["--continue"], "`jp query` continues this terminal's conversation"),
    ],
)
def test_an_option_of_another_tool_is_answered_with_jps_way(words: list[str], said: str, root: Path) -> None:
    check_failure(run_jp(*words, cwd=root), 2, said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-m", "hi"], "-m took 'hi' as its value; type one, as in"),
        (["-qm", "hi"], "-m took 'hi' as its value"),
        (["--model", "why is it?", "-p", "temperature=0"], "--model took 'why is it?' as its value"),
        (["-p", "hi there"], "-p took 'hi there' as its value"),
        (["-c", "and then?"], "-c took 'and then?' as its value; `jp query` continues this terminal's conversation"),
        (["-a", "x.py", "--title", "what for"], "--title took 'what for' as its value"),
    ],
)
def test_a_missing_query_names_the_option_that_took_the_word(words: list[str], said: str, root: Path) -> None:
    check_failure(run_jp("query", *words, cwd=root), 2, "there is no query", said)


def test_a_missing_query_names_no_option_where_none_took_a_word(root: Path) -> None:
    said = json_error(run_jp("query", "--new", "--format=json", "--model=script/test", "--", cwd=root))

    assert said["hint"] == 'type one, as in `jp query "why does this fail?"`, or pipe it in'


def test_words_without_a_command_are_a_query(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    first = run_jp("why is the sky blue?", "--title", "Sky", cwd=tmp_path)
    second = run_jp("-q", "--", "query", "-x", cwd=tmp_path)
    same = run_jp("query", "why is the sky blue?", cwd=tmp_path)

    assert (first, second) == ((0, "You said: why is the sky blue?\n", ""), (0, "You said: query -x\n", ""))
    assert same.stdout == first.stdout
    assert len(logs(tmp_path)) == 1


def test_one_word_without_a_command_is_not_sent_to_a_model(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    check_failure(run_jp("qurey", cwd=tmp_path), 2, "did you mean 'jp query'?")
    check_failure(run_jp("conversation", "what is it?", cwd=tmp_path), 2, "jp conversation has no command")
    assert logs(tmp_path) == []


def test_piped_text_follows_words_without_a_command(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    assert run_jp("in short", cwd=tmp_path, stdin="a text\n").stdout == "You said: in short\n\na text\n"
    assert len(only_log(tmp_path)) > 1


KEY = {"ANTHROPIC_API_KEY": "sk-ant-0123456789-secret"}
SEVERAL = {**KEY, "GEMINI_API_KEY": "AIza-secret"}
OPEN_MODELS = Reply(body=b'{"data": [{"id": "embed-1"}, {"id": "qwen3"}]}', headers=JSON)


def declare(cwd: Path, name: str, server: Loopback, *, more: str = "") -> None:
    """Declare a server in the user's own configuration."""
    file = home_beside(cwd) / "config" / "config.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'[providers.llm.{name}]\nbase_url = "{server.url}/v1"\n{more}', encoding="utf-8")


def test_a_key_is_enough_and_the_model_is_said(tmp_path: Path) -> None:
    done = run_jp("query", "--dry-run", "hi", cwd=tmp_path, env=KEY)
    quiet = run_jp("query", "--dry-run", "hi", "-q", cwd=tmp_path, env=KEY)
    value = json.loads(run_jp("query", "--dry-run", "hi", "-qFjson", cwd=tmp_path, env=KEY).stdout)

    assert done.code == 0
    assert done.stderr == (
        "note: no model is set; using anthropic/claude-sonnet-5-5, because ANTHROPIC_API_KEY is set; "
        "`jp config set --in user assistant.model.id=anthropic/claude-sonnet-5-5` keeps it, `jp init` chooses another\n"
    )
    assert done.stdout.startswith("model      anthropic/claude-sonnet-5-5\n")
    assert (quiet.stderr, value["model"]) == ("", "anthropic/claude-sonnet-5-5")


def test_a_server_that_the_user_declares_and_that_answers_is_enough_and_is_said_once(tmp_path: Path) -> None:
    with Loopback(OPEN_MODELS, Reply(body=answer(*says("Hello."))), Reply(body=answer(*says("Again.")))) as server:
        declare(tmp_path, "mine", server)
        first = run_jp("query", "hi", cwd=tmp_path)
        second = run_jp("query", "again", cwd=tmp_path)

        assert [request.target for request in server.requests] == ["/v1/models", *["/v1/chat/completions"] * 2]
    assert (first.code, first.stdout) == (0, "Hello.\n")
    assert f"no model is set; using mine/qwen3, because a server responds at {server.url}/v1; " in first.stderr
    assert (second.code, second.stdout, second.stderr) == (0, "Again.\n", "")


def test_a_server_that_nobody_declared_is_not_sent_a_query(tmp_path: Path) -> None:
    with Loopback(OPEN_MODELS) as server:
        refused = run_jp("query", "hi", cwd=tmp_path, env={"OLLAMA_HOST": server.url})

        assert server.requests == []
    check_failure(refused, 3, "no model is set")


def test_a_workspace_that_is_not_trusted_declares_no_server(tmp_path: Path) -> None:
    with Loopback(OPEN_MODELS) as server:
        (tmp_path / ".jp").mkdir()
        settings = f'[providers.llm.mine]\nbase_url = "{server.url}/v1"\n'
        (tmp_path / ".jp" / "config.toml").write_text(settings, encoding="utf-8")
        refused = run_jp("query", "hi", cwd=tmp_path)

        assert server.requests == []
    assert (refused.code, refused.stdout) == (3, "")


def test_a_script_with_several_accounts_is_told_which(tmp_path: Path) -> None:
    with Loopback(OPEN_MODELS) as server:
        declare(tmp_path, "mine", server)
        refused = run_jp("query", "hi", cwd=tmp_path, env=SEVERAL)

    check_failure(
        refused,
        3,
        "no model is set, and several can be used: anthropic/claude-sonnet-5-5 (ANTHROPIC_API_KEY is set), "
        f"google/gemini-3.8-flash (GEMINI_API_KEY is set), mine/qwen3 (a server responds at {server.url}/v1)\n",
        "hint: name one with --model, or set it: `jp config set --in user assistant.model.id=anthropic/",
    )
    assert "secret" not in refused.stderr


def test_a_model_that_is_set_or_named_is_used_whatever_keys_there_are(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work")

    assert run_jp("query", "hi", cwd=root, env=SEVERAL) == (0, "You said: hi\n", "")
    named = run_jp("query", "--dry-run", "--model", "flash", "hi", cwd=tmp_path, env=SEVERAL)
    assert (named.stdout.splitlines()[0], named.stderr) == ("model      google/gemini-3.8-flash", "")


def test_a_person_with_several_accounts_is_asked(tmp_path: Path) -> None:
    words = ("query", "--dry-run", "hi")

    with jp_at_terminal(*words, cwd=tmp_path, env=SEVERAL) as terminal:
        terminal.question("1  anthropic/claude-sonnet-5-5: ANTHROPIC_API_KEY is set")
        terminal.question(r"^Model: \[anthropic/claude-sonnet-5-5\]")
        terminal.type("2\r")
        terminal.expect("note: `jp config set --in user assistant.model.id=google/gemini-3.8-flash` keeps it\n")
        terminal.expect("model +google/gemini-3.8-flash")
        assert terminal.finish() == 0


def test_the_page_names_the_model_of_each_account() -> None:
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")

    for vendor in vendors():
        assert not vendor.proposed or f"| `{vendor.id}` | `{vendor.proposed}` |" in page


def test_no_question_reaches_a_hook_or_a_pipe(tmp_path: Path) -> None:
    with jp_at_terminal("query", "hi", cwd=tmp_path, env={**SEVERAL, "GIT_INDEX_FILE": ".git/index"}) as terminal:
        terminal.expect("error: no model is set, and several can be used")
        assert terminal.finish() == 3
