"""The first minute with jp: habits from other tools, words without a command, and a model without `jp init`."""

from __future__ import annotations

from pathlib import Path

import pytest

from failures import check_failure, json_error
from forked import run_jp
from stage import logs, make_workspace, only_log


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
        (["query", "--save", "x", "hi"], "every conversation is saved, `jp conversation print` prints it"),
        (["query", "--last", "hi"], "`--id last` continues the most recent one"),
        (["query", "--continue", "hi"], "`jp query` continues this terminal's conversation"),
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
