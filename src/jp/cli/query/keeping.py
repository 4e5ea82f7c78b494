"""A draft through the run of a query: kept until it is answered, where the next `jp query --edit` looks for it."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from jp.cli.drafts import Draft, drafts_directory
from jp.cli.editor import NotAskedError
from jp.cli.options import GlobalOptions
from jp.cli.output import notice
from jp.cli.query.conversation import Place
from jp.conversation.ids import ConversationId
from jp.errors import ExitCode, JpError

if TYPE_CHECKING:
    from jp.workspace.listing import ConversationInfo


class Keeper:
    """Holds a draft until the context is left: then it is removed if nobody needs it any more, and kept otherwise.

    `is_needed` says that it is. What is blank is never kept, and nothing is with `--no-persist`.
    """

    def __init__(self, draft: Draft, options: GlobalOptions, place: Place, chosen: ConversationInfo | None) -> None:
        self.is_needed = True
        self._draft = draft
        self._options = options
        self._place = place
        self._start = None if chosen is None else chosen.id
        self._home = self._start
        self._is_moving = False

    def follow(self) -> None:
        """Move the draft to the conversation that is active now, where there is one."""
        self._is_moving = True
        home = self._place.session.active() or self._start
        if self._options.persist and home != self._home:
            self._draft.move_to(self._directory(home))
            self._home = home

    def explain(self, error: NotAskedError) -> None:
        """Say in the hint of `error` where the text is, if there is any."""
        if not self._draft.is_blank and self._options.persist:
            error.hint = self._kept()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._is_over(error) or not self._options.persist or self._draft.is_blank:
                self._draft.remove()
                return
            if self._is_moving:  # what was begun may have been taken back
                self.follow()
            self._draft.protect()
            if not isinstance(error, NotAskedError):
                notice(self._options, self._kept())
        finally:
            self._draft.close()

    def _is_over(self, error: BaseException | None) -> bool:
        """Whether the text has done its work: an answer that a cap has cut is one."""
        capped = isinstance(error, JpError) and error.exit_code == ExitCode.CAPPED
        return capped or (not self.is_needed and error is None)

    def _kept(self) -> str:
        return f"what you wrote is kept in {str(self._draft.path)!r}; `{self._command()}` goes on with it"

    def _command(self) -> str:
        active = self._place.session.active()
        if self._home == active:
            return "jp query --edit"
        return "jp query --new --edit" if self._home is None else f"jp query --id {self._home} --edit"

    def _directory(self, home: ConversationId | None) -> Path:
        return drafts_directory(self._place.workspace, "" if home is None else home.digits, persistent=True)
