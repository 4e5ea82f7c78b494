from __future__ import annotations

import pytest

from jp.config.assignment import Assignment
from jp.config.model import Section
from jp.config.schema import Table, key_text
from jp.config.sources import environment_assignments, key_of
from jp.errors import ConfigurationError


class Inner(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of two tables."""

    c: int = 0
    b_c: int = 0


class Outer(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table in which a variable may mean two keys."""

    a: Inner = Inner()
    a_b: Inner = Inner()


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("JP_CFG_USER_NAME", "user.name"),
        ("JP_CFG_ASSISTANT_MODEL_ID", "assistant.model.id"),
        ("JP_CFG_ASSISTANT_MODEL_PARAMETERS_MAX_TOKENS", "assistant.model.parameters.max_tokens"),
        ("JP_CFG_ASSISTANT__MODEL__PARAMETERS__MAX_TOKENS", "assistant.model.parameters.max_tokens"),
        ("JP_CFG_ASSISTANT_MODEL__PARAMETERS_MAX_TOKENS", "assistant.model.parameters.max_tokens"),
        ("JP_CFG_ASSISTANT_SYSTEM_PROMPT", "assistant.system_prompt"),
        ("JP_CFG_ASSISTANT_SYSTEM_PROMPT_SECTIONS", "assistant.system_prompt_sections"),
        ("JP_CFG_ASSISTANT_INSTRUCTIONS_0_TITLE", "assistant.instructions.0.title"),
        ("JP_CFG_ASSISTANT", "assistant"),
        ("JP_CFG_CONVERSATION_TOOLS_FS_READ_FILE_RUN", "conversation.tools.fs_read_file.run"),
        ("JP_CFG_CONVERSATION_TOOLS_FS_READ_FILE", "conversation.tools.fs_read_file"),
        ("JP_CFG_CONVERSATION_TOOLS__FS_READ_RUN__RUN", "conversation.tools.fs_read_run.run"),
        ("JP_CFG_CONVERSATION_TOOLS_*_RUN", "conversation.tools.*.run"),
        ("JP_CFG_PROVIDERS_LLM_ALIASES_MY_FAST_ONE", "providers.llm.aliases.my_fast_one"),
        ("JP_CFG_ASSISTANT_MODEL_PARAMETERS_OTHER_TOP_A", "assistant.model.parameters.other.top_a"),
        ("JP_CFG_ASSISTANT_MODEL_PARAMETERS_OTHER_A__B_C", "assistant.model.parameters.other.a.b_c"),
    ],
)
def test_a_variable_means_the_key_that_its_words_spell(variable: str, key: str) -> None:
    assert key_text(key_of(variable)) == key


@pytest.mark.parametrize(
    ("variable", "nearest", "hint"),
    [
        ("JP_CFG_ASSISTANT_MODLE_ID", "assistant.model.id", "JP_CFG_ASSISTANT_MODEL_ID"),
        (
            "JP_CFG_ASSISTANT_MODEL_PARAMETERS_MAXTOKENS",
            "assistant.model.parameters.max_tokens",
            "JP_CFG_ASSISTANT_MODEL_PARAMETERS_MAX_TOKENS",
        ),
        (
            "JP_CFG_ASSISTANT_MODEL_PARAMETERS_MAX__TOKENS",
            "assistant.model.parameters.max_tokens",
            "JP_CFG_ASSISTANT_MODEL_PARAMETERS_MAX_TOKENS",
        ),
        ("JP_CFG_USER_NAME_", "user.name", "JP_CFG_USER_NAME"),
        ("JP_CFG_USER_NAME_FIRST", "user.name", "JP_CFG_USER_NAME"),
        ("JP_CFG_CONVERSATION_ATTACHMENTS_X", "conversation.attachments", "JP_CFG_CONVERSATION_ATTACHMENTS"),
    ],
)
def test_a_variable_that_means_no_key_is_answered_with_the_nearest(variable: str, nearest: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        key_of(variable)

    assert caught.value.message == (
        f"environment variable {variable} means no known key; the nearest known key is {nearest!r}"
    )
    assert caught.value.hint == f"its variable is {hint}"


def test_a_variable_that_may_mean_two_keys_has_to_be_clearer() -> None:
    with pytest.raises(ConfigurationError) as caught:
        key_of("JP_CFG_A_B_C", Table(Outer))

    assert caught.value.message == "environment variable JP_CFG_A_B_C may mean 'a.b_c' and 'a_b.c'"
    assert "`__`" in caught.value.hint
    assert key_of("JP_CFG_A__B_C", Table(Outer)) == ("a", "b_c")
    assert key_of("JP_CFG_A_B__C", Table(Outer)) == ("a_b", "c")


def test_a_value_that_is_not_utf_8_is_an_error_that_shows_its_bytes() -> None:
    with pytest.raises(ConfigurationError) as caught:
        environment_assignments({"JP_CFG_USER_NAME": "caf\udce9"})

    assert caught.value.message == "environment variable JP_CFG_USER_NAME is not UTF-8: b'caf\\xe9'"
    assert caught.value.hint


def test_variables_are_read_in_the_order_of_their_names_and_empty_ones_not_at_all() -> None:
    environ = {
        "JP_CFG_USER_NAME": "x",
        "JP_CFG_STYLE_CODE_THEME": "",
        "JP_SESSION": "1",
        "JP_CFG_CONVERSATION_ATTACHMENTS": ':+["a"]',
        "JP_CFG_CONVERSATION_START_LOCAL": ":true",
        "JP_CFG_ASSISTANT_SYSTEM_PROMPT": "+Be brief.",
    }

    assert environment_assignments(environ) == [
        (
            "JP_CFG_ASSISTANT_SYSTEM_PROMPT",
            Assignment(path=("assistant", "system_prompt"), operator="+=", value="Be brief."),
        ),
        (
            "JP_CFG_CONVERSATION_ATTACHMENTS",
            Assignment(path=("conversation", "attachments"), operator="+=", value=["a"]),
        ),
        ("JP_CFG_CONVERSATION_START_LOCAL", Assignment(path=("conversation", "start_local"), operator="=", value=True)),
        ("JP_CFG_USER_NAME", Assignment(path=("user", "name"), operator="=", value="x")),
    ]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("many", "assistant.request.max_retries expects a whole number of at least 0, got 'many'"),
        (":x", "assistant.request.max_retries is not given as JSON"),
        ("+1", "nothing can be added to 'assistant.request.max_retries'"),
    ],
)
def test_a_value_that_is_not_accepted_is_reported_with_its_variable(value: str, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        environment_assignments({"JP_CFG_ASSISTANT_REQUEST_MAX_RETRIES": value})

    assert caught.value.message.startswith(f"environment variable JP_CFG_ASSISTANT_REQUEST_MAX_RETRIES: {problem}")


def test_a_variable_may_mean_a_server_of_ones_own() -> None:
    assert key_of("JP_CFG_PROVIDERS_LLM_GROQ_BASE_URL") == ("providers", "llm", "groq", "base_url")
    assert key_of("JP_CFG_PROVIDERS_LLM_OPENAI_BASE_URL") == ("providers", "llm", "openai", "base_url")
