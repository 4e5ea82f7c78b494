"""The line at a terminal that says which providers have not answered yet."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from jp.cli.options import GlobalOptions

if TYPE_CHECKING:
    from jp.render.channel import Channel

_DELAY_SECS = 1.0
_INTERVAL_SECS = 0.25


class Progress:
    """Whom is waited for. Nothing is shown where stderr is no terminal, or with `--quiet`."""

    def __init__(self, options: GlobalOptions, providers: Iterable[str]) -> None:
        self._options = options
        self._left = dict.fromkeys(providers)

    def finish(self, provider: str) -> None:
        """A provider has answered, or failed."""
        self._left.pop(provider, None)

    @asynccontextmanager
    async def shown(self) -> AsyncGenerator[None, None]:
        """Show the line as long as the block runs, if that is longer than a moment; it leaves no trace."""
        from jp.render.theme import is_live

        if self._options.quiet or not is_live(sys.stderr, os.environ):
            yield
            return

        from anyio import create_task_group

        from jp.render.channel import ERASE, Channel

        channel = Channel(sys.stderr, name="stderr", is_lossy=True)
        try:
            async with create_task_group() as tasks:
                tasks.start_soon(self._show, channel)
                yield
                tasks.cancel_scope.cancel()
        finally:
            channel.write_unseen(ERASE)

    async def _show(self, channel: Channel) -> None:
        from anyio import sleep

        from jp.render.channel import ERASE
        from jp.render.tables import truncate
        from jp.render.theme import columns_of, display_width

        await sleep(_DELAY_SECS)
        while True:
            width = display_width(self._options.width, os.environ, columns=columns_of(sys.stderr))
            line = truncate(f"waiting for the models of {', '.join(self._left)}", width - 1)
            channel.write_unseen(f"{ERASE}{line}")
            await sleep(_INTERVAL_SECS)
