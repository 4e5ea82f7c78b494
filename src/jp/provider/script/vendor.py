"""The embedded provider, which plays a scenario without a key or a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jp.config.model import LlmConfig
from jp.provider.vendor import Vendor

if TYPE_CHECKING:
    from jp.provider.base import Provider


def _provider(settings: LlmConfig, name: str, root: Path) -> Provider:
    from jp.provider.script.provider import create

    return create(name, root=root, scenario=settings.script.scenario)


VENDOR = Vendor(id="script", create_provider=_provider, needs_key=False, is_local=True, calls_tools=True)
