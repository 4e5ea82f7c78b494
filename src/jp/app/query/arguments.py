"""The command line of a query: its arguments, the settings that follow from them, and its schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from jp.config.assignment import Assignment, change_of, parse_cfg
from jp.config.layers import Layer, Origin
from jp.config.schema import InvalidValueError
from jp.config.sources import flag_layer
from jp.conversation.entries import ChatRequest
from jp.errors import UsageError
from jp.remedies import Ask, Option, UseOption, phrase

if TYPE_CHECKING:
    from jp.app.schema_checker import Checker


class DisplayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a turn that are shown, and whether as they come. Without `answer`, the message is not."""

    answer: bool = True
    reasoning: bool = True
    tools: bool = True
    stream: bool = True


class QueryArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `jp query`. `deadline` and `patience` are seconds; a `patience` of None means the usual.

    `fork` names the last turn that is copied, `compact` a profile, empty for the usual one. `tools` are names and
    patterns in order, with `!` before those that are taken away. With `or_new` a conversation that `target` names by a
    label or a title is made where there is none; `print_id` has the screen told its id.
    """

    words: tuple[str, ...] = ()
    new: bool = False
    target: str | None = None
    or_new: bool = False
    fork: str | None = None
    local: bool = False
    title: str | None = None
    labels: Mapping[str, str] = {}
    expires_at: str | None = None
    attach: tuple[str, ...] = ()
    model: str | None = None
    params: tuple[str, ...] = ()
    reasoning: str | None = None
    system: str | None = None
    tools: tuple[str, ...] = ()
    tool_use: str | None = None
    compact: str | None = None
    approve: frozenset[str] = frozenset()
    approve_all: bool = False
    deny_all: bool = False
    edit: bool = False
    no_edit: bool = False
    replay: bool = False
    quote: bool = False
    template: bool = False
    prompt: str | None = None
    schema: str | None = None
    extract: bool = False
    dry_run: bool = False
    exact: bool = False
    max_cycles: int | None = None
    max_cost: float | None = None
    deadline: float | None = None
    patience: float | None = None
    yes: bool = False
    reads_stdin: bool = False
    print_id: bool = False
    display: DisplayOptions = DisplayOptions()


def check(arguments: QueryArguments) -> None:
    """Refuse options that contradict each other.

    Raises:
        UsageError: they do.
    """
    exclusive = (
        (
            phrase(Option.NEW, " and ", Option.TARGET),
            arguments.new and arguments.target is not None,
            phrase(Option.NEW, " starts a conversation, ", Option.TARGET, " continues one"),
        ),
        (
            phrase(Option.NEW, " and ", Option.FORK),
            arguments.new and arguments.fork is not None,
            phrase(Option.FORK, " starts a conversation with what was said before"),
        ),
        (
            phrase(Option.APPROVE_ALL, " and ", Option.DENY_ALL),
            arguments.approve_all and arguments.deny_all,
            "remove one of them",
        ),
        (phrase(Option.EDIT, " and ", Option.NO_EDIT), arguments.edit and arguments.no_edit, "remove one of them"),
        (
            phrase(Option.REPLAY, " and ", Option.NEW),
            arguments.replay and arguments.new,
            phrase(Option.REPLAY, " needs what was said before"),
        ),
        (
            phrase(Option.QUOTE, " and ", Option.NEW),
            arguments.quote and arguments.new,
            phrase(Option.QUOTE, " needs what was said before"),
        ),
        (
            phrase(Option.PROMPT, " and ", Option.REPLAY),
            arguments.prompt is not None and arguments.replay,
            phrase(Option.REPLAY, " sends the last request again"),
        ),
        (
            phrase(Option.PRINT_ID, " and ", Option.DRY_RUN),
            arguments.print_id and arguments.dry_run,
            phrase(Option.DRY_RUN, " makes no conversation"),
        ),
        (
            phrase(Option.EXTRACT, " and ", Option.SCHEMA),
            arguments.extract and arguments.schema is not None,
            phrase(Option.EXTRACT, " gives a code block, ", Option.SCHEMA, " a JSON value"),
        ),
    )
    for options, are_given, hint in exclusive:
        if are_given:
            raise UsageError(phrase(options, " exclude each other"), hint=hint)
    if arguments.exact and not arguments.dry_run:
        counted = Ask((UseOption(Option.DRY_RUN), UseOption(Option.EXACT)), is_open=True)
        message = phrase(Option.EXACT, " is for ", Option.DRY_RUN)
        raise UsageError(message, hint=phrase("`", counted, "` counts what would be sent"))
    if arguments.template and (arguments.quote or (arguments.replay and arguments.edit)):
        raise UsageError(
            phrase(Option.TEMPLATE, " would read what was said before as a template"),
            hint=phrase("remove ", Option.TEMPLATE, ", or ", Option.QUOTE, " and ", Option.EDIT),
        )
    if arguments.or_new:
        _check_name(arguments)
    _check_limits(arguments)


def _check_name(arguments: QueryArguments) -> None:
    """Refuse a name that a new conversation cannot have."""
    from jp.app.targets import Labeled, Titled, parse_target

    target = None if arguments.target is None else parse_target(arguments.target)
    if not (isinstance(target, Labeled) and "=" in target.label) and not isinstance(target, Titled):
        raise UsageError(
            phrase(Option.OR_NEW, " needs a name that a new conversation can have"),
            hint=phrase(
                "name a label with its value, as in `", UseOption(Option.TARGET, "@topic=lexer"), "`, or a title"
            ),
        )
    if arguments.fork is not None:
        raise UsageError(
            phrase(Option.OR_NEW, " and ", Option.FORK, " exclude each other"),
            hint=phrase(Option.FORK, " needs a conversation that is there"),
        )
    if isinstance(target, Titled) and arguments.title is not None:
        raise UsageError(
            phrase(Option.TARGET, " and ", Option.TITLE, " both give the new conversation a title"),
            hint=phrase("remove ", Option.TITLE),
        )


def _check_limits(arguments: QueryArguments) -> None:
    if arguments.max_cost is not None and arguments.max_cost <= 0:
        raise UsageError(
            phrase(Option.MAX_COST, f" cannot be {arguments.max_cost:g}"),
            hint="use an amount of USD that is more than 0, such as 0.50",
        )
    if arguments.deadline == 0:
        raise UsageError(phrase(Option.DEADLINE, " cannot be 0"), hint="use a duration such as 30s")


FOR_ONE_TURN = frozenset({phrase(Option.TOOL_USE)})
"""Options of which a conversation keeps nothing."""


def flag_layers(arguments: QueryArguments, attachments: Sequence[str]) -> list[Layer]:
    """Return the settings that the options make, as layers. `attachments` are canonical declarations.

    Raises:
        UsageError: a parameter is not of the form K=V.
        ConfigurationError: a value is not accepted.
    """
    layers: list[Layer] = []
    if arguments.model is not None:
        layers.append(flag_layer(phrase(Option.MODEL), {"assistant": {"model": {"id": arguments.model}}}))
    layers += [_parameter(text) for text in arguments.params]
    if arguments.reasoning is not None:
        layers.append(_assigned(f"reasoning={arguments.reasoning}", UseOption(Option.REASONING, arguments.reasoning)))
    if arguments.system is not None:
        layers.append(flag_layer(phrase(Option.SYSTEM), {"assistant": {"system_prompt": arguments.system}}))
    if arguments.tool_use is not None:
        layers.append(flag_layer(phrase(Option.TOOL_USE), {"assistant": {"tool_choice": arguments.tool_use}}))
    if attachments:
        layers.append(flag_layer(phrase(Option.ATTACH), {"conversation": {"attachments": list(attachments)}}))
    return layers


def _parameter(text: str) -> Layer:
    if "=" not in text:
        raise UsageError(
            phrase(Option.PARAMETER, f" cannot be {text!r}"), hint="write it as K=V, such as temperature=0.2"
        )
    return _assigned(text, UseOption(Option.PARAMETER, text))


def _assigned(text: str, option: UseOption) -> Layer:
    where = phrase(option)
    try:
        value = parse_cfg(f"assistant.model.parameters.{text}")
        if not isinstance(value, Assignment):
            raise UsageError(phrase("'", option, "' is not of the form K=V"))
        return Layer(origin=Origin(kind="flag", where=where), change=change_of(value))
    except InvalidValueError as error:
        raise error.within(where) from None


def read_wanted(arguments: QueryArguments) -> Checker | None:
    """Return a checker for the schema that `--schema` gives.

    Raises:
        ConfigurationError: its file is no schema.
        UsageError: its text is no schema.
    """
    if arguments.schema is None:
        return None

    from jp.app.schema_checker import read_schema

    return read_schema(arguments.schema)


def with_schema(request: ChatRequest, wanted: Checker | None) -> tuple[ChatRequest, Checker | None]:
    """Return `request` with the schema that is wanted, or with its own.

    Raises:
        InvalidSchemaError: its own cannot be used.
    """
    if wanted is not None:
        return replace(request, schema=wanted.schema), wanted
    if request.schema is None:
        return request, None
    from jp.app.schema_checker import Checker

    return request, Checker(request.schema)
