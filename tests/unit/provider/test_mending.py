from __future__ import annotations

from collections.abc import Mapping

from jp.provider.errors import ErrorKind
from jp.provider.registry import vendor_of


def hints_of(kind: str, provider: str, model: str) -> Mapping[ErrorKind, str]:
    hints = vendor_of(kind).hints
    return {} if hints is None else hints(provider, model)


def test_a_model_of_ollama_can_be_pulled_and_its_window_be_set() -> None:
    hints = hints_of("ollama", "den", "qwen3:8b")

    assert hints["model_not_found"] == "`ollama pull qwen3:8b` downloads it, `ollama list` shows the downloaded models"
    assert "`providers.llm.den.context_window`" in hints["context_too_long"]


def test_the_window_of_llama_cpp_is_set_where_the_server_starts() -> None:
    assert "`llama-server --ctx-size" in hints_of("llamacpp", "llamacpp", "m")["context_too_long"]


def test_nothing_more_is_known_of_others() -> None:
    assert hints_of("openai", "openai", "m") == {}


def test_what_a_server_of_ones_own_does_not_take_is_a_matter_of_its_settings() -> None:
    assert "`providers.llm.mine` has settings" in hints_of("openai-compatible", "mine", "m")["invalid_request"]
