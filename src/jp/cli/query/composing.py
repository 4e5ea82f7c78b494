"""All the words of a query: as they were typed, or edited, quoted and rendered as the command line wants it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from jp.cli.options import GlobalOptions
from jp.cli.query.arguments import QueryArguments
from jp.cli.query.conversation import Place
from jp.cli.query.question import Composed, Given

if TYPE_CHECKING:
    from jp.workspace.listing import ConversationInfo


async def compose(
    options: GlobalOptions,
    arguments: QueryArguments,
    given: Given,
    place: Place,
    chosen: ConversationInfo | None,
    stack: AsyncExitStack,
) -> Composed:
    """The words to ask. The conversation is not locked for it: who writes takes the time that it takes.

    What was written in an editor is kept until `stack` is left after the turn was answered.

    Raises:
        NotAskedError: the user left the editor without a text, or in a way that means so.
        JpError: something that the query needs is not there, or a template cannot be rendered.
    """
    if not (given.opens_editor or arguments.quote or arguments.template):
        return Composed(given.typed, given.piped, replays=arguments.replay)

    from jp.cli.query.composer import Composer

    return await Composer(options, arguments, place, chosen).compose(given, stack)
