"""Where `web_fetch` and attachments of the web connect to, whatever a name resolves to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forked import run_jp
from loopback import HTML, Loopback, Reply
from running import Result
from stage import make_workspace

SCRIPT = """
import json, os, socket, sys

answers = json.loads(os.environ["NAMES"])
real = socket.getaddrinfo


def resolve(host, port, *more, **further):
    name = host.decode() if isinstance(host, bytes) else host
    known = answers.get(name)
    if known is None:
        return real(host, port, *more, **further)
    with open(os.environ["RESOLVED"], "a", encoding="utf-8") as file:
        file.write(f"{name}\\n")
    found = known.pop(0) if len(known) > 1 else known[0]
    return [entry for address in found for entry in real(address, port, *more, **further)]


def connect(self, address):
    with open(os.environ["CONNECTED"], "a", encoding="utf-8") as file:
        file.write(f"{address[0]}\\n")
    if not address[0].startswith("127.") and address[0] != "::1":
        raise ConnectionRefusedError(111, "Connection refused")
    return reached(self, address)


reached = socket.socket.connect
socket.getaddrinfo = resolve
socket.socket.connect = connect
from jp.__main__ import main
main()
"""
LOCAL = "local_network = true"


class Stage:
    """A workspace in which a model fetches, and names that resolve as a test says: each time to the next addresses."""

    def __init__(self, tmp_path: Path, names: dict[str, list[list[str]]]) -> None:
        self.script = tmp_path / "names.py"
        self.script.write_text(SCRIPT, encoding="utf-8")
        self.root = tmp_path / "work"
        self.files = {"RESOLVED": tmp_path / "resolved", "CONNECTED": tmp_path / "connected"}
        self.environment = {"NAMES": json.dumps(names), **{name: str(path) for name, path in self.files.items()}}

    def told(self, name: str) -> list[str]:
        path = self.files[name]
        return path.read_text(encoding="utf-8").split() if path.exists() else []

    def run(self, *arguments: str) -> Result:
        return run_jp(*arguments, cwd=self.root, script=self.script, env=self.environment)

    def fetch(self, url: str, access: str = "") -> str:
        """What the model gets to see."""
        scenario = f"""
