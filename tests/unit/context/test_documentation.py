"""The snippets of `docs/context.md`, one after the other."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jp.context.budget import Budget
from jp.context.markers import Artifacts, Cutter, marked_handles
from jp.context.types import Call, Message, Transcript

PAGE = Path(__file__).parents[3] / "docs" / "context.md"
MODULES = Path(__file__).parents[3] / "src" / "jp" / "context"


def run_snippets() -> dict[str, Any]:
    names: dict[str, Any] = {}
    for snippet in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(snippet, str(PAGE), "exec"), names)  # noqa: S102 - the page is ours
    return names


def test_the_host_of_the_page_makes_room(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_snippets()
    make_room: Callable[[Transcript, Budget, Cutter], Transcript] = names["make_room"]
    store: Artifacts = names["Store"]()
    arguments = '{"content": "' + "x" * 2_000 + '"}'
    call = Message(role="assistant", calls=(Call(id="a", name="run", arguments=arguments),))
    exchange = (Message(role="user", content="go"), call, Message(role="tool", call_id="a", content="ok " * 300))
    messages = exchange * 40

    room = make_room(messages, Budget(window=32_000, reserved=4_000), Cutter("5eed5eed", store))

    assert [len(row.calls[0].arguments) for row in room if row.calls] == [2_015] + [415] * 30 + [2_015] * 9
    handles = {handle for row in room for call in row.calls for handle in marked_handles(call.arguments, "5eed5eed")}
    assert [store.recall(handle) for handle in handles] == ["x" * 2_000]
    assert capsys.readouterr().out.splitlines() == [
        "70000 tokens",
        "not run: recall 0123abcd",
        "reordered",
        "tools 1 long tools",
        "system 0 long static_prefix",
        "messages 0 short newest",
        "part 0: a timestamp (0000-00-00a00:00:00a) changes what should not",
        '{"system":"…","messages":["new"]}',
        "23 requests",
        "[('system_prompt', 891), ('conversation', 9)] 119100",
        "over_threshold 5",
        "[compacted] run: error; make check; exit 2; 4002 lines, 12033 bytes; recall 1ee69fbb",
        "error: no rule for total",
        "curl -H 'Authorization: Bearer [redacted:authorization]' https://jane:[redacted:password]@example.com/?page_token=7",
        "24350 tokens in 9445",
        "6854 tokens at the end stay as they are (crossing), the latest request is among them",
    ]


def test_the_host_of_the_page_has_summaries_written() -> None:
    names = run_snippets()
    cutter = Cutter("5eed5eed", names["Store"]())
    asked: list[str] = []

    def complete(prompt: str) -> str:
        asked.append(prompt)
        return '{"goal": "mend it", "next_step": "test it", "requirements": ["Keep it green", "be quick"]}'

    messages = (
        Message(role="user", content="go, and keep it green"),
        Message(role="assistant", content="I went. " * 2_000),
    ) * 9
    at = names["SummaryCircumstances"](now=0.0, configuration="", used=0)
    fence = "a1B2c3D4e5F6a7B8"

    found = names["summarise"](messages, (0, 16), cutter, names["Summarizer"](complete), at, fence)

    assert (found.status, found.calls, found.messages[1:]) == ("summarised", len(asked), messages[16:])
    assert asked[0].startswith(fence)
    assert "- Keep it green" in found.messages[0].content
    assert "be quick" not in found.messages[0].content


def test_the_page_names_every_module() -> None:
    named = set(re.findall(r"`(\w+)`", PAGE.read_text(encoding="utf-8")))

    assert {path.stem for path in MODULES.glob("*.py")} - {"__init__", "types", "json_lexer"} <= named


def test_the_library_loads_nothing_of_the_rest_of_jp() -> None:
    names = [f"jp.context.{path.stem}" for path in sorted(MODULES.glob("*.py")) if path.stem != "__init__"]
    loads = f"import sys, importlib; [importlib.import_module(name) for name in {names!r}]; print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", loads], capture_output=True, encoding="utf-8", check=True)

    loaded = {
        name for name in done.stdout.split() if name.startswith(("jp.", "anthropic", "openai", "google", "httpx2"))
    }
    assert {name for name in loaded if not name.startswith("jp.context")} <= {"jp.errors", "jp.reading", "jp.likeness"}
