"""`jp query --schema` and `--extract`: what is printed, what is said, what is kept, with which exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forked import run_jp
from jp.app.query.earlier_turns import first_code_block
from jp.conversation.entries import ChatRequest, ChatResponse, CycleEnd, TurnStart
from running import Result
from stage import logs, make_workspace, only_log

SCHEMA = "name, age int"
PERSON = '{"name":"Ann","age":30}\n'
JSON_SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}
LOOK = "hint: the whole answer is in the log: `jp conversation print last`\n"


def reply(text: str, *more: str) -> str:
    return "\n".join(("[[reply]]", f"text = {json.dumps(text)}", *more, ""))


def ask(root: Path, *arguments: str, schema: str = SCHEMA) -> Result:
    return run_jp("query", "--schema", schema, *arguments, "who?", cwd=root)


def requests(root: Path) -> list[ChatRequest]:
    return [entry for entry in only_log(root) if isinstance(entry, ChatRequest)]


def answers(root: Path) -> list[ChatResponse]:
    return [entry for entry in only_log(root) if isinstance(entry, ChatResponse)]


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Ann", "age": 30}',
        'Here she is: {"name": "Ann", "age": 30}. Anything else?',
    ],
    ids=["json", "prose"],
)
def test_stdout_is_the_value_and_nothing_else(tmp_path: Path, text: str) -> None:
    make_workspace(tmp_path, reply(text))

    assert ask(tmp_path) == (0, PERSON, "")
    assert [request.schema for request in requests(tmp_path)] == [JSON_SCHEMA]
    (answer,) = answers(tmp_path)
    assert answer.data == {"name": "Ann", "age": 30}
    assert answer.text in {None, text}


def test_a_value_for_a_person_is_indented_and_cannot_steer_the_terminal(tmp_path: Path) -> None:
    make_workspace(tmp_path, reply('{"name": "A\\u001b[31m\\u009b\\u202e", "age": 30}'))

    result = ask(tmp_path, "--format", "pretty")

    assert (result.code, result.stdout) == (
        0,
        '{\n  "name": "A\\u001b[31m\\u009b\\u202e",\n  "age": 30\n}\n',
    )


@pytest.mark.parametrize(
    ("schema", "text", "printed"),
    [
        ('{"type": "array", "items": {"type": "integer"}}', "[1, 2]", "[1,2]\n"),
        ('{"enum": ["yes", "no"]}', '```\n"yes"\n```', '"yes"\n'),
        ('{"type": ["string", "null"]}', "null", "null\n"),
        ("{}", "1.50", "1.5\n"),
    ],
)
def test_a_value_need_not_be_an_object(tmp_path: Path, schema: str, text: str, printed: str) -> None:
    make_workspace(tmp_path, reply(text))

    assert ask(tmp_path, schema=schema) == (0, printed, "")


def test_an_answer_that_does_not_fit_is_asked_for_once_more(tmp_path: Path) -> None:
    wrong = reply('{"name": "Ann", "age": "thirty"}', 'when = { exact = "who?" }')
    right = reply('{"name": "Ann", "age": 30}', 'when = { contains = "/age: \\"thirty\\" is not of type integer" }')
    make_workspace(tmp_path, wrong + right)

    result = ask(tmp_path)

    assert result == (
        0,
        PERSON,
        'note: the answer does not fit the schema (/age: "thirty" is not of type integer); asking once more\n',
    )
    asked = requests(tmp_path)
    assert [(request.author, request.schema) for request in asked] == [(None, JSON_SCHEMA), ("jp", JSON_SCHEMA)]
    assert sum(isinstance(entry, TurnStart) for entry in only_log(tmp_path)) == 2


def failing(root: Path, *more: str) -> str:
    """What is said where the second answer is as wrong as the first."""
    result = ask(root, *more)
    assert (result.code, result.stdout) == (9, ""), result
    return result.stderr


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"name": "Ann", "age": "x"}', '/age: "x" is not of type integer'),
        ("Ann is thirty.", "it holds no JSON value"),
        ('{"name": "Ann", "age": 30} or {"name": "Bob", "age": 4}', "it holds several JSON values"),
        ('{"person": {"name": "Ann", "age": 30}, ...}', "its JSON is not well formed"),
        ('{"name": "Ann", "age": 30, "age": 31}', "an object in its JSON has two members of the same name"),
    ],
    ids=["type", "words", "several", "broken", "twice the same member"],
)
def test_an_answer_that_never_fits_is_no_answer(tmp_path: Path, text: str, problem: str) -> None:
    make_workspace(tmp_path, reply(text))

    assert failing(tmp_path) == (
        f"note: the answer does not fit the schema ({problem}); asking once more\n"
        f"error: the answer does not fit the schema: {problem}\n{LOOK}"
    )
    assert [answer.text or json.dumps(answer.data) for answer in answers(tmp_path)] == [text, text]


def test_without_a_cycle_left_it_is_not_asked_again(tmp_path: Path) -> None:
    make_workspace(tmp_path, reply("Ann is thirty."))

    assert failing(tmp_path, "--max-cycles", "1") == (
        f"error: the answer does not fit the schema: it holds no JSON value\n{LOOK}"
    )
    assert len(requests(tmp_path)) == 1


@pytest.mark.parametrize("text", ['{"name": "Ann", "age": 30}', '{"name": "Ann", "ag'])
def test_an_answer_that_was_cut_off_is_none_even_where_it_looks_whole(tmp_path: Path, text: str) -> None:
    make_workspace(tmp_path, reply(text, 'stop = "length"'))

    assert ask(tmp_path, schema="{}") == (
        9,
        "",
        (
            "error: the answer was cut off at the longest that the model may give, so it is not whole\n"
            "hint: allow more with `--param max_tokens=N`, or ask for less\n"
        ),
    )
    assert len(answers(tmp_path)) == 1


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        (" \n", "", "error: the answer is empty\nhint: ask again, or in other words\n"),
        ("{}", 'stop = "refused"\ndetail = "no people"', "error: the model refused to answer: no people\n"),
        ("{}", 'stop = "refused"\ndetail = "refusal"', "error: the model refused to answer\n"),
    ],
    ids=["blank", "refused", "without a reason"],
)
def test_where_nothing_is_answered_nothing_is_printed(tmp_path: Path, text: str, more: str, said: str) -> None:
    make_workspace(tmp_path, reply(text, more))

    result = ask(tmp_path)

    assert (result.code, result.stdout) == (13, "")
    assert result.stderr.startswith(said)


def test_an_answer_that_breaks_off_is_asked_for_anew_and_never_joined(tmp_path: Path) -> None:
    error = 'error = { kind = "cut", after = 12, attempts = 1 }'
    make_workspace(
        tmp_path, reply('{"name": "Ann", "age": 30}', error), settings="[assistant.request]\nbase_backoff_ms = 1\n"
    )

    result = ask(tmp_path)

    assert (result.code, result.stdout) == (0, PERSON)
    assert [answer.text for answer in answers(tmp_path)] == ['{"name": "An', None]
    finishes = [entry.finish for entry in only_log(tmp_path) if isinstance(entry, CycleEnd)]
    assert finishes == ["error", "stop"]


READING = """
[[reply]]
when = { exact = "who?" }
times = 1
text = "I look it up."
calls = [{ name = "fs_read_file", arguments = { path = "ann.txt" } }]

