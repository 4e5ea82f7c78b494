"""Cerebras: open models behind Chat Completions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jp.config.model import LlmConfig
from jp.provider.vendor import ListingServer, ModelList, Vendor

if TYPE_CHECKING:
    from jp.provider.cerebras.request import CerebrasAdapter
    from jp.provider.listing import Fields, ListedModel


def _adapter(_settings: LlmConfig, _provider: str) -> CerebrasAdapter:
    from jp.provider.cerebras.request import CerebrasAdapter

    return CerebrasAdapter()


async def _complete(server: ListingServer, models: tuple[ListedModel, ...]) -> tuple[ListedModel, ...]:
    """Return the models of an account with the facts of the public list."""
    from jp.provider.listing import fields, items, server_root

    public = fields(await server.get_optional(f"{server_root(server.base_url)}/public/v1/models"))
    said = {model.id: model for model in (listed(fields(entry)) for entry in items(public.get("data")))}
    return tuple(said.get(model.id, model) for model in models)


def listed(entry: Fields) -> ListedModel:
    """Return a model of the public list (inference-docs.cerebras.ai, api-reference/models/public-models)."""
    from jp.provider.listing import ListedModel, fields, flag, name, price, text, tokens

    able, limits, prices = (fields(entry.get(part)) for part in ("capabilities", "limits", "pricing"))
    return ListedModel(
        id=name(entry.get("id")),
        title=text(entry.get("name")),
        context_window=tokens(limits.get("max_context_length")),
        max_output=tokens(limits.get("max_completion_tokens")),
        input_price=price(prices.get("prompt")),
        output_price=price(prices.get("completion")),
        tools=flag(able.get("tools")),
        images=flag(able.get("vision")),
        structured=flag(able.get("structured_outputs")),
        thinks=flag(able.get("reasoning")),
    )


VENDOR = Vendor(
    id="cerebras",
    create_adapter=_adapter,
    key_variables=("CEREBRAS_API_KEY",),
    proposed="cerebras/gpt-oss-120b",
    models=ModelList(overrides=True, complete=_complete),
)
