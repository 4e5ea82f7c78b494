"""llama.cpp's server: the model that it was started with, behind Chat Completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jp.config.model import LlmConfig
from jp.provider.errors import ErrorKind
from jp.provider.vendor import LocalServer, ModelList, Vendor

if TYPE_CHECKING:
    from jp.provider.listing import ListedModel
    from jp.provider.llamacpp.request import LlamacppAdapter
    from jp.provider.vendor import ListingServer


def _adapter(settings: LlmConfig, provider: str) -> LlamacppAdapter:
    from jp.provider.llamacpp.request import LlamacppAdapter

    own = settings.llamacpp if provider == "llamacpp" else settings.servers[provider]
    return LlamacppAdapter(provider=provider, reasoning_format=own.reasoning_format)


def _hints(_provider: str, _model: str) -> Mapping[ErrorKind, str]:
    return {"context_too_long": "start the server with a larger context (`llama-server --ctx-size …`), or send less"}


async def _complete(server: ListingServer, models: tuple[ListedModel, ...]) -> tuple[ListedModel, ...]:
    from jp.provider.listing import server_root

    return with_properties(models, await server.get_optional(f"{server_root(server.base_url)}/props"))


def with_properties(models: tuple[ListedModel, ...], properties: object) -> tuple[ListedModel, ...]:
    """Return the models with the facts of `/props` about the loaded one, such as its configured context window."""
    from msgspec.structs import replace

    from jp.provider.listing import fields, flag, tokens

    said = fields(properties)
    window = tokens(fields(said.get("default_generation_settings")).get("n_ctx"))
    if len(models) != 1 or window is None:
        return models
    (model,) = models
    return (
        replace(
            model,
            context_window=window,
            images=flag(fields(said.get("modalities")).get("vision")),
            tools=flag(fields(said.get("chat_template_caps")).get("supports_tools")),
        ),
    )


VENDOR = Vendor(
    id="llamacpp",
    create_adapter=_adapter,
    key_variables=("LLAMACPP_API_KEY",),
    needs_key=False,
    server=LocalServer(port=8080),
    is_local=True,
    models=ModelList(overrides=True, complete=_complete),
    hints=_hints,
)
