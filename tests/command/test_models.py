"""`jp model`: what is listed and shown, who is asked, what is kept, and where a price is said."""

from __future__ import annotations

import json
import re
import signal
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from failures import check_failure, json_error
from forked import run_jp, start_jp
from jp.config.model import shipped_aliases
from jp.provider.models import known_names, model_table
from loopback import JSON, Loopback, Received, Reply
from running import TIMEOUT_SECS, home_beside
from stage import make_workspace
from terminal import jp_at_terminal

MINE = {"data": [{"id": "large", "max_model_len": 8192}, {"id": "~x"}, {"id": "large-20250101"}]}
TAGS = {"models": [{"name": "llama3:latest", "details": {"context_length": 8192}, "capabilities": ["completion"]}]}
EMBEDDING = {"name": "emb", "details": {"context_length": 512}, "capabilities": ["embedding"]}


def answer(body: object, *, status: int = 200) -> Reply:
    return Reply(status=status, body=msgspec.json.encode(body), headers=JSON)


def servers(request: Received) -> Reply:
    """Everybody: Ollama, a compatible server below /mine, one that fails below /broken, and one without a list."""
    match request.target:
        case "/api/tags":
            return answer({"models": [*TAGS["models"], EMBEDDING]})
        case "/mine/models":
            return answer(MINE)
        case "/broken/models":
            return answer({"error": {"message": "out of order"}}, status=500)
        case _:
            return answer({}, status=404)


def configure(cwd: Path, server: Loopback | None, *names: str, more: str = "") -> None:
    """The user's own settings: these servers, at `server` or nowhere, and `more`."""
    url = "http://127.0.0.1:1" if server is None else server.url
    declared = "".join(f'[providers.llm.{name}]\nbase_url = "{url}/{name}"\n' for name in names)
    local = "".join(f'[providers.llm.{name}]\nbase_url = "{url}"\n' for name in ("ollama", "llamacpp"))
    path = home_beside(cwd) / "config" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{declared}{local}{more}", encoding="utf-8")


def cache_of(cwd: Path) -> Path:
    return home_beside(cwd) / "data" / "cache" / "models"


def listed(cwd: Path, *arguments: str) -> dict[str, Any]:
    """What `ls --format json` says, by provider."""
    done = run_jp("model", "ls", *arguments, "--format", "json", cwd=cwd)
    assert done.code == 0, done
    value = json.loads(done.stdout)
    assert value["schema"] == 1
    return {provider["provider"]: provider for provider in value["providers"]}


def test_without_asking_the_table_is_listed_with_its_date(tmp_path: Path) -> None:
    settings = '[assistant.model]\nid = "smart"\n[providers.llm.aliases]\nsmart = "anthropic/claude-haiku-4-5"\n'
    configure(tmp_path, None, "mine", more=f'{settings}default = "smart"\nround = "round"\n')

    done = run_jp("model", "ls", cwd=tmp_path)
    lines = done.stdout.splitlines()

    assert done.code == 0
    assert lines[0] == f"anthropic: table of {model_table('anthropic').checked}, prices in USD for a million tokens"
    assert " ".join(lines[1].split()) == "model window output in out cached alias reasoning can"
    (haiku,) = (" ".join(line.split()) for line in lines if line.startswith("*"))
    assert haiku == (
        "* anthropic/claude-haiku-4-5 200,000 64,000 1 5 0.1 smart, default budget tools images pdf schema"
    )
    assert lines[-1] == "mine: nothing is known yet; `jp model ls mine --refresh` asks"
    assert not cache_of(tmp_path).exists()


def test_aliases_that_come_with_jp_are_listed_unless_the_user_gives_them_to_other_models(tmp_path: Path) -> None:
    before = {model["id"]: model["aliases"] for model in listed(tmp_path, "anthropic")["anthropic"]["models"]}
    configure(tmp_path, None, more='[providers.llm.aliases]\nopus = "anthropic/claude-opus-4-1"\n')
    after = {model["id"]: model["aliases"] for model in listed(tmp_path, "anthropic")["anthropic"]["models"]}

    assert before["anthropic/claude-opus-5-5"] == ["opus"]
    assert before["anthropic/claude-sonnet-5-5"] == ["sonnet", "claude"]
    assert (after["anthropic/claude-opus-5-5"], after["anthropic/claude-opus-4-1"]) == ([], ["opus"])
    assert after["anthropic/claude-sonnet-5-5"] == ["sonnet", "claude"]


