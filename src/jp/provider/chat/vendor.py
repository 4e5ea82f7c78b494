"""Any other server that speaks Chat Completions, as the user's configuration describes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jp.config.model import LlmConfig
from jp.provider.errors import ErrorKind
from jp.provider.vendor import ModelList, Vendor

if TYPE_CHECKING:
    from jp.provider.chat.request import ChatAdapter


def _adapter(settings: LlmConfig, provider: str) -> ChatAdapter:
    from jp.provider.chat.request import create

    return create(settings.servers[provider], provider)


def _hints(provider: str, _model: str) -> Mapping[ErrorKind, str]:
    return {
        "invalid_request": f"`providers.llm.{provider}` has settings for features that a server lacks, such as "
        "`structured`; `jp query --dry-run --format json …` shows what is sent"
    }


VENDOR = Vendor(id="openai-compatible", create_adapter=_adapter, models=ModelList(path="/models"), hints=_hints)
