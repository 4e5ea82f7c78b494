"""What of an original JP's configuration tells what its events mean, followed from event to event."""

from __future__ import annotations

from jp.config.layers import Layer, resolve
from jp.config.model import JsonObject
from jp.config.original import Spelling
from jp.config.stored import KEPT, conversation_layers
from jp.errors import ConfigurationError


def in_jps_spelling(base: JsonObject, *, beside_original: bool) -> JsonObject:
    """A base configuration as jp spells it. `beside_original`: it is the original's, as its content shows, too."""
    is_originals = beside_original or any(name not in KEPT for name in base)
    return Spelling().take(base) if is_originals else base


class OriginalSettings:
    """The model and the attachments that hold after the base configuration and the deltas so far.

    What the configuration of a workspace would add is no part of them.
    """

    def __init__(self, base: JsonObject) -> None:
        self._spelling = Spelling()
        self._layers: tuple[Layer, ...] = ()
        self.provider = ""
        self.model = ""
        self.attachments: tuple[str, ...] = ()
        self.change(base)

    def change(self, delta: JsonObject) -> JsonObject:
        """Apply the next delta, and give it in jp's spelling. What does not fit together changes nothing."""
        spelled = self._spelling.take(delta)
        layers = (*self._layers, *conversation_layers(_of_interest(spelled)).layers)
        try:
            config = resolve(layers).config
        except ConfigurationError:
            return spelled
        self._layers = layers
        provider, _, model = (config.assistant.model.id or "").partition("/")
        self.provider, self.model = (provider, model) if model else ("", "")
        self.attachments = config.conversation.attachments
        return spelled


def _of_interest(delta: JsonObject) -> JsonObject:
    """The keys that are followed: reading all of a base configuration takes long."""
    found: JsonObject = {}
    match delta.get("assistant"):
        case {"model": {"id": identity}}:
            found["assistant"] = {"model": {"id": identity}}
        case _:
            pass
    match delta.get("conversation"):
        case {"attachments": attachments}:
            found["conversation"] = {"attachments": attachments}
        case _:
            pass
    return found