def test_a_server_without_aliases_has_no_column_for_them(tmp_path: Path) -> None:
    assert "alias" not in run_jp("model", "ls", "cerebras", cwd=tmp_path).stdout


@pytest.mark.parametrize(("alias", "model"), sorted(shipped_aliases().items()))
def test_an_alias_that_comes_with_jp_names_a_model_of_its_vendors_table(alias: str, model: str) -> None:
    provider, _, name = model.partition("/")

    assert name in known_names(provider)
    assert f"| `{alias}` | `{model}` |" in (Path(__file__).parents[2] / "docs" / "models.md").read_text("utf-8")


def test_an_alias_is_shown_and_suggested(tmp_path: Path) -> None:
    shown = run_jp("model", "show", "haiku", "--format", "json", cwd=tmp_path)
    unknown = run_jp("query", "--dry-run", "--model", "sonet", "hi", cwd=tmp_path)

    assert json.loads(shown.stdout)["model"]["id"] == "anthropic/claude-haiku-5-5"
    check_failure(unknown, 3, "'sonet' is neither a model nor an alias", "did you mean 'sonnet'")


def test_an_alias_is_stored_as_the_model_that_it_names(tmp_path: Path) -> None:
    planned = run_jp("query", "--dry-run", "--model", "opus", "hi", "--format", "json", cwd=tmp_path)

    assert json.loads(planned.stdout)["model"] == "anthropic/claude-opus-5-5"


def test_what_is_asked_for_is_kept_and_joined_with_what_is_configured(tmp_path: Path) -> None:
    price = '[providers.llm.mine.models.large]\ninput_price = 1.5\n[providers.llm.mine.models."not/there"]\n'
    with Loopback(otherwise=servers) as server:
        configure(tmp_path, server, "mine", more=price)
        done = run_jp("model", "ls", "mine", "--refresh", cwd=tmp_path)
        again = run_jp("model", "ls", "mine", cwd=tmp_path)
        everything = listed(tmp_path, "mine", "--all")["mine"]

        assert [request.target for request in server.requests] == ["/mine/models"]
    heading, _, first, second = done.stdout.splitlines()
    catalogue = everything["catalogue"]
    day = catalogue["at"][:10]
    assert heading.startswith(f"mine: catalogue of {day} (0 s ago), 1 not shown (--all), 1 skipped that cannot be used")
    assert first.split()[:6] == ["mine/large", "8,192", "-", "1.5", "-", "-"]
    assert "tools? images? schema?" in first
    assert second.split()[:3] == ["?", "mine/not/there", "-"]
    assert (again.code, again.stdout.splitlines()[1:]) == (0, done.stdout.splitlines()[1:])
    assert (catalogue["models"], catalogue["skipped"], everything["omitted"]) == (2, 1, 0)
    assert [model["name"] for model in everything["models"]] == ["large", "not/there", "large-20250101"]
    large = everything["models"][0]
    assert (large["id"], large["listed"], large["in_use"], large["input_price"]) == ("mine/large", True, False, 1.5)
    assert (large["sources"]["input_price"], large["sources"]["context_window"]) == ("config", "catalogue")
    assert [path.name for path in cache_of(tmp_path).iterdir()] == ["mine.json"]


def test_where_there_is_little_room_numbers_are_short(tmp_path: Path) -> None:
    wide = run_jp("model", "ls", "google", cwd=tmp_path)
    with jp_at_terminal("model", "ls", "google", cwd=tmp_path, size=(80, 24)) as terminal:
        assert terminal.finish() == 0

    assert re.search(
        r"^  google/gemini-3.8-flash +1,048,576  65,536   1.5   7.5    0.15  flash       low…high ",
        wide.stdout,
        re.MULTILINE,
    )
    lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal.shown).splitlines()
    assert any(
        re.match(r"  gemini-3.8-flash +1.0M   65.5k   1.5   7.5    0.15  low…high +tips$", line) for line in lines
    )
    assert lines[-2:] == ["(a model is PROVIDER/NAME; can: t tools, i images, p pdf, s schema)", "(no room for: alias)"]
    assert max(len(line) for line in lines if not line.startswith("note: ")) <= 80


