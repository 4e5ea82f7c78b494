"""Anthropic: the Messages API, from Anthropic itself and in clouds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from jp.config.model import LlmConfig
from jp.conversation.entries import JsonObject
from jp.conversation.thread import Thread
from jp.provider.base import ResponseDecoder, WireRequest
from jp.provider.errors import ProviderError
from jp.provider.vendor import CloudCall, CloudOffer, ModelList, Vendor

if TYPE_CHECKING:
    import httpx2

    from jp.provider.anthropic.request import RenderCache
    from jp.provider.listing import Fields, ListedModel, Page
    from jp.provider.transcript import CachePool
    from jp.provider.vendor import Cloud, ListingServer


class AnthropicAdapter:
    """Anthropic's Messages API.

    `provider` is the name of the provider. `betas` are sent with every request; `chains` means that an answer that
    reaches the output limit is continued.
    """

    renderer = 3

    def __init__(self, betas: Sequence[str] = (), *, provider: str = "anthropic", chains: bool = True) -> None:
        self.id = provider
        self._betas = tuple(betas)
        self._chains = chains
        self._caches: CachePool[RenderCache] | None = None

    def render(self, thread: Thread) -> WireRequest:
        """Return the request for `thread`."""
        from jp.provider.anthropic.request import RenderCache, render
        from jp.provider.transcript import CachePool

        self._caches = self._caches or CachePool(RenderCache)
        return render(thread, betas=self._betas, provider=self.id, growth=self._caches.take(thread))

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """Return the origins of the reasoning that `error` is about."""
        from jp.provider.anthropic.messages import locate

        return locate(self.render(thread), thread, error.message, provider=self.id)

    def decoder(self, request: WireRequest) -> ResponseDecoder:
        """Return the decoder of the response to `request`."""
        from jp.provider.anthropic.response import AnthropicDecoder
        from jp.provider.schemas import is_wrapped

        wanted: JsonObject | None = request.body.get("output_config", {}).get("format")
        return AnthropicDecoder(
            model=request.model,
            provider=self.id,
            is_structured=wanted is not None,
            is_wrapped=wanted is not None and is_wrapped(wanted),
            chains=self._chains,
        )


def _adapter(settings: LlmConfig, provider: str) -> AnthropicAdapter:
    own = settings.anthropic
    return AnthropicAdapter(own.beta_headers, provider=provider, chains=own.chain_on_max_tokens)


_COUNTED = frozenset({
    *("model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control", "speed"),
})
"""Fields of a request that are sent to be counted: the others do not change its tokens."""


def _count(request: WireRequest, _platform: str | None) -> WireRequest:
    from jp.provider.vendor import count_at

    return count_at(request, f"{request.path}/count_tokens", _COUNTED)


def _read(body: object) -> Page | None:
    from jp.provider.listing import fields, read_page

    return read_page(body, "data", _listed, after="last_id" if fields(body).get("has_more") is True else "")


def _listed(entry: Fields) -> ListedModel:
    from jp.provider.listing import LEVELS, ListedModel, fields, flag, name, text, tokens

    able = fields(entry.get("capabilities"))

    def supports(what: str) -> bool | None:
        return flag(fields(able.get(what)).get("supported"))

    effort = fields(able.get("effort"))
    return ListedModel(
        id=name(entry.get("id")),
        title=text(entry.get("display_name")),
        context_window=tokens(entry.get("max_input_tokens")),
        max_output=tokens(entry.get("max_tokens")),
        images=supports("image_input"),
        documents=supports("pdf_input"),
        structured=supports("structured_outputs"),
        thinks=supports("thinking"),
        levels=tuple(level for level in LEVELS if fields(effort.get(level)).get("supported") is True),
    )


async def _list_with_sdk(module: Any, server: ListingServer, client: httpx2.AsyncClient) -> list[object]:
    from jp.provider.listing import NO_KEY, PAGE_SIZE, all_pages, server_root

    root = server_root(server.base_url)
    sdk = module.AsyncAnthropic(api_key=NO_KEY, base_url=root, http_client=client, max_retries=0)
    return await all_pages(await sdk.models.list(limit=PAGE_SIZE))


_BODY_VERSIONS = {"bedrock": "bedrock-2023-05-31", "vertex": "vertex-2023-10-16"}
"""API version that a cloud expects in the body; an SDK would send its own."""


def _send(call: CloudCall) -> None:
    import httpx2

    from jp.provider.clouds import TIMEOUT

    headers, body = dict(call.headers), call.request.body
    if (version := _BODY_VERSIONS.get(call.cloud.platform)) is not None:
        headers.pop("anthropic-version", None)
        body = {**body, "anthropic_version": version}
    options = {"headers": headers, "timeout": TIMEOUT}
    sdk = _sdk(call.cloud, call.key, call.client)
    sdk.post(call.request.path, cast_to=httpx2.Response, body=body, options=options)


def _sdk(cloud: Cloud, key: str | None, client: httpx2.Client) -> Any:
    from jp.provider.clouds import TIMEOUT, entra_token, with_path

    usual: dict[str, Any] = {"http_client": client, "timeout": TIMEOUT, "max_retries": 0}
    match cloud.platform:
        case "bedrock":
            from anthropic.lib.bedrock import AnthropicBedrock

            return AnthropicBedrock(
                aws_region=cloud.region, aws_profile=cloud.profile, base_url=cloud.endpoint, **usual
            )
        case "vertex":
            from anthropic.lib.vertex import AnthropicVertex

            project: dict[str, Any] = {} if cloud.project is None else {"project_id": cloud.project}
            return AnthropicVertex(
                region=cloud.region or "", base_url=with_path(cloud.endpoint, "/v1"), **project, **usual
            )
        case _:
            from anthropic import AnthropicFoundry

            scope = "https://ai.azure.com/.default"
            return AnthropicFoundry(
                base_url=with_path(cloud.endpoint, "/anthropic") or "",
                api_key=key,
                azure_ad_token_provider=partial(entra_token, scope) if key is None else None,
                **usual,
            )


_FOUNDRY = "https://{}.services.ai.azure.com"

VENDOR = Vendor(
    id="anthropic",
    create_adapter=_adapter,
    key_variables=("ANTHROPIC_API_KEY",),
    key_header=("x-api-key", ""),
    proposed="anthropic/claude-sonnet-5-5",
    calls_tools=True,
    models=ModelList(
        path="/v1/models?limit=1000",
        cursor="after_id",
        headers=(("anthropic-version", "2023-06-01"),),
        read=_read,
        sdk="anthropic",
        list_with_sdk=_list_with_sdk,
    ),
    clouds={
        "bedrock": CloudOffer(
            packages=("anthropic", "boto3", "botocore"),
            variables={
                "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
                "endpoint": ("ANTHROPIC_BEDROCK_BASE_URL",),
            },
            counts=False,
        ),
        "vertex": CloudOffer(
            packages=("anthropic", "google.auth", "requests"),
            variables={
                "region": ("CLOUD_ML_REGION",),
                "project": ("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT"),
                "endpoint": ("ANTHROPIC_VERTEX_BASE_URL",),
            },
            required={"region": "global"},
        ),
        "foundry": CloudOffer(
            packages=("anthropic",),
            variables={"endpoint": ("ANTHROPIC_FOUNDRY_BASE_URL",)},
            resource=("ANTHROPIC_FOUNDRY_RESOURCE", _FOUNDRY),
            required={"endpoint": _FOUNDRY.format("RESOURCE")},
            key_variable="ANTHROPIC_FOUNDRY_API_KEY",
        ),
    },
    send=_send,
    count=_count,
)
