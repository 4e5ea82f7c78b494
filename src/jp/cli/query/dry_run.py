"""`jp query --dry-run`: the request that would be sent, and what it would cost."""

from __future__ import annotations

import msgspec

from jp.cli.options import GlobalOptions
from jp.cli.output import notice, print_result
from jp.cli.query.conversation import Held
from jp.cli.query.healing import HealingLoader
from jp.cli.query.wiring import Wiring, say_what_is_left_out
from jp.compaction.stand_ins import StatusLines
from jp.context.estimate import estimate_tokens
from jp.conversation.entries import ChatRequest, JsonObject, TurnStart, Usage
from jp.conversation.resource import Resource, size_in_bytes
from jp.errors import ExitCode
from jp.provider.base import Sections, WireRequest
from jp.render.amounts import count_text
from jp.turn.request import InlineLoader, build_thread

_LONGEST_SCHEMA = 200

_NEXT = "next"
"""The id of an entry that is not written."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """About how many tokens each section of a request has; `usd` is the price of all as uncached input."""

    tools: int
    system: int
    messages: int
    total: int
    context_window: int | None
    usd: float | None


def show_request(options: GlobalOptions, held: Held | None, wiring: Wiring, request: ChatRequest) -> int:
    """Print the request; nothing is sent or written."""
    entries = () if held is None else held.entries
    loader = HealingLoader(InlineLoader() if held is None else held.loader, request)
    upcoming = (TurnStart(id=f"{_NEXT}-turn"), msgspec.structs.replace(request, id=f"{_NEXT}-request"))
    thread = build_thread((*entries, *upcoming), wiring.settings, loader=loader, stand_ins=StatusLines())
    for sentence in loader.notices():
        notice(options, sentence)
    wire = wiring.provider.render(thread)
    say_what_is_left_out(wiring, wire)
    estimate = _estimate(wiring, wiring.provider.sections(wire))
    print_result(
        options,
        text=_summary(wiring, wire, request, estimate),
        value={
            "model": str(wiring.model),
            "request": {"path": wire.path, "headers": dict(wire.headers), "body": wire.body},
            "estimate": msgspec.to_builtins(estimate),
        },
    )
    return ExitCode.OK


def _estimate(wiring: Wiring, sections: Sections) -> Estimate:
    from jp.cli.model_details import details_of
    from jp.provider.models import cost

    tools = sum(estimate_tokens(item.decode()) for item in sections.tools)
    system = sum(estimate_tokens(item.decode()) for item in sections.system)
    messages = sum(estimate_tokens(item.decode()) for message in sections.messages for item in message)
    total = tools + system + messages
    details = details_of(wiring.config, wiring.model)
    return Estimate(
        tools=tools,
        system=system,
        messages=messages,
        total=total,
        context_window=details.context_window,
        usd=cost(Usage(input=total), details),
    )


def _summary(wiring: Wiring, wire: WireRequest, request: ChatRequest, estimate: Estimate) -> str:
    money = "" if estimate.usd is None else f", about ${estimate.usd:.4f} for the input"
    window = estimate.context_window
    share = "" if window is None else f" of {window:,}"
    lines = [
        f"model      {wiring.model}",
        f"tools      {len(wiring.settings.tools)}, about {estimate.tools:,} tokens",
        f"system     {count_text(len(wiring.settings.system), 'part')}, about {estimate.system:,} tokens",
        f"messages   about {estimate.messages:,} tokens",
        f"total      about {estimate.total:,}{share} tokens{money}",
    ]
    if request.schema is not None:
        lines.append(f"schema     the answer has to fit {_short_json(request.schema)}")
    lines += [f"attached   {_resource(resource)}" for resource in request.resources]
    return "\n".join([*lines, "nothing was sent or written; --format json shows the request"])


def _short_json(schema: JsonObject) -> str:
    text = msgspec.json.encode(schema).decode()
    return text if len(text) <= _LONGEST_SCHEMA else f"{text[: _LONGEST_SCHEMA - 1]}…"


def _resource(resource: Resource) -> str:
    unchanged = ", unchanged, so sent as a reference" if resource.duplicate_of else ""
    return f"{resource.name or resource.uri} ({size_in_bytes(resource):,} bytes{unchanged})"
