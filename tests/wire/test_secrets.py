"""Secrets in what is asked, read and printed: nothing that is derived from them has any, nor does another vendor."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from anthropic_wire import ending, start, text
from forked import prepare, run_jp
from loopback import Loopback, Reply, sse
from planted import KINDS, Planted, corpus, leaked, plant
from running import Result, home_beside
from stage import logs, make_workspace

ENV = {"ANTHROPIC_API_KEY": "sk-ant-test-0123456789"}
ACCOUNT = """
[providers.llm.anthropic]
base_url = "{}"
[assistant.request]
max_retries = 0
"""
TITLES = ("conversation.title.generate.auto=true", "conversation.title.generate.model=anthropic/claude-haiku-5-5")
ACCOUNTED = json.dumps({"goal": "find out {}", "next_step": "use {}", "requirements": ["{}"]})
READS = """
[[reply]]
when = { tool = "fs_read_file" }
text = "There are many."

[[reply]]
when = { contains = "read" }
calls = [{ name = "fs_read_file", arguments = { path = "a.txt" } }]

[[reply]]
text = "Noted."
"""
TOOL = """
[conversation.tools.fs_read_file]
enable = true
"""


def saying(words: str) -> Reply:
    return Reply(body=sse(start(), *text(0, words), *ending()))


def leaks(planted: Iterable[Planted], *texts: str) -> dict[tuple[str, str], str]:
    whole = "\n".join(texts)
    return {(each.kind, each.carrier): found for each in planted if (found := leaked(each.secret, whole))}


def derived(root: Path) -> str:
    """All that is kept of conversations but their logs, and all names of files and directories."""
    kept = [*root.rglob("*"), *home_beside(root).rglob("*")]
    told = [str(path.relative_to(root.parent)) for path in kept]
    return "\n".join([*told, *(path.read_text("utf-8", "replace") for path in kept if is_derived(path))])


def is_derived(path: Path) -> bool:
    return path.is_file() and path.suffix in {".json", ".sqlite", ".log", ""} and path.name != "base_config.json"


def said(done: Result) -> str:
    return f"{done.stdout}\n{done.stderr}"


def in_requests(server: Loopback) -> str:
    return "\n".join(request.body.decode() for request in server.requests)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "work")


@pytest.mark.parametrize("carrier", ["question", "shell", "json"])
def test_no_name_no_metadata_and_no_listing_of_conversations_has_a_secret_of_their_first_words(
    root: Path, carrier: str
) -> None:
    planted = [each for each in corpus() if each.carrier == carrier]

    prepare(*(("query", "--new", each.text) for each in planted), cwd=root)

    assert len(logs(root)) == len(planted)
    listed = run_jp("conversation", "ls", "--format", "json", cwd=root)
    shown = run_jp("conversation", "show", "last", "--format", "json", cwd=root)
    context = run_jp("conversation", "context", "last", "--format", "json", cwd=root)
    assert leaks(planted, derived(root), said(listed), said(shown), said(context)) == {}
    assert all(
        each.secret in log.read_text("utf-8") for each, log in zip(planted, logs(root), strict=True) if plain(each)
    )


def plain(each: Planted) -> bool:
    return json.dumps(each.secret) == f'"{each.secret}"'


def test_no_title_that_is_found_in_a_heading_has_a_secret(root: Path) -> None:
    planted = [each for each in corpus() if each.carrier == "shell" and "\n" not in each.text]

    prepare(
        *(("query", "--new", "--cfg", "conversation.title.from_heading=true", f"# {each.text}") for each in planted),
        cwd=root,
    )

    titles = [json.loads(path.read_bytes()).get("title") for path in (root / ".jp").rglob("metadata.json")]
    assert (None in titles, len(titles)) == (False, len(planted))
    assert leaks(planted, derived(root)) == {}


@pytest.mark.parametrize("typed", ["--title", "--tmp=1h"])
def test_a_typed_title_is_the_users_own_and_the_directory_is_not_named_after_its_secret(root: Path, typed: str) -> None:
    each = plant("github-classic", "question", 1)
    more = ("--title", each.text) if typed == "--title" else (typed,)

    done = run_jp("query", "--new", *more, each.text, cwd=root)

    (metadata,) = (root / ".jp").rglob("metadata.json")
    assert done.code == 0, done.stderr
    assert (each.secret in metadata.read_text("utf-8")) == (typed == "--title")
    assert leaks([each], metadata.parent.name) == {}


def test_a_secret_across_the_place_where_first_words_are_cut_is_not_known_by_half(root: Path) -> None:
    planted = [plant(kind, "question", 2) for kind in KINDS]
    lines = [(each, at) for each in planted for at in (30, 75, 195)]

    prepare(*(("query", "--new", "é" * at + f" {each.text}") for each, at in lines), cwd=root)

    assert leaks(planted, derived(root)) == {}


def test_a_fork_keeps_no_secret_of_the_first_words_that_an_earlier_version_kept(root: Path) -> None:
    each = plant("stripe", "question", 3)
    run_jp("query", "--new", "hello", cwd=root)
    (metadata,) = (root / ".jp").rglob("metadata.json")
    metadata.write_text(json.dumps({"first_words": each.text}), encoding="utf-8")

    done = run_jp("conversation", "fork", "last", cwd=root)

    shutil.rmtree(metadata.parent)
    assert done.code == 0, done.stderr
    assert leaks([each], derived(root)) == {}


def test_another_vendor_that_gives_a_title_is_sent_no_secret_and_none_that_it_gives_is_kept(tmp_path: Path) -> None:
    planted = [each for each in corpus("titles") if each.carrier in {"question", "json"}]
    for number, some in enumerate(chunks(planted, most=1800)):
        with Loopback(otherwise=saying(json.dumps({"title": f"About {some[0].text}"[:300]}))) as server:
            root = make_workspace(tmp_path / str(number) / "work", settings=ACCOUNT.format(server.url))
            trust(root)
            done = ask(root, "-vv", "\n\n".join(each.text for each in some))

        assert (done.code, len(server.requests)) == (0, 1), done.stderr
        assert "log: title: " in done.stderr or "no title" in done.stderr
        assert leaks(some, in_requests(server), done.stderr, derived(root)) == {}


def test_a_secret_across_the_end_of_what_a_title_is_made_from_is_not_sent_by_half(tmp_path: Path) -> None:
    planted = [plant(kind, "file", "end") for kind in ("openai", "json-web-token", "private-key", "address", "bearer")]
    for each in planted:
        at = each.text.index(each.secret[:8])
        for inside in (4, 12, len(each.secret) // 2):
            with Loopback(otherwise=saying('{"title": "About it"}')) as server:
                root = make_workspace(tmp_path / f"{each.kind}{inside}" / "work", settings=ACCOUNT.format(server.url))
                trust(root)
                ask(root, "x " * ((2000 - at - inside) // 2) + each.text)

            assert len(server.requests) == 1
            assert leaks([each], in_requests(server)) == {}, inside


def test_another_vendor_that_writes_a_summary_is_sent_no_secret_and_none_that_it_writes_is_kept(tmp_path: Path) -> None:
    planted = list(corpus("summary"))
    own = plant("npm", "question", "own")
    account = ACCOUNTED.replace("{}", json.dumps(own.text)[1:-1])
    with Loopback(otherwise=saying(account)) as server:
        root = make_workspace(tmp_path / "work", READS, settings=TOOL + ACCOUNT.format(server.url))
        trust(root)
        (root / "a.txt").write_text("\n".join(each.text for each in planted if each.carrier == "file"), "utf-8")
        asked = [each.text for each in planted if each.carrier != "file"]
        prepare(
            ("query", "--approve-all", "--new", "read a.txt"),
            *(("query", "--approve-all", "--id", "last", part) for part in asked[::8]),
            ("query", "--approve-all", "--id", "last", "\n\n".join(asked)),
            ("query", "--approve-all", "--id", "last", "read it again"),
            cwd=root,
        )
        before = logs(root)[0].read_text("utf-8")
        model = ("--model", "anthropic/claude-haiku-5-5")
        command = ("conversation", "compact", f"--summarize={own.text}", *model, "--keep", "1", "last")
        done = run_jp(*command, cwd=root, env=ENV)

    assert (done.code, len(server.requests) >= 1) == (0, True), done.stderr
    overlay = logs(root)[0].read_text("utf-8").removeprefix(before)
    assert '"compaction"' in overlay
    assert leaks([*planted, own], in_requests(server), said(done), overlay) == {}


def test_no_note_no_error_and_no_log_on_stderr_has_a_secret(root: Path) -> None:
    planted = [each for each in corpus("errors") if each.carrier in {"question", "shell"}]
    for each in planted[::7]:
        done = run_jp("-vv", "conversation", "show", each.text, cwd=root)

        assert done.code == 2, done.stderr
        assert leaks([each], done.stderr) == {}


def test_what_a_stand_in_says_of_a_failed_command_has_no_secret(tmp_path: Path) -> None:
    each = plant("openrouter", "output", "facts")
    settings = """
