"""What a turn works with, joined as the configuration says: the model with its provider, and the tools."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from jp.cli.query.arguments import QueryArguments
from jp.cli.query.conversation import Place, is_attended
from jp.compaction.stand_ins import StatusLines
from jp.config.model import AppConfig
from jp.conversation.entries import ChatRequest, TurnStart
from jp.errors import ConfigurationError, UsageError
from jp.provider.base import Provider
from jp.provider.registry import ModelId, create_provider, parse_model_id
from jp.tool.runner import ToolRunner
from jp.turn.request import InlineLoader, RequestSettings, build_thread
from jp.turn.settings import parameters_of, system_parts

if TYPE_CHECKING:
    from jp.tool.permission import Approver


class Wiring(msgspec.Struct, frozen=True, kw_only=True):
    """The model, the tools, and what a request holds besides the stream."""

    model: ModelId
    provider: Provider
    tools: ToolRunner
    settings: RequestSettings


def wire(config: AppConfig, place: Place, arguments: QueryArguments, notice: Callable[[str], None]) -> Wiring:
    """Everybody who takes part, before anything is written.

    Raises:
        AuthenticationError: the provider has no key.
        ConfigurationError: there is no model, or it, its provider or a tool is unknown.
    """
    model = _model(config)
    provider = create_provider(config, model, environ=os.environ, root=place.root, needs_key=not arguments.dry_run)
    tools = _tools(config, place, arguments, notice)
    settings = RequestSettings(
        provider=provider.id,
        model=model.name,
        renderer=provider.renderer,
        system=system_parts(config.assistant),
        tools=tools.definitions,
        parameters=parameters_of(config.assistant),
    )
    return Wiring(model=model, provider=provider, tools=tools, settings=settings)


def check_rendering(wiring: Wiring, request: ChatRequest) -> None:
    """Refuse what the provider cannot be sent before anything is written: a file or a parameter that it does not take.

    Raises:
        ProviderError: there is such a thing.
    """
    alone = (TurnStart(), request)
    wiring.provider.render(build_thread(alone, wiring.settings, loader=InlineLoader(), stand_ins=StatusLines()))


def _model(config: AppConfig) -> ModelId:
    text = config.assistant.model.id
    if text is None:
        raise ConfigurationError(
            "no model is set",
            hint="name one with --model, or for good: `jp config set assistant.model.id=anthropic/claude-sonnet-5-5`",
        )
    return parse_model_id(text, config.providers.llm.aliases)


def _tools(config: AppConfig, place: Place, arguments: QueryArguments, notice: Callable[[str], None]) -> ToolRunner:
    from jp.cli.file_names import AttachmentNames
    from jp.tool.builtin import built_in_tools
    from jp.tool.permission import Answers
    from jp.tool.toolbox import build_toolbox

    known = built_in_tools(AttachmentNames())
    names = [tool.definition.name for tool in known]
    for name in sorted(arguments.approve.difference(names)):
        raise UsageError(f"--approve names an unknown tool {name!r}", hint=f"the tools are: {', '.join(names)}")
    answers = Answers(approved=arguments.approve, approve_all=arguments.approve_all, deny_all=arguments.deny_all)
    return ToolRunner(
        build_toolbox(known, config.conversation.tools),
        root=place.root,
        answers=answers,
        approver=_approver(),
        notice=notice,
    )


def _approver() -> Approver | None:
    if not is_attended():
        return None
    from jp.cli.approval import TerminalApprover

    return TerminalApprover()
