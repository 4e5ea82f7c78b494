"""Calls with a marker of a cut in their arguments: a model that copies one takes it for the text that it stands for."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jp.compaction.fact_lines import NO_NONCE, nonce_of
from jp.conversation.entries import AnyEntry, ToolCallRequest, ToolCallResponse
from jp.conversation.resource import TextBlock
from jp.tool.standing import RECALL


def refusal_of(call: ToolCallRequest, entries: Sequence[AnyEntry]) -> ToolCallResponse | None:
    """The answer to `call` where its arguments have a marker of this log in them: then it must not run.

    A call to recall what a marker stands for runs.
    """
    if call.name == RECALL:
        return None
    from jp.context.markers import contains_marker, marked_handles

    nonce = nonce_of(entries)
    arguments = call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()
    # What stands in for a nonce is nothing that nobody else writes.
    if not contains_marker(arguments, nonce if nonce != NO_NONCE else f"[[cut:{nonce}:"):
        return None
    handles = ", ".join(marked_handles(arguments, nonce))
    what = f" ({handles})" if handles else ""
    text = (
        f"Not run: the arguments have a marker `[[cut:…]]` in them{what}. It stands for text of which the middle is "
        "not shown to you any more, and is not that text. Recall it, and call again with the whole text in its place."
    )
    return ToolCallResponse(request=call.id, content=(TextBlock(text=text),), is_error=True)
