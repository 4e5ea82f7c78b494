from __future__ import annotations

import pytest

from jp.provider.listing import ListedModel, Page
from jp.provider.llamacpp.vendor import with_properties
from jp.provider.ollama.vendor import listed as read_ollama
from jp.provider.registry import vendor_of


def read_page(kind: str, body: object) -> Page | None:
    return vendor_of("openai-compatible" if kind == "x" else kind).models.read(body)


def only(kind: str, where: str, entry: object) -> ListedModel:
    page = read_page(kind, {where: [entry]})
    assert page is not None
    (model,) = page.models
    return model


@pytest.mark.parametrize("kind", ["anthropic", "google", "openai", "openrouter", "cerebras", "ollama", "llamacpp", "x"])
def test_what_is_no_list_is_told_from_an_empty_one(kind: str) -> None:
    where = "models" if kind in {"google", "ollama"} else "data"

    assert read_page(kind, {where: []}) == Page(models=())
    bodies: tuple[object, ...] = ({}, {where: {}}, [], None, "x")
    assert [read_page(kind, body) for body in bodies] == [None] * 5


def test_what_cannot_be_used_is_counted_and_what_comes_twice_is_there_once() -> None:
    entries = [{"id": "a"}, {"id": "~a/latest"}, "b", None, {"id": 3}, {"id": "a", "max_tokens": 5}, {"id": "c"}]

    page = read_page("anthropic", {"data": entries})

    assert page == Page(models=(ListedModel(id="a"), ListedModel(id="c")), skipped=4)


def test_the_next_page_is_asked_for_only_where_there_is_one() -> None:
    def after(kind: str, body: object) -> str:
        page = read_page(kind, body)
        assert page is not None
        return page.next

    assert after("anthropic", {"data": [], "has_more": True, "last_id": "z"}) == "z"
    assert after("anthropic", {"data": [], "has_more": False, "last_id": "z"}) == ""
    assert after("google", {"models": [], "nextPageToken": "z"}) == "z"
    assert after("google", {"models": [], "nextPageToken": ""}) == ""
    assert after("openai", {"data": [], "has_more": True, "last_id": "z"}) == ""


def test_anthropic_says_what_a_model_can_do() -> None:
    yes, no = {"supported": True}, {"supported": False}
    entry = {
        "id": "claude-x",
        "display_name": "Claude X",
        "max_input_tokens": 200_000,
        "max_tokens": 0,
        "capabilities": {
            "effort": {**yes, "low": yes, "max": yes, "high": no},
            "image_input": yes,
            "pdf_input": no,
            "structured_outputs": "?",
            "thinking": yes,
        },
    }

    assert only("anthropic", "data", entry) == ListedModel(
        id="claude-x",
        title="Claude X",
        context_window=200_000,
        images=True,
        documents=False,
        thinks=True,
        levels=("low", "max"),
    )


def test_google_says_which_models_answer() -> None:
    entry = {"name": "models/gemini-x", "inputTokenLimit": 10, "outputTokenLimit": 5, "thinking": True}

    assert only("google", "models", entry) == ListedModel(id="gemini-x", context_window=10, max_output=5, thinks=True)
    assert only("google", "models", {**entry, "supportedGenerationMethods": ["generateContent"]}).answers is True
    assert only("google", "models", {**entry, "supportedActions": ["embedContent"]}).answers is False


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("gpt-5.6", None),
        ("o3-pro", None),
        ("text-embedding-3-small", False),
        ("whisper-1", False),
        ("gpt-image-2", False),
        ("gpt-4o-transcribe", False),
        ("gpt-audio-1.5", False),
        ("dall-e-3", False),
        ("gpt-3.5-turbo-instruct", False),
        ("chat-latest", None),
        ("davinci-002", False),
    ],
)
def test_openai_says_names_alone(name: str, *, answers: bool | None) -> None:
    assert only("openai", "data", {"id": name, "object": "model"}) == ListedModel(id=name, answers=answers)