[conversation.tools.fail]
enable = true
run = "unattended"
command = { program = "cat a.txt >&2; exit 3", shell = true }
"""
    scenario = READS.replace("fs_read_file", "fail").replace('path = "a.txt"', "")
    root = make_workspace(tmp_path / "work", scenario, settings=settings)
    (root / "a.txt").write_text(f"error: cannot log in with {each.text.splitlines()[1]}\n", "utf-8")
    run_jp("workspace", "trust", "--yes", cwd=root)

    done = run_jp("query", "--new", "read it", cwd=root)

    (response,) = [line for line in logs(root)[0].read_text("utf-8").splitlines() if '"tool_call_response"' in line]
    facts = json.loads(response)["facts"]
    assert (done.code, facts["first_error"].startswith("error: cannot log in")) == (0, True), done
    assert leaks([each], json.dumps(facts)) == {}


def chunks(planted: Sequence[Planted], *, most: int) -> list[list[Planted]]:
    """`planted`, in groups of which all texts together have at most so many characters."""
    groups: list[list[Planted]] = [[]]
    for each in planted:
        if groups[-1] and sum(len(other.text) + 2 for other in groups[-1]) + len(each.text) > most:
            groups.append([])
        groups[-1].append(each)
    return groups


def trust(root: Path) -> None:
    assert run_jp("workspace", "trust", "--yes", cwd=root).code == 0


def ask(root: Path, *words: str) -> Result:
    settings = [part for value in TITLES for part in ("--cfg", value)]
    return run_jp("query", "--new", *settings, *words, cwd=root, env=ENV)
