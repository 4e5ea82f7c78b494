"""The parts that a turn works with: the model with its provider, the tools, and who answers what they ask."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from jp.app.models import UserKeys, listed_abilities
from jp.app.query.arguments import QueryArguments
from jp.app.query.conversation import QueryContext
from jp.app.query.screen import Dialogue, Screen
from jp.app.toolset import Toolset
from jp.compaction.fact_lines import StatusLineFormatter
from jp.config.model import AppConfig, DeduplicationConfig
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    JsonObject,
    ToolCallRequest,
    TurnStart,
)
from jp.errors import ConfigurationError, UsageError
from jp.provider.base import Provider, WireRequest
from jp.provider.registry import ModelId, create_provider, misspelled_servers, parse_model_id
from jp.remedies import CreateWorkspace, Option, StoreKey, UseOption, phrase
from jp.tool.base import ConfiguredTool, Delivery, Inquirer, Stream, Toolbox, ToolOutput
from jp.tool.coordinator import ToolCoordinator, ToolPorts
from jp.tool.toolbox import AUTOMATIC, nearest
from jp.turn.machine import parameters_of, system_parts
from jp.turn.measuring import MeasuringProvider
from jp.turn.ports import Cap, NoCap
from jp.turn.preparation import FREE_CHOICES
from jp.turn.request import InlineLoader, RequestSettings, build_thread, canonical_tools, rendering_version

if TYPE_CHECKING:
    from jp.app.query.tools import BuiltinTools
    from jp.tool.consent import Inquiries
    from jp.turn.cost_cap import CappedProvider


def delivery_of(deduplication: DeduplicationConfig) -> Delivery:
    """Return the delivery of every result: bounded, and marked where it was delivered before."""

    @cache
    def ordinary() -> Delivery:
        from jp.app.query.sources import LogAddresses
        from jp.tool.delivery import OrdinaryDelivery

        return OrdinaryDelivery(deduplication, LogAddresses())

    def deliver(configured: ConfiguredTool, output: ToolOutput, entries: Sequence[AnyEntry]) -> ToolOutput:
        return ordinary()(configured, output, entries)

    return deliver


class QuestionModel(msgspec.Struct, frozen=True, kw_only=True):
    """The model that tools may ask. `log` hears why it gave no answer. `abilities` are those its provider lists."""

    model: ModelId
    provider: Provider
    dialogue: Dialogue
    screen: Screen
    log: Callable[[str], None]
    cap: Cap = NoCap()
    abilities: JsonObject = {}

    def of(self, toolbox: Toolbox) -> Callable[[ToolCallRequest, Stream], Inquirer]:
        """Return a function that finds who answers a call in `toolbox`. Nothing for it is imported before a call."""
        return _Inquirers(self, toolbox).inquirer


class _Inquirers:
    def __init__(self, answering: QuestionModel, toolbox: Toolbox) -> None:
        self._with = answering
        self._toolbox = toolbox

    def inquirer(self, call: ToolCallRequest, stream: Stream) -> Inquirer:
        return self._inquiries.inquirer(call, stream)

    @cached_property
    def _inquiries(self) -> Inquiries:
        from jp.app.query.inquiries import ModelRespondent
        from jp.tool.consent import Inquiries

        around = self._with
        model = ModelRespondent(
            around.model, around.provider, cap=around.cap, log=around.log, abilities=around.abilities
        )
        return Inquiries(self._toolbox, person=around.screen.respondent(around.dialogue), model=model)


class Wiring(msgspec.Struct, frozen=True, kw_only=True):
    """The model, the tools, and what a request holds besides the stream.

    `config` is for what a person is told, such as prices: requests are made of `settings`. A `cap` is the provider,
    too; `measuring` is it, or is within it.
    """

    context: QueryContext
    config: AppConfig
    model: ModelId
    provider: Provider
    tools: ToolCoordinator
    settings: RequestSettings
    dialogue: Dialogue
    cap: CappedProvider | None = None
    measuring: MeasuringProvider | None = None

    def notice(self, text: str) -> None:
        """Tell the user something that they may want to know."""
        self.context.options.notice(text)


def wire(context: QueryContext, config: AppConfig, builtin: BuiltinTools) -> Wiring:
    """Connect the parts of a turn. Nothing is written.

    Raises:
        AuthenticationError: the provider has no key.
        ConfigurationError: there is no model, or it, its provider or a tool is unknown, or a call of a tool is
            demanded that is not offered, or costs are limited that are not known.
    """
    model = _model(config)
    options = context.options
    arguments = replace(context.arguments, approve=builtin.spelled_out(context.arguments.approve))
    for own in misspelled_servers(config.providers.llm, model.provider):
        options.notice(
            f"`providers.llm.{own}` is a server of your own: nothing that is set there holds for {model.provider!r}"
        )
    is_shown = arguments.dry_run and not arguments.exact
    provider: Provider = create_provider(
        config, model, environ=os.environ, root=context.root, stored=UserKeys(), needs_key=not is_shown
    )
    # The token counts of a scenario must not train the estimator.
    measuring = None if arguments.dry_run or model.provider == "script" else MeasuringProvider(provider)
    provider = provider if measuring is None else measuring
    cap = _cap(config, arguments, provider, model)
    provider = provider if cap is None else cap
    dialogue = Dialogue()
    abilities = listed_abilities(config, model)
    answering = QuestionModel(
        model=model,
        provider=provider,
        cap=cap or NoCap(),
        dialogue=dialogue,
        screen=context.screen,
        log=options.log,
        abilities=abilities,
    )
    toolset = Toolset(
        config,
        cache_directory=context.cache,
        automatic=partial(builtin.factories, model),
        servers=builtin.servers,
        root=context.workspace.root,
    )
    tools = _tools(config, toolset, context.root, arguments, answering)
    settings = RequestSettings(
        provider=provider.id,
        model=model.name,
        renderer=rendering_version(provider.renderer),
        system=system_parts(config.assistant),
        tools=canonical_tools(tools.definitions),
        parameters=msgspec.structs.replace(parameters_of(config.assistant), abilities=abilities),
    )
    _check_choice(settings)
    return Wiring(
        context=context,
        config=config,
        model=model,
        provider=provider,
        tools=tools,
        settings=settings,
        dialogue=dialogue,
        cap=cap,
        measuring=measuring,
    )


def check_rendering(wiring: Wiring, request: ChatRequest) -> None:
    """Refuse what the provider cannot be sent before anything is written, and say what of the rest is omitted.

    Raises:
        ConfigurationError: a parameter cannot be sent.
        ProviderError: an attachment cannot be sent.
    """
    thread = build_thread(
        (TurnStart(), request), wiring.settings, loader=InlineLoader(), status_formatter=StatusLineFormatter()
    )
    say_what_is_omitted(wiring, wiring.provider.render(thread))


def say_what_is_omitted(wiring: Wiring, request: WireRequest) -> None:
    """Say which of the parameters that were asked for are not sent."""
    for sentence in request.omitted:
        wiring.notice(sentence)


def _cap(config: AppConfig, arguments: QueryArguments, provider: Provider, model: ModelId) -> CappedProvider | None:
    limit = config.assistant.request.max_cost if arguments.max_cost is None else arguments.max_cost
    if limit is None:
        return None
    from jp.app.query.budget import capped

    return capped(provider, model, config, limit)


def _check_choice(settings: RequestSettings) -> None:
    choice = settings.parameters.tool_choice
    names = [tool.name for tool in settings.tools]
    # Nobody demands a call of what is only there in case it is of use.
    enabled = [name for name in names if name not in AUTOMATIC]
    if choice in {*FREE_CHOICES, *names} or (choice == "required" and enabled):
        return
    offered = f"the enabled tools are: {', '.join(map(repr, enabled))}" if enabled else "no tool is enabled"
    message = f"'assistant.tool_choice' is {choice!r}, but {offered}"
    offer, automatic = UseOption(Option.TOOL, "NAME"), UseOption(Option.TOOL_USE, "auto")
    raise ConfigurationError(message, hint=phrase("offer one with ", offer, ", or let the model choose: ", automatic))


def _model(config: AppConfig) -> ModelId:
    text = config.assistant.model.id
    if text is None:
        raise ConfigurationError(
            "no model is set",
            hint=phrase(
                *("store a key: `", StoreKey("anthropic"), "`, or let `", CreateWorkspace(), "` find a model; "),
                *(Option.MODEL, " names one for a query"),
            ),
        )
    return parse_model_id(text, config.providers.llm)


def _tools(
    config: AppConfig,
    toolset: Toolset,
    root: Path,
    arguments: QueryArguments,
    answering: QuestionModel,
) -> ToolCoordinator:
    from jp.app.toolset import AttachmentNames
    from jp.tool.consent import Answers, Consent
    from jp.tool.rules import check_rules

    for name in sorted(arguments.approve):
        if not toolset.is_known(name):
            message = phrase(Option.APPROVE, f" names an unknown tool {name!r}")
            raise UsageError(message, hint=nearest(name, toolset.all_names))
    answers = Answers(approved=arguments.approve, approve_all=arguments.approve_all, deny_all=arguments.deny_all)
    toolbox = toolset.toolbox()
    for name, own in config.conversation.tools.items():
        if name in toolbox:
            check_rules(own.rules, toolbox[name].tool.definition)
    ports = ToolPorts(
        root=root,
        consent=Consent(
            answers, answering.screen.approver(answering.dialogue, config), real=AttachmentNames().real_path
        ),
        notice=answering.dialogue.notice,
        log=answering.log,
        delivery=delivery_of(config.conversation.deduplication),
        inquirer_for=answering.of(toolbox),
    )
    return ToolCoordinator(toolbox, ports)