[[reply]]
when = {{ contains = "look" }}
calls = [{{ name = "web_fetch", arguments = {{ url = {json.dumps(url)} }} }}]
[[reply]]
text = "Noted."
"""
        settings = f"[conversation.tools.web_fetch]\nenable = true\n[conversation.tools.web_fetch.access]\n{access}\n"
        make_workspace(self.root, scenario, settings=settings)
        run_jp("workspace", "trust", "--yes", cwd=self.root)
        done = self.run("query", "--approve-all", "--format", "json", "look")
        assert done.code == 0, done.stderr
        entries = [json.loads(line) for line in done.stdout.splitlines()]
        (response,) = [entry for entry in entries if entry["type"] == "tool_call_response"]
        return json.dumps(response)

    def attach(self, uri: str) -> Result:
        make_workspace(self.root)
        return self.run("query", "--attach", uri, "look")


SECRET = Reply(headers=HTML, body=b"<html><main><p>the crown jewels</p></main></html>")


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["::ffff:127.0.0.1"], ["::1"], ["10.0.0.7"], ["169.254.169.254"],
     ["100.64.0.1"], ["fd00:ec2::254"], ["64:ff9b::7f00:1"], ["0.0.0.0"]],  # noqa: S104 - nothing is bound
)  # fmt: skip
def test_a_name_that_resolves_into_the_users_network_is_not_fetched_for_a_model(
    tmp_path: Path, addresses: list[str]
) -> None:
    stage = Stage(tmp_path, {"news.example": [addresses]})
    with Loopback(SECRET) as server:
        told = stage.fetch(server.url.replace("127.0.0.1", "news.example"))

        assert not server.requests
    assert "crown jewels" not in told
    assert "is not fetched: 'news.example' is at" in told
    assert not stage.told("CONNECTED")


@pytest.mark.parametrize(
    "host",
    [
        "0x7f.1",
        "2130706433",
        "0177.0.0.1",
        "[::ffff:127.0.0.1]",
        "127.0.0.1.",
        "\uff11\uff12\uff17.0.0.1",
        "localhost.",
    ],
)
def test_no_spelling_of_an_address_gets_around_the_rule(tmp_path: Path, host: str) -> None:
    stage = Stage(tmp_path, {})
    with Loopback(SECRET) as server:
        told = stage.fetch(server.url.replace("127.0.0.1", host))

        assert not server.requests
    assert "crown jewels" not in told
    assert '"is_error":' in told
    assert "must not be reached" in told or "is not fetched" in told


def test_what_is_connected_to_is_what_was_judged_however_the_name_resolves_next(tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"news.example": [["93.184.216.34"], ["127.0.0.1"]]})
    with Loopback(SECRET) as server:
        told = stage.fetch(server.url.replace("127.0.0.1", "news.example"))

        assert not server.requests
    assert "no connection to 'news.example'" in told
    assert (stage.told("RESOLVED"), stage.told("CONNECTED")) == (["news.example"], ["93.184.216.34"])


def test_the_own_network_is_fetched_where_a_setting_allows_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"news.example": [["127.0.0.1"]]})
    with Loopback(SECRET) as server:
        told = stage.fetch(server.url.replace("127.0.0.1", "news.example"), LOCAL)

        assert server.requests[0].headers["host"] == server.url.replace("127.0.0.1", "news.example")[len("http://") :]
    assert "crown jewels" in told


@pytest.mark.parametrize("host", ["169.254.169.254", "news.example"])
def test_metadata_is_never_fetched_for_a_model(tmp_path: Path, host: str) -> None:
    stage = Stage(tmp_path, {"news.example": [["169.254.169.254"]]})
    told = stage.fetch(f"http://{host}/latest/meta-data/", LOCAL)

    assert "where a cloud keeps the credentials" in told
    assert not stage.told("CONNECTED")


def test_each_redirect_is_judged(tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"news.example": [["10.0.0.7"]]})
    with Loopback(Reply(status=302, headers=(("location", "http://news.example/x"),))) as server:
        asked = stage.attach(server.url)

    assert asked.code == 10
    assert "redirects to 'news.example' is at '10.0.0.7', which is in your own network" in asked.stderr
    assert stage.told("CONNECTED") == ["127.0.0.1"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "wiki.example"])
def test_what_a_person_types_may_lie_in_the_own_network(tmp_path: Path, host: str) -> None:
    stage = Stage(tmp_path, {"wiki.example": [["127.0.0.1"]]})
    with Loopback(SECRET) as server:
        asked = stage.attach(server.url.replace("127.0.0.1", host))

        assert len(server.requests) == 1
    assert asked.code == 0, asked.stderr


def test_a_name_that_a_person_types_leads_nowhere_near_credentials(tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"wiki.example": [["169.254.169.254"]]})
    asked = stage.attach("http://wiki.example/")

    assert asked.code == 10
    assert "'wiki.example' is at '169.254.169.254', which is where a cloud keeps the credentials" in asked.stderr
    assert not stage.told("CONNECTED")


def test_what_a_file_declares_lies_in_public_unless_it_says_otherwise(tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"wiki.example": [["127.0.0.1"]]})
    with Loopback(SECRET, SECRET) as server:
        url = server.url.replace("127.0.0.1", "wiki.example")
        make_workspace(stage.root)
        home = stage.root.parent / f".home-of-{stage.root.name}" / "config"
        home.mkdir(parents=True, exist_ok=True)
        (home / "config.toml").write_text(f'conversation.attachments = ["{url}/"]\n', encoding="utf-8")
        by_name = stage.run("query", "look")
        (home / "config.toml").write_text(f'conversation.attachments = ["{server.url}/"]\n', encoding="utf-8")
        by_number = stage.run("query", "--new", "look")

    assert (by_name.code, by_number.code) == (10, 0), by_number.stderr
    assert "'wiki.example' is at '127.0.0.1', which is this machine" in by_name.stderr


def test_a_name_that_resolves_locally_is_judged_before_a_proxy_is_asked(tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"news.example": [["127.0.0.1"]]})
    with Loopback(SECRET) as proxy:
        stage.environment["HTTP_PROXY"] = proxy.url
        told = stage.fetch("http://news.example/")

        assert not proxy.requests
    assert "is not fetched: 'news.example' is at '127.0.0.1'" in told
