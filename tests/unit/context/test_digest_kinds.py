from __future__ import annotations

import pytest

from jp.context.digest_lines import Result, ToolKind, digest_of
from jp.context.types import Facts

GREP = "src/a.py:12:def one():\nsrc/b.py:3:    one()\nsrc/a.py:40:one()  # " + "x" * 120 + "\nsrc/c.py:1:one\n"
DIFF = "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n-old\n+new\n+more\n"
TESTS = "collected 3 items\n--- FAIL: TestOne (0.00s)\ntest two ... FAILED\nnot ok 3 three\n\n3 failed in 0.1s\n"


def describe(
    kind: ToolKind,
    body: str | None,
    known: Facts | None = None,
    *,
    subject: str = "",
    note: str = "",
    is_error: bool = False,
) -> str:
    """The digest without what all of them have: the tool's name and the handle."""
    found = digest_of(
        Result(
            tool="t",
            kind=kind,
            size=9_000,
            lines=None if body is None else 90,
            handles=("01234567",),
            facts=known or Facts(),
            subject=subject,
            body=body,
            note=note,
            is_error=is_error,
        )
    )
    return found.removeprefix("[compacted] t: ").replace("; recall 01234567", "").replace("; 90 lines, 9000 bytes", "")


@pytest.mark.parametrize(
    ("kind", "body", "digest"),
    [
        ("terminal", "a\nerror: x\nb\nfatal: y\nz\n```\n", "success\nerror: x\nfatal: y\nz"),
        ("terminal", "\n \n", "success"),
        (
            "test",
            TESTS,
            "success\n--- FAIL: TestOne (0.00s)\ntest two ... FAILED\nnot ok 3 three\n3 failed in 0.1s",
        ),
        ("test", "FAIL-safe, all good\n", "success\nFAIL-safe, all good"),
        ("read", "class One:\n    def two(self): ...\nfunc (s *S) Three() {}\n", "success; defines One, two, Three"),
        (
            "read",
            "\n".join(f"def f{number}(): ..." for number in range(20)),
            "success; defines " + ", ".join(f"f{number}" for number in range(8)),
        ),
        ("read", "prose\n", "success"),
        (
            "search",
            GREP,
            "success; in 3 files\nsrc/a.py:12:def one():\nsrc/b.py:3:    one()\n" + GREP.splitlines()[2][:100],
        ),
        ("search", "nothing\n", "success"),
        ("search", "a.py:1:x\n" * 10_001, "success\n" + "\n".join(["a.py:1:x"] * 3)),
        ("list", "./src/a.py\nsrc/b.py\ndocs/c.md\nREADME\n\n", "success; 4 entries; below src, docs"),
        ("list", "README\n", "success; 1 entries"),
        ("web", "\n# The title\ntext\nthe end\n", "success\n# The title\nthe end"),
        ("patch", DIFF, "success; +2 -1"),
        ("write", "written\n", "success"),
        ("json", '{"b": 1, "a": [1]}', "success; object with 2 keys: b, a"),
        ("json", '[{"b": 1}, {"c": 2}]', "success; 2 rows with 1 keys: b"),
        ("json", "[1, {}, []]", "success; 3 elements"),
        ("json", "[]", "success; 0 elements"),
        ("json", "7", "success"),
        ("json", "no json", "success"),
        ("json", "[" * 100_000, "success"),
        ("json", '"\ud800"', "success"),
        ("json", "[" + "1," * 1_000_001 + "1]", "success"),
        (
            "json",
            "{" + ", ".join(f'"k{number}": {number}' for number in range(10)) + "}",
            "success; object with 10 keys: k0, k1, k2, k3, k4, k5, k6, k7 and 2 more",
        ),
        ("agent", "I looked.\nmuch\nVerdict: fine.\n", "success\nI looked.\nVerdict: fine."),
        ("other", "one\ntwo\nthree\n", "success\none\nthree"),
        ("other", "only\n", "success\nonly"),
    ],
)
def test_each_kind_says_what_matters_of_its_results(kind: ToolKind, body: str, digest: str) -> None:
    assert describe(kind, body) == digest


def test_facts_and_what_the_call_was_to_do_come_first() -> None:
    known = Facts(path="src/a.py", lines="10-20", exit_code=141, matches=12, duration_ms=1_250)

    assert describe("search", "", known, subject="one\\b") == (
        "success; src/a.py; lines 10-20; pattern one\\b; exit 141 (SIGPIPE, no failure); 12 matches; took 1.2 s"
    )
    assert describe("agent", "", subject="find it") == "success; goal find it"


def test_the_failure_of_a_tool_that_reads_shows_its_errors() -> None:
    assert describe("read", "error: no such file a.py\n", is_error=True) == "error\nerror: no such file a.py"
    assert describe("read", "error: no such file a.py\n") == "success"


def test_without_its_text_a_result_says_the_error_that_was_recorded() -> None:
    known = Facts(first_error="token=hunter2-XYZ99 refused")

    assert describe("terminal", None, known) == "success; 9000 bytes\ntoken=[redacted:token] refused"
    assert describe("terminal", None, known, note="same as before") == "success; 9000 bytes; same as before"


def test_a_stale_read_names_nothing_that_it_defined() -> None:
    assert describe("read", "def one(): ...\n", note="stale") == "success; stale"


PAGE = Facts(kind="web", url="https://docs.test/a?token=hunter2-XYZ9", title="How to\nuse it", status=404)


def test_what_was_fetched_is_named_by_its_address_its_title_and_how_the_server_answered() -> None:
    said = "error; https://docs.test/a?token=[redacted:token]; How to use it; HTTP 404"

    assert describe("web", None, PAGE, is_error=True) == f"{said}; 9000 bytes"
    assert (
        describe("web", None, PAGE, subject="https://docs.test/a?token=[redacted:token]", is_error=True)
        == f"{said}; 9000 bytes"
    )
    assert describe("web", None, PAGE, subject="POST", is_error=True) == f"{said}; POST; 9000 bytes"


def test_a_part_of_a_file_is_said_to_be_one_of_so_many_lines() -> None:
    some = Facts(path="a.py", lines="10-200", total_lines=900)

    assert describe("read", None, some) == "success; a.py; lines 10-200 of 900; 9000 bytes"
    assert describe("read", None, Facts(path="a.py", lines="10-200")) == "success; a.py; lines 10-200; 9000 bytes"
    assert describe("read", None, Facts(path="a.py", total_lines=900)) == "success; a.py; 9000 bytes"
