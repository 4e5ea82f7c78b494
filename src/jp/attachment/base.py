"""The handler port: one scheme's way from a URI to resources (RFD 065)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from jp.conversation.resource import Resource
from jp.errors import ExitCode, JpError


class AttachmentError(JpError):
    """An attachment could not be resolved; nothing was sent or written."""

    exit_code = ExitCode.ATTACHMENT


class ResolveContext(msgspec.Struct, frozen=True, kw_only=True):
    """Where and within what bounds URIs are resolved.

    `root` is the workspace's root (or the current directory outside any), `cwd` what relative paths refer to.
    `confined` says that a path may not leave `root`: so for everything that a file declared.
    `max_bytes` bounds one resource.
    """

    root: Path
    cwd: Path
    confined: bool
    max_bytes: int = 10 * 1024 * 1024


class AttachmentHandler(Protocol):
    """One scheme. Stateless."""

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """The form under which `uri` is declared in a configuration: two spellings of one thing become equal.

        Raises:
            AttachmentError: `uri` is malformed.
        """
        ...

    async def resolve(
        self, includes: Sequence[str], excludes: Sequence[str], context: ResolveContext
    ) -> list[Resource]:
        """The resources that canonical `includes` name, without those that canonical `excludes` match, in order.

        Raises:
            AttachmentError: a URI names nothing, too much, or what cannot be read.
        """
        ...