[[reply]]
when = { tool = "fs_read_file" }
text = '{"name": "Ann", "age": 30}'
"""


def test_tools_may_run_before_the_answer_and_the_schema_holds_for_the_last_words_only(tmp_path: Path) -> None:
    make_workspace(tmp_path, READING, settings="[conversation.tools.fs_read_file]\nenable = true\n")
    (tmp_path / "ann.txt").write_text("thirty\n", encoding="utf-8")

    result = ask(tmp_path, "--approve-all", "--quiet")

    assert result == (0, PERSON, "")
    assert [answer.data for answer in answers(tmp_path)] == ["I look it up.", {"name": "Ann", "age": 30}]


def test_a_value_is_printed_even_where_a_tool_was_denied(tmp_path: Path) -> None:
    make_workspace(tmp_path, READING, settings='[conversation.tools.fs_read_file]\nenable = true\nrun = "ask"\n')

    result = ask(tmp_path, "--deny-all")

    assert (result.code, result.stdout) == (8, PERSON)
    assert "denied, so not run: fs_read_file" in result.stderr


def test_as_json_stdout_is_the_entries_of_the_turn(tmp_path: Path) -> None:
    make_workspace(tmp_path, reply('{"name": "Ann", "age": 30}'))

    result = ask(tmp_path, "--format", "json")

    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert (result.code, result.stderr) == (0, "")
    by_type = {line["type"]: line for line in lines}
    assert by_type["chat_request"]["output_schema"] == JSON_SCHEMA
    assert by_type["chat_response"]["data"] == {"name": "Ann", "age": 30}
    assert len(by_type) == len(lines)


def test_as_json_a_misfit_is_an_error_in_json(tmp_path: Path) -> None:
    make_workspace(tmp_path, reply("no"))

    result = ask(tmp_path, "--format", "json", "--max-cycles", "1")

    assert result.code == 9
    assert json.loads(result.stderr) == {
        "schema": 1,
        "error": {
            "kind": "schema_mismatch",
            "message": "the answer does not fit the schema: it holds no JSON value",
            "hint": "the whole answer is in the log: `jp conversation print last`",
            "exit_code": 9,
        },
    }


def test_a_schema_holds_for_its_turn_and_for_a_request_that_is_asked_again(tmp_path: Path) -> None:
    make_workspace(
        tmp_path, reply('{"name": "Ann", "age": 30}', 'when = { exact = "who?" }') + reply("You are welcome.")
    )

    ask(tmp_path)
    thanks = run_jp("query", "--id", "last", "thanks", cwd=tmp_path)
    again = run_jp("query", "--id", "last", "--replay", cwd=tmp_path)
    first = run_jp("query", "--new", "--schema", SCHEMA, "who?", cwd=tmp_path)
    replayed = run_jp("query", "--id", "last", "--replay", cwd=tmp_path)

    assert (thanks.code, thanks.stdout) == (0, "You are welcome.\n")
    assert (again.code, again.stdout) == (0, "You are welcome.\n")
    assert (first.stdout, replayed.stdout) == (PERSON, PERSON)


def test_a_stored_value_is_printed_as_a_block_of_json(tmp_path: Path) -> None:
    make_workspace(tmp_path, reply('{"name": "Ann", "age": 30}'))
    ask(tmp_path)

    text = run_jp("conversation", "print", "last", cwd=tmp_path)
    pretty = run_jp("conversation", "print", "last", "--format", "pretty", "--color", "never", cwd=tmp_path)

    block = '{\n  "name": "Ann",\n  "age": 30\n}\n'
    assert text.stdout.endswith(f"\n{block}")
    assert pretty.stdout.endswith(f"```json\n{block}```\n")


@pytest.mark.parametrize(
    ("schema", "code", "said"),
    [
        ("name strng", 2, "error: the schema is malformed at column 6: there is no type 'strng'\nhint: did you mean"),
        ('{"$ref": "http://127.0.0.1:9/x"}', 2, "error: the schema cannot be used: 'http://127.0.0.1:9/x' at /$ref is"),
        ("@none.json", 3, "error: the schema 'none.json' cannot be read: No such file or directory\nhint: a path is"),
    ],
)
def test_what_is_no_schema_is_refused_before_anything_is_written(
    tmp_path: Path, schema: str, code: int, said: str
) -> None:
    make_workspace(tmp_path)

    result = ask(tmp_path, schema=schema)

    assert (result.code, result.stdout) == (code, "")
    assert result.stderr.startswith(said)
    assert logs(tmp_path) == []


def test_a_dry_run_shows_the_schema_and_asks_nobody(tmp_path: Path) -> None:
    make_workspace(tmp_path, reply("no"))

    result = ask(tmp_path, "--dry-run", "--format", "json")

    assert result.code == 0
    assert json.loads(result.stdout)["request"]["body"]["schema"] == JSON_SCHEMA
    assert logs(tmp_path) == []


def test_a_dry_run_says_in_words_that_there_is_a_schema(tmp_path: Path) -> None:
    make_workspace(tmp_path, reply("no"))
    many = ", ".join(f"field_{number}" for number in range(100))

    plain = run_jp("query", "--dry-run", "who?", cwd=tmp_path)
    short = run_jp("query", "--dry-run", "--schema", "name", "who?", cwd=tmp_path)
    long = run_jp("query", "--dry-run", "--schema", many, "who?", cwd=tmp_path)

    assert "\nsystem     1 part, about " in plain.stdout
    assert "schema" not in plain.stdout
    schema = '{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}'
    assert f"\nschema     the answer has to fit {schema}\n" in short.stdout
    line = next(line for line in long.stdout.splitlines() if line.startswith("schema "))
    assert len(line) < 300
    assert line.endswith("…")


CODE = "Try this:\n\n```python\nprint(1)\n\n  # end\n```\n\nor\n\n```\nno\n```\n"


@pytest.mark.parametrize(
    ("text", "code"), [(CODE, "print(1)\n\n  # end\n"), ("```sh\nA\x1b[31mB\n```", "AB\n")], ids=["first", "controls"]
)
def test_the_first_code_block_is_extracted(tmp_path: Path, text: str, code: str) -> None:
    make_workspace(tmp_path, reply(text))

    assert run_jp("query", "--extract", "write", cwd=tmp_path) == (0, code, "")
    (answer,) = answers(tmp_path)
    assert answer.message == text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("~~~ sh\necho hi\n~~~", "echo hi\n"),
        ("````markdown\n```py\nx\n```\n````", "```py\nx\n```\n"),
        ("- a list\n\n  ```\n  in an item\n    deeper\n  ```\n", "in an item\n  deeper\n"),
        ("> ```\n> quoted\n> ```\n", "quoted\n"),
        ("   ```\n   indented\n   ```\n", "indented\n"),
        ("```\nnever closed\n", "never closed\n"),
        ("```\n```\n\n```\nthe empty one is none\n```", "the empty one is none\n"),
        ("    an indented block is no fence\n\n```\nthis is\n```", "this is\n"),
    ],
    ids=["tildes", "longer", "list", "quote", "indented", "open", "empty", "no fence"],
)
def test_a_code_block_is_what_markdown_takes_for_one(text: str, code: str) -> None:
    assert first_code_block(text) == code


def test_an_answer_without_code_has_nothing_to_extract(tmp_path: Path) -> None:
    make_workspace(tmp_path, reply("There is `code` here,\n\n    and there, but no fence."))

    result = run_jp("query", "-x", "write", cwd=tmp_path)

    assert result == (
        9,
        "",
        (
            "error: the answer has no fenced code block\n"
            "hint: ask for one in so many words; the whole answer is in the log: `jp conversation print last`\n"
        ),
    )


def test_code_of_an_answer_that_was_continued_is_extracted_whole(tmp_path: Path) -> None:
    error = 'error = { kind = "cut", after = 20, attempts = 1 }'
    make_workspace(
        tmp_path,
        reply("```\nfirst line\nsecond line\n```\n", error),
        settings="[assistant.request]\nbase_backoff_ms = 1\n",
    )

    result = run_jp("query", "-x", "write", cwd=tmp_path)

    assert (result.code, result.stdout) == (0, "first line\nsecond line\n")


def test_code_of_an_answer_that_was_not_completed_is_not_printed(tmp_path: Path) -> None:
    settings = "[assistant.request]\nmax_retries = 0\n"
    make_workspace(tmp_path, reply(CODE, 'error = { kind = "cut", after = 30 }'), settings=settings)

    result = run_jp("query", "-x", "write", cwd=tmp_path)

    assert (result.code, result.stdout) == (5, "")


def test_extraction_as_json_is_the_entries_of_the_turn(tmp_path: Path) -> None:
    make_workspace(tmp_path, reply(CODE))

    result = run_jp("query", "-x", "--format", "json", "write", cwd=tmp_path)

    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert (result.code, result.stderr) == (0, "")
    assert [line["message"] for line in lines if line["type"] == "chat_response"] == [CODE]


def test_a_code_block_and_a_value_exclude_each_other(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    assert ask(tmp_path, "-x") == (
        2,
        "",
        "error: --extract and --schema exclude each other\nhint: --extract gives a code block, --schema a JSON value\n",
    )
    assert logs(tmp_path) == []


def test_an_answer_that_is_kept_nowhere_is_not_said_to_be_in_the_log(tmp_path: Path) -> None:
    make_workspace(tmp_path, reply("no"))

    structured = ask(tmp_path, "--no-persist", "--max-cycles", "1")
    extracted = run_jp("query", "--no-persist", "-x", "write", cwd=tmp_path)

    hint = "--no-persist keeps nothing of the answer: remove it to see the answer\n"
    assert structured.code == extracted.code == 9
    assert structured.stderr.endswith(f"\nhint: {hint}")
    assert extracted.stderr.endswith(f"\nhint: ask for one in so many words; {hint}")


ENDLESS = '{"type": "object", "properties": {"name": {"type": "string", "pattern": "^(a|aa)+$"}}}'
LONG = json.dumps({"name": "a" * 60 + "b"})


HASTY = """
import warnings

