from __future__ import annotations

from jp.conversation.entries import Usage
from jp.provider.models import cost, find_model, small_model


def test_a_known_model_has_its_limits_and_its_price() -> None:
    details = find_model("cerebras", "gpt-oss-120b").details

    assert (details.context_window, details.max_output) == (131_072, 40_960)
    assert cost(Usage(input=1_000_000, output=1_000_000), details) == 1.1


def test_what_is_read_from_the_cache_costs_what_is_not_known() -> None:
    assert cost(Usage(input=1, cache_read=1), find_model("cerebras", "gpt-oss-120b").details) is None


def test_the_cheap_model_is_there_for_every_other() -> None:
    assert small_model("cerebras", "zai-glm-4.7") == "gpt-oss-120b"
    assert small_model("cerebras", "brand-new") == "gpt-oss-120b"


def test_a_name_tells_what_can_be_expected() -> None:
    assert find_model("cerebras", "gpt-oss-9b").abilities.thinking_off == "never"
    assert find_model("cerebras", "zai-glm-9").abilities.levels[0] == "none"
    assert find_model("cerebras", "qwen-3-235b-a22b-instruct-2507").abilities.thinking == "none"
    assert find_model("cerebras", "brand-new").abilities.thinking == "levels"
