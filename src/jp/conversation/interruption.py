"""What stands in for the response of a tool call that nobody answered."""

from __future__ import annotations

from jp.conversation.resource import TextBlock

INTERRUPTED = "interrupted; effects unknown"
"""The whole text of the error response of a call that was left open: by a repair in the log, or by a view."""

INTERRUPTED_CONTENT = (TextBlock(text=INTERRUPTED),)
"""The same, as the content of a response."""

NOT_STARTED = "not run: the turn was stopped before this call was started, so it had no effects"
"""The error response of a call that was left open where it is known that it was not started."""

NOT_STARTED_CONTENT = (TextBlock(text=NOT_STARTED),)
"""The same, as the content of a response."""
