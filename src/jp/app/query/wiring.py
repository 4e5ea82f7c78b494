"""The parts that a turn works with: the model with its provider, the tools, and who answers what they ask."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

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
    Question,
    ToolCallRequest,
    TurnStart,
    Usage,
    add_usage,
)
from jp.conversation.json_text import JsonValue, find_json
from jp.conversation.thread import Parameters, Thread, UserText
from jp.errors import ConfigurationError, UsageError
from jp.provider.base import DataDelta, Provider, TextDelta, UsageReport, WireRequest
from jp.provider.errors import RETRYABLE, ProviderError
from jp.provider.registry import ModelId, create_provider, misspelled_servers, parse_model_id
from jp.tool.base import Answer, ConfiguredTool, Delivery, Inquirer, Stream, Toolbox, ToolOutput, Unanswered
from jp.tool.consent import ANSWER, answer_schema, expected, fits
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


_LONGEST = 8_000
"""Of a text so many characters are told: its beginning and its end."""

_MOST_TOKENS = 2_000
_SYSTEM = (
    "A tool that you have called asks something while it runs. Answer as the user's request and your call suggest; "
    "where they do not tell, take the answer that changes and deletes the least. Say nothing but a JSON object with "
    f'the member "{ANSWER}".'
)


def inquiry_thread(model: str, question: Question, call: ToolCallRequest, entries: Sequence[AnyEntry]) -> Thread:
    """Return the request for an answer to what `call`, at the end of the stream `entries`, asks."""
    requests = (entry.content for entry in reversed(entries) if isinstance(entry, ChatRequest))
    arguments = call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()
    parts = [
        f"<request>\n{_excerpt(next(requests, ''))}\n</request>",
        f"<call>\n{call.name} {_excerpt(arguments)}\n</call>",
        f"<question>\n{_excerpt(question.text)}\n</question>",
        f"The answer is {expected(question)}{_proposed(question)}.",
    ]
    schema = answer_schema(question)
    return Thread(
        model=model,
        system=(_SYSTEM,),
        tools=(),
        events=(UserText(text="\n\n".join(parts), turn=0, schema=schema),),
        parameters=Parameters(max_tokens=_MOST_TOKENS, reasoning="off", cache="off"),
        schema=schema,
    )


def _proposed(question: Question) -> str:
    if question.default is None:
        return ""
    return f"; the tool proposes {msgspec.json.encode(question.default).decode()}"


def _excerpt(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters …]\n{text[-half:]}"


def value_in(text: str) -> Any:
    """Return the value that a model has answered, whatever it is; None where it is nothing."""
    found = find_json(text)
    value = found.value if isinstance(found, JsonValue) else None
    return cast("dict[str, Any]", value).get(ANSWER) if isinstance(value, dict) else None


_ATTEMPTS = 2


class ModelRespondent:
    """A `Respondent` that asks a model. `cap` may forbid it; `log` hears why there is no answer."""

    def __init__(
        self, model: ModelId, provider: Provider, *, cap: Cap, log: Callable[[str], None], abilities: JsonObject
    ) -> None:
        self._model = model
        self._abilities = abilities
        self._provider = provider
        self._cap = cap
        self._log = log

    async def answer(self, question: Question, call: ToolCallRequest, stream: Stream) -> Answer | Unanswered:
        """Ask, and once more where what comes is no answer."""
        thread = inquiry_thread(self._model.name, question, call, stream.entries)
        parameters = msgspec.structs.replace(thread.parameters, abilities=self._abilities)
        request = self._provider.render(msgspec.structs.replace(thread, parameters=parameters))
        asked = _Requests()
        problem = ""
        for _ in range(_ATTEMPTS):
            if not self._cap.permits(request):
                problem = "the limit on costs leaves nothing for it"
                break
            try:
                value = value_in(await asked.ask(self._provider, request))
            except ProviderError as error:
                problem = error.message
                if error.kind not in RETRYABLE:
                    break
                continue
            if fits(question, value):
                return Answer(value=value, by="assistant", model=str(self._model), usage=asked.usage)
            problem = f"its answer is not {expected(question)}"
        self._log(f"{call.name} asks {question.text!r}, and {str(self._model)!r} gives no answer: {problem}")
        return Unanswered(cause="nobody")


class _Requests:
    """Requests for one answer, and what they took together; None where nobody has said so."""

    def __init__(self) -> None:
        self.usage: Usage | None = None

    async def ask(self, provider: Provider, request: WireRequest) -> str:
        texts: list[str] = []
        taken: Usage | None = None
        async with aclosing(provider.stream(request)) as parts:
            async for part in parts:
                match part:
                    case TextDelta(text=text) | DataDelta(text=text):
                        texts.append(text)
                    case UsageReport(usage=usage):
                        taken = usage
                    case _:
                        pass
        if taken is not None:
            self.usage = taken if self.usage is None else add_usage(self.usage, taken)
        return "".join(texts)


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
    say_what_is_left_out(wiring, wiring.provider.render(thread))


def say_what_is_left_out(wiring: Wiring, request: WireRequest) -> None:
    """Say which of the parameters that were asked for are not sent."""
    for sentence in request.left_out:
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
    root: Path,
    arguments: QueryArguments,
    answering: QuestionModel,
) -> ToolCoordinator:
    from jp.app.toolset import AttachmentNames
    from jp.tool.consent import Answers, Consent
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
