from __future__ import annotations

import pytest

from jp.conversation.thread import Parameters
from jp.provider.models import find_model
from jp.provider.ollama.request import think_of, unmet

QWEN, LLAMA, OSS, NEW = "qwen3.5:9b", "llama3:latest", "gpt-oss:20b", "new:1b"


@pytest.mark.parametrize(
    ("model", "reasoning", "think", "said"),
    [
        (QWEN, None, True, ()),
        (QWEN, "off", False, ()),
        (QWEN, "none", False, ()),
        (QWEN, "auto", True, ()),
        (QWEN, "high", True, ("reasoning 'high' sent as on: 'qwen3.5:9b' knows no efforts",)),
        (LLAMA, None, False, ()),
        (LLAMA, "off", False, ()),
        (LLAMA, "auto", False, ("reasoning 'auto' not sent: 'llama3:latest' does not reason",)),
        (OSS, None, "medium", ()),
        (OSS, "auto", "medium", ()),
        (OSS, "off", "low", ("'gpt-oss:20b' cannot be kept from reasoning",)),
        (OSS, "high", "high", ()),
        (OSS, "max", "high", ("reasoning 'max' sent as 'high'",)),
        (OSS, 16_384, "high", ("reasoning 16384 sent as 'high'",)),
        (NEW, None, False, ()),
        (NEW, "auto", True, ()),
    ],
)
def test_a_server_is_always_told_whether_to_think(
    model: str, reasoning: str | int | None, think: object, said: tuple[str, ...]
) -> None:
    known = find_model("ollama", model)
    parameters = Parameters(reasoning=reasoning)  # pyright: ignore[reportArgumentType] - each is one of the words

    wanted = think_of(parameters, known)

    assert (wanted, tuple(unmet(parameters, known, wanted))) == (think, said)
