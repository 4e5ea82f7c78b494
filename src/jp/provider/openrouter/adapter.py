"""What is peculiar to OpenRouter among those who speak Chat Completions. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from jp.config.accounts import OpenrouterConfig
from jp.conversation.entries import JsonObject
from jp.conversation.thread import CachePolicy, Thread
from jp.provider.asking import cache_not_sent, not_sent, object_at, sampling_of
from jp.provider.base import WireRequest
from jp.provider.chat.adapter import ChatAdapter
from jp.provider.chat.parameters import choice_of
from jp.provider.chat.quirks import Quirks, Server
from jp.provider.chat.request import Asked, render
from jp.provider.models import find_model
from jp.provider.openrouter.reasoning import PROVIDER, reasoning_of

QUIRKS = Quirks(
    return_reasoning="reasoning",
    documents=True,
    media=frozenset({
        *("audio/wav", "audio/x-wav", "audio/mpeg", "audio/mp3"),
        *("video/mp4", "video/mpeg", "video/quicktime", "video/webm"),
    }),
    stream_usage=False,
    text_parts=True,
    numbers_calls=True,
)
"""It reports tokens unasked, and gives the vendors what they take of the rest."""

_LONGEST_SESSION = 128


_SERVER = Server(provider=PROVIDER, kind=PROVIDER, quirks=QUIRKS)
_MISTRAL = replace(_SERVER, quirks=replace(QUIRKS, call_ids="short", user_after_tool=False))
"""Whose requests are passed on as they are, to a server that is stricter than others."""


class OpenrouterAdapter(ChatAdapter):
    """OpenRouter's Chat Completions. `headers` say on whose behalf it is asked.

    `store` lets it pass requests on to vendors that keep them.
    """

    def __init__(self, headers: tuple[tuple[str, str], ...], *, store: bool = False) -> None:
        self._headers = headers
        self._store = store
        super().__init__(_SERVER)

    def render(self, thread: Thread) -> WireRequest:
        """The request for `thread`."""
        server = _MISTRAL if thread.model.startswith("mistralai/") else _SERVER
        request = render(thread, server, asked(thread, headers=self._headers))
        if self._store:
            return request
        # Behind the parameters, which say nothing of where requests may be kept.
        routing: JsonObject = {**object_at(request.body, "provider"), "data_collection": "deny"}
        return replace(request, body={**request.body, "provider": routing})


def create(settings: OpenrouterConfig) -> OpenrouterAdapter:
    """The adapter of the account."""
    return OpenrouterAdapter(_headers(settings), store=settings.store)


def _headers(settings: OpenrouterConfig) -> tuple[tuple[str, str], ...]:
    given = {"x-title": settings.app_name, "http-referer": settings.app_referrer}
    return tuple((name, value) for name, value in given.items() if value)


def asked(thread: Thread, *, headers: tuple[tuple[str, str], ...] = ()) -> Asked:
    """What only OpenRouter is asked: to reason, to keep a conversation at one vendor, to remember its beginning."""
    parameters = thread.parameters
    model = find_model(PROVIDER, thread.model)
    choice = choice_of(parameters, thread.tools, model, QUIRKS)
    reasoning = reasoning_of(thread, model, forced=choice.forces)
    fields: JsonObject = {} if reasoning.wire is None else {"reasoning": reasoning.wire}
    if thread.conversation and parameters.cache != "off":
        fields["session_id"] = thread.conversation[:_LONGEST_SESSION]
    abilities = model.abilities
    takes_sampling = abilities.sampling and (abilities.sampling_while_thinking or not reasoning.is_active)
    unsampled = () if takes_sampling else tuple(sampling_of(parameters))
    why = f"{thread.model!r} takes none{' while it reasons' if abilities.sampling else ''}"
    is_told = thread.model.startswith("anthropic/")
    kept = () if is_told else cache_not_sent(parameters.cache, f"{thread.model!r} keeps what its vendor wants")
    return Asked(
        fields=fields,
        headers=headers,
        left_out=(*([not_sent(unsampled, why)] if unsampled else []), *reasoning.left_out, *kept),
        sampling=takes_sampling,
        marker=_marker(thread.model, parameters.cache),
    )


def _marker(model: str, policy: CachePolicy) -> JsonObject | None:
    """What marks the places up to which a cache keeps its work; other vendors find them by themselves."""
    if policy == "off":
        return None
    if model.startswith("anthropic/"):
        return {"type": "ephemeral", "ttl": "1h"} if policy == "long" else {"type": "ephemeral"}
    return {"type": "ephemeral"} if model.startswith("google/") else None
