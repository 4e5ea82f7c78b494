"""`jp query --compact`: old things are left out of what is sent, and then the question is asked."""

from __future__ import annotations

from collections.abc import Sequence
from time import time

from jp.cli.options import GlobalOptions
from jp.cli.output import notice
from jp.cli.query.arguments import QueryArguments
from jp.cli.query.conversation import Begun, Place
from jp.cli.query.wiring import Wiring
from jp.config.model import AppConfig
from jp.conversation.entries import AnyEntry
from jp.errors import UsageError
from jp.turn.request import Loader


def check_compaction(arguments: QueryArguments, config: AppConfig) -> None:
    """Refuse what `--compact` says before anything is written.

    Raises:
        UsageError: its value is a word of the query, or no profile.
        ConfigurationError: there is no such profile.
    """
    if arguments.compact is not None:
        from jp.cli.compacting.order import order_of

        order_of(config.conversation.compaction, profile=_profile_of(arguments, config))


async def compact_first(
    options: GlobalOptions, arguments: QueryArguments, wiring: Wiring, begun: Begun, place: Place
) -> None:
    """Compact as `--compact` says, and tell in a line what came of it. The turn that is to begin is not there yet.

    Raises:
        JpError: it could not be done; nothing was written, and nothing is asked.
    """
    if arguments.compact is None:
        return
    from jp.cli.compacting.applying import append, make
    from jp.cli.compacting.order import order_of
    from jp.cli.compacting.preview import Previewer
    from jp.cli.compacting.report import made_sentence
    from jp.cli.query.budget import payment

    config = wiring.config
    order = order_of(config.conversation.compaction, profile=_profile_of(arguments, config))
    entries = tuple(begun.log.entries)
    previewer = Previewer(entries, config, begun.log, now=time(), model=wiring.model)
    made = await make(
        previewer,
        previewer.plan(order),
        order,
        entries=entries,
        config=config,
        workspace=place.workspace,
        recorder=begun.log,
        notice=wiring.notice,
        pay=payment(wiring.cap, config),
    )
    append(begun.log, made.overlays)
    notice(options, made_sentence(made, str(begun.info.id)))


def compacted_entries(
    arguments: QueryArguments, entries: Sequence[AnyEntry], loader: Loader, wiring: Wiring
) -> Sequence[AnyEntry]:
    """The stream as `--compact` would leave it, for a dry run: no model is asked, so a summary is not there."""
    if arguments.compact is None:
        return entries
    from jp.cli.compacting.order import order_of
    from jp.cli.compacting.preview import Previewer
    from jp.cli.compacting.report import turns_text

    config = wiring.config
    order = order_of(config.conversation.compaction, profile=_profile_of(arguments, config))
    previewer = Previewer(entries, config, loader, now=time(), model=wiring.model)
    plan = previewer.plan(order)
    if plan.summary is not None:
        turns = turns_text(plan.summary.first, plan.summary.last)
        wiring.notice(f"a summary of {turns} would be written first; it is not in what is shown here")
    return (*entries, *plan.overlays)


def _profile_of(arguments: QueryArguments, config: AppConfig) -> str | None:
    """Return the profile that `--compact` names; None without one.

    Raises:
        UsageError: a word of the query is a profile of the user's own, which no word before the configuration tells.
    """
    detached = [word for word in arguments.words if word in config.conversation.compaction.profiles]
    if detached and not arguments.compact:
        raise UsageError(
            f"{detached[0]!r} is the name of a profile, but would be part of the query",
            hint=f"write `--compact={detached[0]}`",
        )
    return arguments.compact or None
