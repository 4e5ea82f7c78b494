"""What a turn works with, joined as the configuration says: the model with its provider, and the tools."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from jp.cli.dialogue import Dialogue
from jp.cli.query.answering import Answering
from jp.cli.query.arguments import QueryArguments
from jp.cli.query.conversation import Place, is_attended
from jp.cli.query.delivering import delivery_of
from jp.cli.toolset import Toolset
from jp.cli.user_keys import UserKeys
from jp.compaction.fact_lines import FactLines
from jp.config.model import AppConfig
from jp.conversation.entries import ChatRequest, TurnStart
from jp.errors import ConfigurationError, UsageError
from jp.provider.base import Provider, WireRequest
from jp.provider.registry import ModelId, create_provider, misspelt, parse_model_id
from jp.tool.coordinator import ToolCoordinator, ToolPorts
from jp.tool.standing import STANDING
from jp.tool.toolbox import nearest
from jp.turn.measuring import MeasuringProvider
from jp.turn.ports import NoCap
from jp.turn.preparation import FREE_CHOICES
from jp.turn.request import InlineLoader, RequestSettings, build_thread, canonical_tools, rendering_version
from jp.turn.settings import parameters_of, system_parts

if TYPE_CHECKING:
    from jp.cli.query.standing_tools import Standing
    from jp.tool.approver import Approver
    from jp.turn.cost_cap import CappedProvider


class Wiring(msgspec.Struct, frozen=True, kw_only=True):
    """The model, the tools, and what a request holds besides the stream.

    `config` is for what a person is told, such as prices: requests are made of `settings`. A `cap` is the provider,
    too; `measuring` is it, or is within it.
    """

    config: AppConfig
    model: ModelId
    provider: Provider
    tools: ToolCoordinator
    settings: RequestSettings
    notice: Callable[[str], None]
    dialogue: Dialogue
    cap: CappedProvider | None = None
    measuring: MeasuringProvider | None = None


def _unheard(text: str) -> None:
    del text


def wire(
    config: AppConfig,
    place: Place,
    arguments: QueryArguments,
    notice: Callable[[str], None],
    standing: Standing,
    *,
    log: Callable[[str], None] = _unheard,
) -> Wiring:
    """Everybody who takes part, before anything is written. `standing` knows of tools what is no configuration.

    `log` hears what only who looks for a reason wants to know.

    Raises:
        AuthenticationError: the provider has no key.
        ConfigurationError: there is no model, or it, its provider or a tool is unknown, or a call of a tool is
            demanded that is not offered, or costs are limited that are not known.
    """
    model = _model(config)
    arguments = replace(arguments, approve=standing.spelled_out(arguments.approve))
    for own in misspelt(config.providers.llm, model.provider):
        notice(f"`providers.llm.{own}` is a server of your own: nothing that is set there holds for {model.provider!r}")
    is_shown = arguments.dry_run and not arguments.exact
    provider: Provider = create_provider(
        config, model, environ=os.environ, root=place.root, stored=UserKeys(), needs_key=not is_shown
    )
    # What a scenario says of tokens, teaches nothing.
    measuring = None if arguments.dry_run or model.provider == "script" else MeasuringProvider(provider)
    provider = provider if measuring is None else measuring
    cap = _cap(config, arguments, provider, model)
    provider = provider if cap is None else cap
    dialogue = Dialogue()
    answering = Answering(model=model, provider=provider, cap=cap or NoCap(), dialogue=dialogue, log=log)
    toolset = Toolset(
        config,
        cache_directory=place.cache,
        standing=partial(standing.makers, model),
        servers=standing.servers,
        root=place.workspace.root,
    )
    tools = _tools(config, toolset, place, arguments, answering)
    settings = RequestSettings(
        provider=provider.id,
        model=model.name,
        renderer=rendering_version(provider.renderer),
        system=system_parts(config.assistant),
        tools=canonical_tools(tools.definitions),
        parameters=parameters_of(config.assistant),
    )
    _check_choice(settings)
    return Wiring(
        config=config,
        model=model,
        provider=provider,
        tools=tools,
        settings=settings,
        notice=notice,
        dialogue=dialogue,
        cap=cap,
        measuring=measuring,
    )


def check_rendering(wiring: Wiring, request: ChatRequest) -> None:
    """Refuse what the provider cannot be sent before anything is written, and say what of the rest is left out.

    Raises:
        ConfigurationError: a parameter cannot be sent.
        ProviderError: an attachment cannot be sent.
    """
    thread = build_thread((TurnStart(), request), wiring.settings, loader=InlineLoader(), stand_ins=FactLines())
    say_what_is_left_out(wiring, wiring.provider.render(thread))


def say_what_is_left_out(wiring: Wiring, request: WireRequest) -> None:
    """Say which of the parameters that were asked for are not sent."""
    for sentence in request.left_out:
        wiring.notice(sentence)


def _cap(config: AppConfig, arguments: QueryArguments, provider: Provider, model: ModelId) -> CappedProvider | None:
    limit = config.assistant.request.max_cost if arguments.max_cost is None else arguments.max_cost
    if limit is None:
        return None
    from jp.cli.query.budget import capped

    return capped(provider, model, config, limit)


def _check_choice(settings: RequestSettings) -> None:
    choice = settings.parameters.tool_choice
    names = [tool.name for tool in settings.tools]
    # Nobody demands a call of what is only there in case it is of use.
    enabled = [name for name in names if name not in STANDING]
    if choice in {*FREE_CHOICES, *names} or (choice == "required" and enabled):
        return
    offered = f"the enabled tools are: {', '.join(map(repr, enabled))}" if enabled else "no tool is enabled"
    message = f"'assistant.tool_choice' is {choice!r}, but {offered}"
    raise ConfigurationError(message, hint="offer one with --tool=NAME, or let the model choose: --tool-use auto")


def _model(config: AppConfig) -> ModelId:
    text = config.assistant.model.id
    if text is None:
        raise ConfigurationError(
            "no model is set",
            hint="name one with --model, or for good: `jp config set assistant.model.id=anthropic/claude-sonnet-5-5`",
        )
    return parse_model_id(text, config.providers.llm)


def _tools(
    config: AppConfig,
    toolset: Toolset,
    place: Place,
    arguments: QueryArguments,
    answering: Answering,
) -> ToolCoordinator:
    from jp.cli.file_names import AttachmentNames
    from jp.tool.consent import Consent
    from jp.tool.permission import Answers
    from jp.tool.rules import check_rules

    for name in sorted(arguments.approve):
        if not toolset.is_known(name):
            raise UsageError(f"--approve names an unknown tool {name!r}", hint=nearest(name, toolset.all_names))
    answers = Answers(approved=arguments.approve, approve_all=arguments.approve_all, deny_all=arguments.deny_all)
    toolbox = toolset.toolbox()
    for name, own in config.conversation.tools.items():
        if name in toolbox:
            check_rules(own.rules, toolbox[name].tool.definition)
    ports = ToolPorts(
        root=place.root,
        consent=Consent(answers, _approver(answering.dialogue, config), real=AttachmentNames().real_path),
        notice=answering.dialogue.notice,
        log=answering.log,
        delivery=delivery_of(config.conversation.deduplication),
        inquirer_for=answering.of(toolbox),
    )
    return ToolCoordinator(toolbox, ports)


def _approver(dialogue: Dialogue, config: AppConfig) -> Approver | None:
    if not is_attended():
        return None
    from jp.cli.approval import TerminalApprover

    return TerminalApprover(dialogue, config.editor)
