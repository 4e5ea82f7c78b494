"""Google: the Gemini API, from Google itself and from Vertex AI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jp.config.model import LlmConfig
from jp.conversation.entries import JsonObject
from jp.conversation.thread import Thread
from jp.provider.base import ResponseDecoder, WireRequest
from jp.provider.errors import ProviderError
from jp.provider.vendor import CloudCall, CloudOffer, ModelList, Vendor

if TYPE_CHECKING:
    import httpx2

    from jp.provider.google.request import RenderCache
    from jp.provider.listing import Fields, ListedModel, Page
    from jp.provider.vendor import ListingServer


class GoogleAdapter:
    """Gemini's `streamGenerateContent`. `provider` is the name of the provider; for `store` see `render`."""

    renderer = 3

    def __init__(self, *, provider: str = "google", store: bool | None = False) -> None:
        self.id = provider
        self._store = store
        self._growth: RenderCache | None = None

    def render(self, thread: Thread) -> WireRequest:
        """Return the request for `thread`."""
        from jp.provider.google.request import RenderCache, render

        self._growth = self._growth or RenderCache()
        return render(thread, provider=self.id, store=self._store, growth=self._growth)

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """Return the origins of the signatures that `error` can be about."""
        from jp.provider.google.request import locate

        return locate(thread, error.message, provider=self.id)

    def decoder(self, request: WireRequest) -> ResponseDecoder:
        """Return the decoder of the response to `request`."""
        from jp.provider.google.response import GoogleDecoder
        from jp.provider.parameters import object_at

        config = object_at(request.body, "generationConfig")
        return GoogleDecoder(
            model=request.model, provider=self.id, is_structured=config.get("responseMimeType") == "application/json"
        )


def _adapter(settings: LlmConfig, provider: str) -> GoogleAdapter:
    own = settings.google if provider == "google" else settings.servers[provider]
    # Vertex AI does not know the field: nothing is kept there unless the project says so.
    return GoogleAdapter(provider=provider, store=None if own.transport == "sdk" else own.store)


_COUNTED_IN_CLOUD = frozenset({"contents", "systemInstruction", "tools", "generationConfig"})
"""Fields of a request that Vertex AI counts: the others do not change its tokens."""


def _count(request: WireRequest, platform: str | None) -> WireRequest:
    from jp.provider.vendor import count_at

    model = request.path.partition(":streamGenerateContent")[0]
    path = f"{model}:countTokens"
    if platform is not None:
        return count_at(request, path, _COUNTED_IN_CLOUD)
    # The SDK cannot count a whole request: it counts neither the system prompt nor the tools of the vendor's own API.
    whole: JsonObject = {"generateContentRequest": {"model": model.removeprefix("/"), **request.body}}
    return count_at(request, path, frozenset(whole), body=whole)


def _read(body: object) -> Page | None:
    from jp.provider.listing import read_page

    return read_page(body, "models", _listed, after="nextPageToken")


def _listed(entry: Fields) -> ListedModel:
    from jp.provider.listing import ListedModel, flag, name, text, texts, tokens

    # The vendor's SDK has another name for what the API calls methods.
    methods = texts(entry.get("supportedGenerationMethods") or entry.get("supportedActions"))
    return ListedModel(
        id=name(text(entry.get("name")).removeprefix("models/")),
        title=text(entry.get("displayName")),
        context_window=tokens(entry.get("inputTokenLimit")),
        max_output=tokens(entry.get("outputTokenLimit")),
        thinks=flag(entry.get("thinking")),
        answers="generateContent" in methods if methods else None,
    )


def _silence() -> None:
    import logging

    # It warns of variables that are not used here.
    logging.getLogger("google_genai").setLevel(logging.ERROR)


async def _list_with_sdk(module: Any, server: ListingServer, client: httpx2.AsyncClient) -> list[object]:
    from jp.provider.listing import NO_KEY, PAGE_SIZE

    _silence()
    base_url, _, version = server.base_url.rstrip("/").rpartition("/")
    options = {"base_url": base_url, "api_version": version, "httpx_async_client": client}
    sdk = module.Client(api_key=NO_KEY, vertexai=False, http_options=options)
    found = await sdk.aio.models.list(config={"page_size": PAGE_SIZE})
    models = [model.model_dump(mode="json", by_alias=True, exclude_none=True) async for model in found]
    return [{"models": models}]


def _send(call: CloudCall) -> None:
    _silence()
    from google import genai

    cloud, request = call.cloud, call.request
    options: Any = {"httpx_client": call.client, "headers": dict(call.headers), "extra_body": request.body}
    if cloud.endpoint is not None:
        options["base_url"] = cloud.endpoint
    if cloud.api_version is not None:
        options["api_version"] = cloud.api_version
    sdk: Any = genai.Client(vertexai=True, project=cloud.project, location=cloud.region, http_options=options)
    # The signature requires contents; the body of the request replaces them.
    if ":countTokens" in request.path:
        sdk.models.count_tokens(model=request.model, contents="-")
    else:
        for _ in sdk.models.generate_content_stream(model=request.model, contents="-"):
            pass


VENDOR = Vendor(
    id="google",
    create_adapter=_adapter,
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    key_header=("x-goog-api-key", ""),  # in the address, the key would be in every proxy's log
    proposed="google/gemini-3.8-flash",
    calls_tools=True,
    models=ModelList(
        path="/v1beta/models?pageSize=1000",
        cursor="pageToken",
        read=_read,
        sdk="google.genai",
        list_with_sdk=_list_with_sdk,
    ),
    clouds={
        "vertex": CloudOffer(
            packages=("google.genai",),
            variables={"region": ("GOOGLE_CLOUD_LOCATION",), "project": ("GOOGLE_CLOUD_PROJECT",)},
            defaults={"region": "global"},
        ),
    },
    send=_send,
    count=_count,
)
