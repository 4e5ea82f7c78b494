"""Any other server that speaks Chat Completions, as the user's configuration describes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jp.config.model import LlmConfig
from jp.provider.errors import ErrorKind
from jp.provider.vendor import ModelList, Vendor
from jp.remedies import Ask, Option, UseOption, phrase

if TYPE_CHECKING:
    from jp.provider.chat.request import ChatAdapter


def _adapter(settings: LlmConfig, provider: str) -> ChatAdapter:
    from jp.provider.chat.request import create

    return create(settings.servers[provider], provider)


def _hints(provider: str, _model: str) -> Mapping[ErrorKind, str]:
    return {
        "invalid_request": phrase(
            f"`providers.llm.{provider}` has settings for features that a server lacks, such as `structured`; `",
            *(Ask((UseOption(Option.DRY_RUN), UseOption(Option.FORMAT, "json")), is_open=True), "` shows what is sent"),
        )
    }


VENDOR = Vendor(id="openai-compatible", create_adapter=_adapter, models=ModelList(path="/models"), hints=_hints)
