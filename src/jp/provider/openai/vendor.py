"""OpenAI: the Responses API, from OpenAI itself and from Azure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jp.config.model import LlmConfig
from jp.conversation.thread import Thread
from jp.provider.base import ResponseDecoder, WireRequest
from jp.provider.errors import ProviderError
from jp.provider.vendor import CloudCall, CloudOffer, ModelList, Vendor

if TYPE_CHECKING:
    import httpx2

    from jp.provider.listing import Fields, ListedModel, Page
    from jp.provider.openai.request import RenderCache, Summary
    from jp.provider.transcript import CachePool
    from jp.provider.vendor import Cloud, ListingServer


class OpenaiAdapter:
    """OpenAI's Responses API. `provider` is the name of the provider, `summary` the detail of the reasoning shown.

    `store` lets the server keep requests and responses.
    """

    renderer = 2

    def __init__(self, *, provider: str = "openai", summary: Summary = "auto", store: bool = False) -> None:
        self.id = provider
        self._store = store
        self._summary: Summary = summary
        self._caches: CachePool[RenderCache] | None = None

    def render(self, thread: Thread) -> WireRequest:
        """Return the request for `thread`."""
        from jp.provider.openai.request import RenderCache, render
        from jp.provider.transcript import CachePool

        self._caches = self._caches or CachePool(RenderCache)
        return render(
            thread, provider=self.id, summary=self._summary, store=self._store, growth=self._caches.take(thread)
        )

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """Return the origins of the reasoning that `error` is about."""
        from jp.provider.openai.request import locate

        return locate(thread, error.message, provider=self.id)

    def decoder(self, request: WireRequest) -> ResponseDecoder:
        """Return the decoder of the response to `request`."""
        from jp.provider.openai.response import OpenaiDecoder

        return OpenaiDecoder(request, provider=self.id)


def _adapter(settings: LlmConfig, provider: str) -> OpenaiAdapter:
    own = settings.openai if provider == "openai" else settings.servers[provider]
    return OpenaiAdapter(provider=provider, summary=settings.openai.reasoning_summary, store=own.store)


_COUNTED = frozenset({
    *("model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "text"),
    *("truncation", "conversation", "previous_response_id"),
})
"""Fields of a request that are sent to be counted: the others do not change its tokens."""


def _count(request: WireRequest, _platform: str | None) -> WireRequest:
    from jp.provider.vendor import count_at

    return count_at(request, f"{request.path}/input_tokens", _COUNTED)


_SPEECHLESS = frozenset({
    *("audio", "babbage", "dall", "davinci", "embedding", "image", "instruct", "moderation", "realtime"),
    *("sora", "transcribe", "tts", "whisper"),
})
"""Names in the list of models that do not write text; the list has no field for it."""


def _read(body: object) -> Page | None:
    from jp.provider.listing import read_page

    return read_page(body, "data", _listed)


def _listed(entry: Fields) -> ListedModel:
    from jp.provider.listing import ListedModel, day, name

    found = name(entry.get("id"))
    return ListedModel(
        id=found,
        answers=None if _SPEECHLESS.isdisjoint(found.split("-")) else False,
        shutdown=day(entry.get("shutdown_date")),
    )


async def _list_with_sdk(module: Any, server: ListingServer, client: httpx2.AsyncClient) -> list[object]:
    from jp.provider.listing import NO_KEY, all_pages, server_root

    base_url = f"{server_root(server.base_url)}/v1"
    sdk = module.AsyncOpenAI(api_key=NO_KEY, base_url=base_url, http_client=client, max_retries=0)
    return await all_pages(await sdk.models.list())


def _send(call: CloudCall) -> None:
    import httpx2

    from jp.provider.clouds import TIMEOUT

    path, options = call.request.path.removeprefix("/v1"), {"headers": call.headers, "timeout": TIMEOUT}
    sdk = _sdk(call.cloud, call.key, call.client)
    sdk.post(path, cast_to=httpx2.Response, body=call.request.body, options=options)


def _sdk(cloud: Cloud, key: str | None, client: httpx2.Client) -> Any:
    import openai

    from jp.provider.clouds import TIMEOUT, entra_token, with_path

    usual: dict[str, Any] = {"http_client": client, "timeout": TIMEOUT, "max_retries": 0}
    token = entra_token("https://cognitiveservices.azure.com/.default") if key is None else None
    if cloud.api_version is None:
        return openai.OpenAI(base_url=with_path(cloud.endpoint, "/openai/v1"), api_key=key or token, **usual)
    return openai.AzureOpenAI(
        azure_endpoint=cloud.endpoint or "",
        api_version=cloud.api_version,
        api_key=key,
        azure_ad_token=token,
        **usual,
    )


VENDOR = Vendor(
    id="openai",
    create_adapter=_adapter,
    key_variables=("OPENAI_API_KEY",),
    proposed="openai/gpt-6.1-sol",
    calls_tools=True,
    models=ModelList(read=_read, sdk="openai", list_with_sdk=_list_with_sdk),
    clouds={
        "azure": CloudOffer(
            packages=("openai",),
            variables={"endpoint": ("AZURE_OPENAI_ENDPOINT",), "api_version": ("OPENAI_API_VERSION",)},
            required={"endpoint": "https://RESOURCE.openai.azure.com"},
            key_variable="AZURE_OPENAI_API_KEY",
        ),
    },
    send=_send,
    count=_count,
    settings_hints=(
        (
            b"verified to generate reasoning summaries",
            "reasoning_summary=none",
            "requests without summaries are accepted",
        ),
    ),
)
