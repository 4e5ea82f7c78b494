"""Which reasoning is not sent any more after a provider has rejected some of it. Pure."""

from __future__ import annotations

from jp.conversation.thread import Thread, ToolResult, UserResource, UserText
from jp.provider.base import Provider
from jp.provider.errors import ProviderError
from jp.provider.opaque import is_made_by


def rejected_reasoning(provider: Provider, thread: Thread, error: ProviderError, *, again: bool) -> tuple[str, ...]:
    """The ids of the answers whose reasoning `error` says cannot be sent as the model's own, of those in `thread`.

    All that this model made, where the error does not say which, or where the cycle fails by it `again`: so a request
    that was rejected twice is not rejected a third time. Messages and calls may carry a part of it, too.
    """
    if error.kind != "rejected_reasoning":
        return ()
    answers = (event for event in thread.events if not isinstance(event, (UserText, UserResource, ToolResult)))
    own = tuple(event.origin for event in answers if is_made_by(event.metadata, provider.id, thread.model))
    located = () if again else provider.locate_rejected(thread, error)
    return located or own