from jp.__main__ import main
from jp.app.query.structured import check_value

check_value.__kwdefaults__["limit_secs"] /= 100
warnings.simplefilter("ignore", EncodingWarning)  # regex asks for the encoding of the locale
main()
"""


def test_an_answer_that_keeps_a_pattern_searching_is_not_checked_and_not_asked_for_again(tmp_path: Path) -> None:
    make_workspace(tmp_path, reply(LONG))
    script = tmp_path / "hasty.py"
    script.write_text(HASTY, encoding="utf-8")

    stderr = (
        "error: the answer could not be checked against the schema: "
        "the search for the pattern '^(a|aa)+$' takes more than 0.02 s\n"
        "hint: a pattern has to match a text in one way only: `^a+$`, not `^(a|aa)+$`; "
        "the whole answer is in the log: `jp conversation print last`\n"
    )
    result = run_jp("query", "--schema", ENDLESS, "who?", cwd=tmp_path, script=script)

    assert result == (9, "", stderr)
    assert len(requests(tmp_path)) == 1


PATIENT = """
import warnings

from jp.__main__ import main
from jp.app.query.structured import check_value

check_value.__kwdefaults__["limit_secs"] = 5
warnings.simplefilter("ignore", EncodingWarning)  # regex asks for the encoding of the locale
main()
"""


def test_a_deadline_ends_the_wait_for_a_search(tmp_path: Path) -> None:
    make_workspace(tmp_path, reply(LONG))
    script = tmp_path / "patient.py"
    script.write_text(PATIENT, encoding="utf-8")

    result = run_jp("query", "--deadline", "2s", "--schema", ENDLESS, "who?", cwd=tmp_path, script=script)

    assert result == (124, "", "error: the deadline passed\nhint: allow it more time with `--deadline`\n")
    assert [answer.data for answer in answers(tmp_path)] == [json.loads(LONG)]
