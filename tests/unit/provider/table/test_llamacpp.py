from __future__ import annotations

from jp.provider.models import find_model, model_table, small_model


def test_a_server_has_one_model_under_any_name() -> None:
    assert model_table("llamacpp").is_own("any")
    assert small_model("llamacpp", "any") is None
    assert find_model("llamacpp", "any").abilities.levels == ()


def test_one_family_can_be_told_how_much_to_think() -> None:
    assert find_model("llamacpp", "ggml-org/GPT-OSS-20b").abilities.levels == ("low", "medium", "high")
