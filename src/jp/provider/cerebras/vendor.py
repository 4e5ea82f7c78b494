"""Cerebras: open models behind Chat Completions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jp.config.model import LlmConfig
from jp.provider.vendor import Vendor

if TYPE_CHECKING:
    from jp.provider.cerebras.request import CerebrasAdapter


def _adapter(_settings: LlmConfig, _provider: str) -> CerebrasAdapter:
    from jp.provider.cerebras.request import CerebrasAdapter

    return CerebrasAdapter()


VENDOR = Vendor(
    id="cerebras",
    create_adapter=_adapter,
    key_variables=("CEREBRAS_API_KEY",),
    proposed="cerebras/gpt-oss-120b",
)