def test_openrouter_says_what_the_best_server_of_a_model_takes() -> None:
    entry = {
        "id": "acme/large:free",
        "name": "Acme: Large",
        "context_length": 200_000,
        "top_provider": {"context_length": 131_072, "max_completion_tokens": 8_192},
        "pricing": {"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003", "image": "1"},
        "architecture": {"input_modalities": ["text", "image"], "output_modalities": ["text"]},
        "supported_parameters": ["tools", "reasoning"],
        "reasoning": {"mandatory": True, "default_enabled": True, "supported_efforts": ["max", "high", "low"]},
        "expiration_date": "2027-01-31",
    }

    assert only("openrouter", "data", entry) == ListedModel(
        id="acme/large:free",
        title="Acme: Large",
        context_window=131_072,
        max_output=8_192,
        input_price=3.0,
        output_price=15.0,
        cache_read_price=0.3,
        tools=True,
        images=True,
        documents=False,
        structured=False,
        thinks=True,
        answers=True,
        levels=("low", "high", "max"),
        mandatory=True,
        thinks_by_default=True,
        budgets=False,
        shutdown="2027-01-31",
    )
    latest = {"id": "~acme/large-latest", "reasoning": {"mandatory": False, "supports_max_tokens": True}}
    assert only("openrouter", "data", latest) == ListedModel(id="~acme/large-latest", mandatory=False, budgets=True)
    bare = {"id": "openrouter/auto", "context_length": 2_000_000, "pricing": {"prompt": "-1", "completion": "-1"}}
    assert only("openrouter", "data", bare) == ListedModel(id="openrouter/auto", context_window=2_000_000)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"max_model_len": 4096}, ListedModel(id="m", context_window=4096)),
        (
            {"context_window": 131_072, "max_completion_tokens": 8},
            ListedModel(id="m", context_window=131_072, max_output=8),
        ),
        ({"max_context_length": 7, "max_output_tokens": 3}, ListedModel(id="m", context_window=7, max_output=3)),
        ({"meta": {"n_ctx_train": 9}}, ListedModel(id="m", context_window=9)),
        ({"meta": {"n_ctx_train": 9, "n_ctx": 5}}, ListedModel(id="m", context_window=5)),
        ({"aliases": ["m", "n", 3, "k"]}, ListedModel(id="m", aliases=("k", "n"))),
        (
            {"capabilities": {"function_calling": True, "vision": False, "completion_chat": True}},
            ListedModel(id="m", tools=True, images=False, answers=True),
        ),
        ({"capabilities": ["completion"], "context_length": "long"}, ListedModel(id="m")),
    ],
)
def test_compatible_servers_say_what_they_like(said: dict[str, object], expected: ListedModel) -> None:
    assert only("openai-compatible", "data", {"id": "m", **said}) == expected


def test_ollama_says_more_of_a_model_when_it_is_shown() -> None:
    listed = {"model": "llama3:latest", "details": {"context_length": 8192}, "capabilities": ["completion", "tools"]}
    shown: dict[str, object] = {
        "model": "emb",
        "model_info": {"bert.context_length": 512, "x": 1},
        "capabilities": ["embedding"],
    }

    assert only("ollama", "models", listed) == ListedModel(
        id="llama3:latest",
        aliases=("llama3",),
        context_window=8192,
        tools=True,
        images=False,
        thinks=False,
        answers=True,
    )
    assert read_ollama(shown) == ListedModel(
        id="emb", context_window=512, tools=False, images=False, thinks=False, answers=False
    )
    assert only("ollama", "models", {"name": "old"}) == ListedModel(id="old")


def test_llamacpp_holds_what_it_was_told_to_hold_of_the_one_model_that_it_has() -> None:
    page = (ListedModel(id="m", context_window=262_144),)
    two = (ListedModel(id="m"), ListedModel(id="n"))
    properties = {
        "default_generation_settings": {"n_ctx": 8192},
        "modalities": {"vision": True},
        "chat_template_caps": {"supports_tools": True},
    }

    assert with_properties(page, properties) == (ListedModel(id="m", context_window=8192, images=True, tools=True),)
    assert with_properties(two, properties) == two
    for nothing in (None, {}, {"default_generation_settings": {"n_ctx": 0}}):
        assert with_properties(page, nothing) == page
