"""What stands in for the response of a tool call that nobody answered."""

from __future__ import annotations

from jp.conversation.resource import TextBlock

INTERRUPTED = "interrupted; effects unknown"
"""The whole text of the error response of a call that was left open: by a repair in the log, or by a view."""

INTERRUPTED_CONTENT = (TextBlock(text=INTERRUPTED),)
"""The same, as the content of a response."""
