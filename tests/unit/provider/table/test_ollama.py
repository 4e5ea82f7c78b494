from __future__ import annotations

import pytest

from jp.provider.models import find_model, model_table, small_model


@pytest.mark.parametrize(
    ("name", "thinking", "by_default", "sees"),
    [
        ("qwen3.5:9b", "adaptive", True, True),
        ("hf.co/unsloth/Qwen3-8B-GGUF", "adaptive", True, False),
        ("qwen3-coder:30b", "none", False, False),
        ("qwen3-vl:8b", "adaptive", True, True),
        ("qwen2.5vl:7b", "none", False, True),
        ("llama3:latest", "none", False, False),
        ("llama3.2-vision:11b", "none", False, True),
        ("gemma3:4b", "none", False, True),
        ("mistral", "none", False, False),
        ("mistral-small3.2", "none", False, True),
        ("phi4", "none", False, False),
        ("phi4-reasoning", "adaptive", True, False),
        ("deepseek-r1:8b", "adaptive", True, False),
        ("gpt-oss:20b", "levels", True, False),
        ("brand-new:7b", "adaptive", False, True),
    ],
)
def test_a_name_tells_what_can_be_expected(name: str, thinking: str, *, by_default: bool, sees: bool) -> None:
    abilities = find_model("ollama", name).abilities

    assert (abilities.thinking, abilities.thinks_by_default, abilities.images) == (thinking, by_default, sees)
    assert not abilities.documents


def test_a_name_that_tells_nothing_is_left_to_the_server() -> None:
    found = find_model("ollama", "brand-new:7b")

    assert (found.abilities.thinking, found.abilities.thinks_by_default) == ("adaptive", False)
    assert found.details.context_window is None


def test_no_other_model_is_small_enough_to_stand_beside() -> None:
    assert model_table("ollama").is_own("llama3")
    assert small_model("ollama", "llama3") is None
