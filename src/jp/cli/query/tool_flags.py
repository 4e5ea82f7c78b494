"""What `--tool` and `--no-tool` say of the configuration."""

from __future__ import annotations

from collections.abc import Sequence

from jp.cli.query.arguments import QueryArguments
from jp.cli.query.conversation import Held, Place
from jp.config.layers import Layer
from jp.config.sources import flag_layer
from jp.errors import UsageError

_ALL = frozenset({"*", "!*"})


def tool_layers(arguments: QueryArguments, place: Place, held: Held | None, flags: Sequence[Layer]) -> list[Layer]:
    """The layer that offers tools or takes them away, over what holds without it; `flags` are the other options'.

    Raises:
        UsageError: there is no such tool, or one is to be taken away that is always offered.
        ConfigurationError: the layers below it do not fit together.
    """
    if not arguments.tools:
        return []
    from jp.cli.toolset import Toolset
    from jp.tool.switching import Switching

    config = place.sources.resolve(conversation=() if held is None else held.layers, flags=flags).config
    toolset = Toolset(config, cache_directory=place.cache)
    _check_words(arguments, toolset.names)
    switching = Switching(toolset.settings, toolset.names, toolset.is_known)
    switched = switching.switch(arguments.tools)
    if not switched:
        return []
    tools = {name: {"enable": on} for name, on in switched.items()}
    return [flag_layer("--tool", {"conversation": {"tools": tools}})]


def _check_words(arguments: QueryArguments, names: Sequence[str]) -> None:
    """Refuse `--tool NAME`: it would offer every tool, and ask the model a question that begins with a name.

    Raises:
        UsageError: it was typed.
    """
    if _ALL.isdisjoint(arguments.tools):
        return
    for word in arguments.words:
        if word in names:
            raise UsageError(
                f"{word!r} is a tool's name, but would be part of the query",
                hint=f"write --tool={word} or --no-tool={word}; without '=' they mean all tools",
            )
