from __future__ import annotations

from pathlib import Path

import pytest

from jp.app.query.attachments import AttachmentSchemes
from jp.app.query.tools import BuiltinTools
from jp.attachment.base import Declaration
from jp.cli.options import GlobalOptions
from jp.config.model import AppConfig, ConversationConfig
from jp.provider.registry import ModelId
from jp.tool.context_tools import Recall, RefreshResource
from jp.workspace.workspace import Workspace

TYPED = Declaration(uri="file:a.py", written="a.py")
EXCLUDE = Declaration(uri="file:b.py", written="!b.py", exclude=True)


def standing(
    *typed: Declaration, attachments: tuple[str, ...] = (), is_structured: bool = False, root: Path = Path("/nowhere")
) -> BuiltinTools:
    schemes = AttachmentSchemes(Workspace(root, user_data=root), GlobalOptions())
    config = AppConfig(conversation=ConversationConfig(attachments=attachments))
    return BuiltinTools(schemes, config, None, typed, is_structured=is_structured)


def offered(model: str, of: BuiltinTools, *others: str) -> list[str]:
    provider, _, name = model.partition("/")
    return sorted(of.factories(ModelId(provider=provider, name=name), others))


ON_CONTENT = ["recall", "refresh_resource", "search_history"]


@pytest.mark.parametrize(
    ("of", "others", "expected"),
    [
        (standing(), (), []),
        (standing(EXCLUDE), (), []),
        (standing(attachments=("!file:b.py",)), (), []),
        (standing(TYPED), (), ON_CONTENT),
        (standing(attachments=("file:a.py",)), (), ON_CONTENT),
        (standing(), ("fs_read_file",), ["ask_user", *ON_CONTENT]),
    ],
)
def test_what_reads_the_conversation_is_offered_where_something_is_attached_and_all_beside_other_tools(
    of: BuiltinTools, others: tuple[str, ...], expected: list[str]
) -> None:
    assert offered("script/x", of, *others) == expected


@pytest.mark.parametrize("model", ["ollama/llava", "llamacpp/any", "openrouter/nobody/knows-it"])
def test_a_model_that_may_call_no_tools_is_offered_them_beside_others_only(model: str) -> None:
    assert offered(model, standing(TYPED)) == []
    assert offered(model, standing(TYPED), "fs_read_file") == ["ask_user", *ON_CONTENT]


def test_a_model_that_is_held_to_a_schema_without_tools_only_is_not_offered_them_by_themselves() -> None:
    assert offered("google/gemini-2.5-flash", standing(TYPED)) == ON_CONTENT
    assert offered("google/gemini-2.5-flash", standing(TYPED, is_structured=True)) == []
    assert offered("anthropic/claude-sonnet-5-5", standing(TYPED, is_structured=True)) == ON_CONTENT


def test_each_is_made() -> None:
    made = standing(TYPED).factories(ModelId(provider="script", name="x"), ["other"])

    assert {name: make().definition.name for name, make in made.items()} == {name: name for name in made}
    assert isinstance(made["recall"](), Recall)
    assert isinstance(made["refresh_resource"](), RefreshResource)