def test_all_who_can_be_asked_are_and_who_fails_costs_only_its_own_rows(tmp_path: Path) -> None:
    with Loopback(otherwise=servers) as server:
        configure(tmp_path, server, "mine", "broken")
        done = run_jp("model", "ls", "--refresh", cwd=tmp_path)

    assert done.code == 0
    (local,) = (line for line in done.stdout.splitlines() if " ollama/llama3:latest " in line)
    assert local.split()[3:6] == ["free", "free", "free"]
    assert "  mine/large" in done.stdout
    assert "anthropic/claude-haiku-4-5" in done.stdout
    assert "ollama/emb" not in done.stdout
    notices = sorted(done.stderr.splitlines())
    assert notices[0].startswith("note: not asked: anthropic, openai, google, openrouter, cerebras (no key)")
    assert notices[1].startswith("note: shut down on ")
    assert notices[2] == "note: the models of broken did not come: broken answered 500: out of order"
    assert notices[3].startswith("note: the models of llamacpp did not come: llamacpp answered 404")
    assert len(notices) == 4


def test_where_nobody_could_be_asked_that_is_an_error(tmp_path: Path) -> None:
    configure(tmp_path, None)

    check_failure(
        run_jp("model", "ls", "--refresh", cwd=tmp_path), 5, "no provider has listed its models", "jp keys set"
    )


def test_a_provider_that_is_named_fails_with_its_own_error(tmp_path: Path) -> None:
    with Loopback(otherwise=servers) as server:
        configure(tmp_path, server, "mine", "broken", more="[providers.llm.nowhere]\n")
        broken = run_jp("model", "ls", "broken", "--refresh", "--format", "json", cwd=tmp_path)
        for provider, code, words in (
            ("openai", 4, "jp keys set openai"),
            ("nowhere", 3, "'providers.llm.nowhere.base_url' is not set"),
            ("mien", 3, "did you mean 'mine'?"),
            ("script", 2, "it plays scenario files"),
        ):
            check_failure(run_jp("model", "ls", provider, "--refresh", cwd=tmp_path), code, words)

    assert broken.code == 5
    assert json_error(broken)["message"] == "broken answered 500: out of order"


def test_nothing_is_kept_with_no_persist_or_where_it_cannot_be(tmp_path: Path) -> None:
    with Loopback(otherwise=servers) as server:
        configure(tmp_path, server, "mine")
        unkept = run_jp("model", "ls", "mine", "--refresh", "--no-persist", cwd=tmp_path)
        assert not cache_of(tmp_path).exists()
        cache_of(tmp_path).parent.mkdir(parents=True)
        cache_of(tmp_path).write_text("", encoding="utf-8")
        failed = run_jp("model", "ls", "mine", "--refresh", cwd=tmp_path)

    assert (unkept.code, unkept.stderr) == (0, "")
    assert "mine/large" in unkept.stdout
    assert failed.code == 0
    assert failed.stdout.splitlines()[1:] == unkept.stdout.splitlines()[1:]
    assert failed.stderr.startswith("note: the models of mine are not kept: cannot write ")


def test_a_catalogue_that_cannot_be_read_does_not_count(tmp_path: Path) -> None:
    configure(tmp_path, None, "mine")
    cache_of(tmp_path).mkdir(parents=True)
    (cache_of(tmp_path) / "mine.json").write_text("{", encoding="utf-8")

    done = run_jp("model", "ls", "mine", cwd=tmp_path)
    shown = run_jp("model", "show", "mine/x", cwd=tmp_path)

    path = cache_of(tmp_path) / "mine.json"
    assert done.stdout == "mine: nothing is known yet; `jp model ls mine --refresh` asks\n"
    assert done.stderr == (
        f"note: {str(path)!r} is malformed, so it is ignored; `jp model ls mine --refresh` replaces it\n"
    )
    assert shown.stderr.startswith(f"note: {str(path)!r} is malformed, so it is ignored\n")


def test_a_stranger_cannot_say_where_models_are_asked_for(tmp_path: Path) -> None:
    with Loopback(otherwise=servers) as server:
        make_workspace(tmp_path, settings=f'[providers.llm.openai]\nbase_url = "{server.url}/mine"')
        done = run_jp("model", "ls", "openai", "--no-persist", cwd=tmp_path, env={"OPENAI_API_KEY": "sk-secret"})
        asked = run_jp(
            "-c", "providers.llm.openai.base_url=http://127.0.0.1:1", "model", "ls", "openai", "--refresh", cwd=tmp_path
        )

        assert server.requests == []
    assert (done.code, asked.code) == (0, 4)
    assert done.stderr.startswith("note: ignored until trusted: providers.llm.openai.base_url = 'http://")


