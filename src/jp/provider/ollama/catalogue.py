"""What a server of Ollama says of its models, in the body of `/api/tags`. Pure."""

from __future__ import annotations

import msgspec

from jp.provider.abilities import Abilities, Model
from jp.provider.base import ModelDetails
from jp.provider.errors import ProviderError
from jp.provider.table.ollama import inferred, is_in_cloud

PATH = "/api/tags"


class _Details(msgspec.Struct):
    context_length: int | None = None


class _Entry(msgspec.Struct):
    name: str = ""
    model: str = ""
    details: _Details | None = None
    capabilities: tuple[str, ...] | None = None


class _Listing(msgspec.Struct):
    models: list[msgspec.Raw] | None = None


def read_models(body: bytes, *, provider: str) -> tuple[Model, ...]:
    """The models that a server lists, in its order; entries that cannot be read are left out.

    The context window is the longest that a model was made for: how much of it the server holds is up to the request.
    What runs on the user's own machine is free.

    Raises:
        ProviderError: the body is no list of models.
    """
    try:
        listing = msgspec.json.decode(body, type=_Listing)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProviderError(f"{provider} sent a list of models that cannot be read", kind="transient") from error
    return tuple(model for raw in listing.models or () if (model := _model(raw, provider)) is not None)


def _model(raw: msgspec.Raw, provider: str) -> Model | None:
    try:
        entry = msgspec.json.decode(raw, type=_Entry)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    name = entry.model or entry.name
    if not name:
        return None
    price = None if is_in_cloud(name) else 0.0
    details = ModelDetails(
        provider=provider,
        id=name,
        context_window=None if entry.details is None else entry.details.context_length,
        input_price=price,
        output_price=price,
        cache_read_price=price,
    )
    return Model(details=details, abilities=_abilities(name, entry.capabilities))


def _abilities(name: str, capabilities: tuple[str, ...] | None) -> Abilities:
    """What the server says that a model can do; where it does not say, what its name lets expect."""
    guessed = inferred(name)
    if capabilities is None:
        return guessed
    thinks = "thinking" in capabilities
    thinking = "none" if not thinks else "adaptive" if guessed.thinking == "none" else guessed.thinking
    return msgspec.structs.replace(
        guessed,
        thinking=thinking,
        thinks_by_default=thinks,
        tools="tools" in capabilities,
        images="vision" in capabilities,
    )
