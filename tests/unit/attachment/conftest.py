from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from jp.attachment.base import ResolveContext
from jp.attachment.registry import AttachmentRegistry, ResolvedAttachments, plan_resolution, resolve_all

Attach = Callable[..., ResolvedAttachments]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "workspace"
    directory.mkdir()
    return directory


@pytest.fixture
def context(root: Path) -> ResolveContext:
    return ResolveContext(root=root, cwd=root)


@pytest.fixture
def attach(context: ResolveContext) -> Attach:
    """Attach what was typed, or with `confined` what a file declares."""

    def attached(*texts: str, confined: bool = False, around: ResolveContext = context) -> ResolvedAttachments:
        registry = AttachmentRegistry()
        typed = [registry.declare(text, around, confined=confined) for text in texts]
        plan = plan_resolution([], typed, delivered=())
        return anyio.run(resolve_all, plan, registry, around)

    return attached