def test_a_model_is_shown_with_where_each_value_is_from(tmp_path: Path) -> None:
    settings = (
        '[providers.llm.aliases]\nsmart = "ollama/llama3"\n[providers.llm.ollama.models.llama3]\ninput_price = 0\n'
    )
    with Loopback(otherwise=servers) as server:
        configure(tmp_path, server, more=settings.replace("[providers.llm.ollama.", "\n[providers.llm.ollama."))
        run_jp("model", "ls", "ollama", "--refresh", cwd=tmp_path)
        done = run_jp("model", "show", "smart", cwd=tmp_path)
        value = json.loads(run_jp("model", "show", "smart", "-F", "json", cwd=tmp_path).stdout)["model"]

    day = value["catalogue_at"][:10]
    assert (done.code, done.stderr) == (0, "")
    facts = {line[:16].strip(): line[16:].split("  ") for line in done.stdout.splitlines()}
    assert facts["model"] == ["ollama/llama3"]
    assert facts["listed as"] == ["llama3:latest"]
    assert facts["aliases"] == ["smart"]
    assert [facts["context window"][0], facts["context window"][-1].strip()] == ["8,192 tokens", f"catalogue of {day}"]
    assert [facts["input"][0], facts["input"][-1].strip()] == ["free", "config"]
    assert facts["output"] == ["unknown"]
    assert facts["tools"][0] == "no"
    assert (value["input_price"], value["output_price"], value["listed"]) == (0.0, None, True)
    assert value["sources"]["tools"] == "catalogue"


def test_models_that_their_provider_shuts_down_are_named_with_the_day(tmp_path: Path) -> None:
    done = run_jp("model", "ls", "openai", cwd=tmp_path)
    shown = run_jp("model", "show", "openai/gpt-5-mini", cwd=tmp_path)
    value = json.loads(run_jp("model", "show", "openai/gpt-5-mini", "-F", "json", cwd=tmp_path).stdout)["model"]
    routed = run_jp("model", "show", "openrouter/openai/gpt-5-mini", cwd=tmp_path)
    deprecated = run_jp("model", "show", "google/gemini-3.7-flash", cwd=tmp_path)

    (note,) = done.stderr.splitlines()
    assert note.startswith("note: shut down on 2026-12-11: openai/gpt-5, openai/gpt-5-mini, ")
    assert "; shut down on 2027-01-14: openai/gpt-4.1, " in note
    assert shown.stderr == "note: openai/gpt-5-mini shuts down on 2026-12-11; use openai/gpt-6.1-terra\n"
    assert (value["shutdown"], value["successor"]) == ("2026-12-11", "gpt-6.1-terra")
    assert routed.stderr == ""
    assert deprecated.stderr == (
        "note: google/gemini-3.7-flash is deprecated: google/gemini-3.8-flash answers for it\n"
    )


def test_the_day_that_openai_lists_goes_before_that_of_the_table(tmp_path: Path) -> None:
    rows = {"data": [{"id": "gpt-5-mini", "shutdown_date": "2027-02-03"}, {"id": "gpt-6-sol", "shutdown_date": None}]}
    with Loopback(otherwise=answer(rows)) as server:
        configure(tmp_path, None, more=f'[providers.llm.openai]\nbase_url = "{server.url}"\n')
        done = run_jp("model", "ls", "openai", "--refresh", cwd=tmp_path, env={"OPENAI_API_KEY": "k"})

    assert "shut down on 2027-02-03: openai/gpt-5-mini" in done.stderr
    assert "openai/gpt-6-sol" not in done.stderr


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("mine/larg", ("mine does not list 'larg' (catalogue of", "near: 'mine/large'")),
        (
            "anthropic/claude-haiky-4-5",
            (
                "is not in jp's table, so what it can do is inferred from its name",
                "near: 'anthropic/claude-haiku-4-5'",
            ),
        ),
    ],
)
def test_a_model_that_nobody_lists_is_shown_with_a_doubt(model: str, words: tuple[str, ...], tmp_path: Path) -> None:
    with Loopback(otherwise=servers) as server:
        configure(tmp_path, server, "mine")
        run_jp("model", "ls", "mine", "--refresh", cwd=tmp_path)

    done = run_jp("model", "show", model, cwd=tmp_path)

    assert done.code == 0
    assert done.stdout.startswith(f"model           {model}\n")
    assert [word for word in words if word not in done.stderr] == []
    assert "inferred" in done.stdout


def test_a_price_of_the_users_own_is_that_of_an_estimate(tmp_path: Path) -> None:
    configure(
        tmp_path,
        None,
        more='[providers.llm.anthropic.models."claude-haiku-4-5"]\ninput_price = 1000.0\ncontext_window = 77000\n',
    )

    done = run_jp("query", "--model", "anthropic/claude-haiku-4-5", "--dry-run", "-F", "json", "hi", cwd=tmp_path)

    estimate = json.loads(done.stdout)["estimate"]
    assert estimate["context_window"] == 77_000
    assert estimate["usd"] == pytest.approx(estimate["total"] / 1000)


def test_what_a_provider_has_said_counts_for_an_estimate(tmp_path: Path) -> None:
    def window() -> int:
        done = run_jp("query", "--model", "ollama/llama3", "--dry-run", "-F", "json", "hi", cwd=tmp_path)
        return json.loads(done.stdout)["estimate"]["context_window"]

    with Loopback(otherwise=servers) as server:
        configure(tmp_path, server)
        before = window()
        run_jp("model", "ls", "ollama", "--refresh", cwd=tmp_path)

    assert (before, window()) == (16_384, 8_192)


@pytest.mark.parametrize(
    ("model", "price"),
    [("ollama/llama3", ", free"), ("mine/large", ", price unknown"), ("openai/gpt-4o", ", about $0.0")],
)
def test_a_dry_run_says_what_is_known_of_the_price(model: str, price: str, tmp_path: Path) -> None:
    configure(tmp_path, None, "mine")

    done = run_jp("query", "--model", model, "--dry-run", "hi", cwd=tmp_path)

    assert re.search(rf"^total      about [\d,]+( of [\d,]+)? tokens{re.escape(price)}", done.stdout, re.MULTILINE)


def test_a_server_of_the_users_own_that_may_be_misspelt_is_said(tmp_path: Path) -> None:
    configure(tmp_path, None, more='[providers.llm.anthropc]\nbase_url = "http://127.0.0.1:1"\n')

    done = run_jp("query", "--model", "anthropic/claude-haiku-4-5", "--dry-run", "hi", cwd=tmp_path)

    assert (done.code, done.stderr) == (
        0,
        "note: `providers.llm.anthropc` is a server of your own: nothing that is set there holds for 'anthropic'\n",
    )


def test_ctrl_c_ends_the_wait_and_keeps_what_came(tmp_path: Path) -> None:
    gate = threading.Event()

    def reply(request: Received) -> Reply:
        if request.target == "/api/tags":
            return Reply(ends="hang", headless=True)
        gate.set()
        return servers(request)

    with Loopback(otherwise=reply) as server:
        configure(tmp_path, server, "mine")
        process = start_jp("model", "ls", "--refresh", cwd=tmp_path)
        assert gate.wait(TIMEOUT_SECS)
        while not (cache_of(tmp_path) / "mine.json").exists():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_SECS)

    assert (process.returncode, out, err) == (130, b"", b"")


def test_at_a_terminal_it_says_who_is_waited_for(tmp_path: Path) -> None:
    gate = threading.Event()

    def reply(request: Received) -> Reply:
        return Reply(body=msgspec.json.encode(MINE), headers=JSON, gates={0: gate})

    with Loopback(otherwise=reply) as server:
        configure(tmp_path, server, "mine")
        with jp_at_terminal("model", "ls", "mine", "--refresh", cwd=tmp_path) as terminal:
            terminal.expect("waiting for the models of mine")
            gate.set()
            terminal.expect("mine/large")
            assert terminal.finish() == 0

    assert "waiting" not in terminal.stays


@pytest.mark.parametrize(
    ("model", "note"),
    [
        ("nonsense", "note: 'nonsense' is neither a model nor an alias: a model is `provider/name`"),
        ("opnai/gpt-5", "note: there is no provider 'opnai': did you mean 'openai'?"),
        ("openai/nobody-knows", ""),
    ],
)
def test_who_sets_a_model_that_cannot_be_is_told(tmp_path: Path, model: str, note: str) -> None:
    make_workspace(tmp_path)

    done = run_jp("config", "set", f"assistant.model.id={model}", cwd=tmp_path)

    assert (done.code, done.stdout) == (0, f"{tmp_path / '.jp' / 'config.toml'}\n")
    assert done.stderr.startswith(note)
    assert bool(done.stderr) == bool(note)
