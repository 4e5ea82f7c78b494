"""The configuration that holds for a use case, and what of it the user has trusted."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec.structs import replace

from jp.app.options import AnyWorkspace, Options, current_directory
from jp.config.files import Places, has_settings
from jp.config.layers import Ignored, Layer, Resolved
from jp.config.model import JsonObject, resolve_alias
from jp.config.schema import KeyPath
from jp.config.sources import cfg_layers, conversation_layers, lower_layers
from jp.config.trust import (
    Accepted,
    UntrustedError,
    listed,
    mark_of_attachment,
    mark_of_change,
    mark_of_id,
    overlap,
    provider_of,
    resolve_trusted,
    without_lapsing,
)
from jp.conversation.entries import AnyEntry, ConfigDelta
from jp.conversation.entries import JsonObject as entries_JsonObject
from jp.conversation.turns import undone
from jp.errors import ConfigurationError
from jp.remedies import ImportSettings, Show, TrustWorkspace, phrase
from jp.workspace.layout import MARKER, silo_directory, user_config_directory
from jp.workspace.store import original_of

if TYPE_CHECKING:
    from jp.config.model import AppConfig
    from jp.workspace.listing import ConversationInfo
    from jp.workspace.trust import TrustStore


_ACCOUNT = ("providers", "llm")
_ATTACHMENTS = ("conversation", "attachments")


def require_trust(resolved: Resolved, info: ConversationInfo | None = None, *, model: str | None = None) -> None:
    """Refuse to go on where that needs what nobody has accepted.

    Args:
        resolved: the configuration; what is ignored in it and not needed stays ignored.
        info: the conversation that it is for.
        model: what is about to be asked, as `provider/name` or an alias; its account may only be an untrusted file's.

    Raises:
        UntrustedError: something is needed; it says which values these are.
    """
    provider = "" if model is None else _provider(resolved, model)
    needed = [value for value in _ignored(resolved) if value.needed or _is_account(value, provider)]
    if needed:
        raise UntrustedError(needed, remedy=remedy_for(needed, info))


def require_none_ignored(resolved: Resolved, info: ConversationInfo) -> None:
    """Refuse to make a conversation the user's own of which something is ignored.

    Raises:
        UntrustedError: something is.
    """
    if resolved.ignored:
        raise UntrustedError(resolved.ignored, remedy=remedy_for(resolved.ignored, info))


def require_tool(resolved: Resolved, name: str, info: ConversationInfo | None = None) -> None:
    """Refuse to go on where `name` is a tool that only untrusted files define.

    Raises:
        UntrustedError: it is.
    """
    path = ("conversation", "tools", name)
    needed = [value for value in resolved.ignored if value.path[: len(path)] == path]
    is_undefined = any(value.path[-1] in {"command", "source"} and not value.is_own for value in needed)
    if needed and (is_undefined or name not in resolved.config.conversation.tools):
        raise UntrustedError(needed, remedy=remedy_for(needed, info))


def _is_any(path: KeyPath) -> bool:
    del path
    return True


def tell_ignored(
    options: Options,
    resolved: Resolved,
    info: ConversationInfo | None = None,
    *,
    is_used: Callable[[KeyPath], bool] = _is_any,
) -> None:
    """Name what is ignored, in one notice, and what jp cannot take as a file says it, in another.

    `is_used` returns whether a key is used by what is about to be done: of other keys nothing is ignored yet.
    """
    unsupported = [setting for layer in resolved.layers if layer.source for setting in layer.unsupported]
    if unsupported:
        from jp.config.original import summary_of

        told = phrase("settings of the original JP, ignored or read differently: ", summary_of(unsupported))
        told = phrase(told, "; `", Show("ignored settings"), "` lists them")
        if any(setting.path[0] != "extends" for setting in unsupported):
            told = phrase(told, ", `", ImportSettings(), "` rewrites the files")
        options.notice_once(told)
    if ignored := [value for value in _ignored(resolved) if is_used(value.path)]:
        told = phrase("ignored until trusted: ", listed(ignored))
        options.notice_once(phrase(told, "; `", remedy_for(ignored, info), "` accepts it"))


def is_of_model(path: KeyPath, models: Collection[str | None], aliases: Mapping[str, str]) -> bool:
    """Return whether requests to one of the models use a key: if it is an account's, only those to its provider do."""
    if path[: len(_ACCOUNT)] != _ACCOUNT or path[2:3] == ("aliases",):
        return True
    return any(provider_of(model, aliases) == path[2] for model in models if model is not None)


def untrusted_attachments(resolved: Resolved) -> tuple[Ignored, ...]:
    """Return the attachments that nobody has accepted: none is ignored, but nothing is read that they name."""
    return tuple(value for value in resolved.ignored if value.path == _ATTACHMENTS)


def _ignored(resolved: Resolved) -> list[Ignored]:
    return [value for value in resolved.ignored if value.path != _ATTACHMENTS]


def as_value(value: Ignored) -> dict[str, object]:
    """Return an ignored value, as JSON has it."""
    return {"key": value.key, "value": value.value, "origin": value.origin}


def remedy_for(values: Sequence[Ignored], info: ConversationInfo | None) -> TrustWorkspace:
    """Return the remedy that accepts these values."""
    is_conversations = info is not None and any(value.conversation_marks for value in values)
    return TrustWorkspace(conversation=str(info.id) if info is not None and is_conversations else "")


def _provider(resolved: Resolved, model: str) -> str:
    return resolve_alias(model, resolved.config.providers.llm.aliases).partition("/")[0]


def _is_account(value: Ignored, provider: str) -> bool:
    """Return whether an ignored value alone says where the provider's requests go or with which key."""
    *above, _ = value.path
    return provider != "" and tuple(above) == (*_ACCOUNT, provider) and not value.is_own


def distrusted(resolved: Resolved) -> Callable[[Layer, KeyPath], bool]:
    """Return a function that says whether a layer's value at a key is ignored."""
    paths = [value.path for value in resolved.ignored]
    outside = {value.value for value in resolved.ignored if value.path == ("extends",)}

    def is_ignored(layer: Layer, path: KeyPath) -> bool:
        if not layer.foreign:
            return False
        return layer.reached in outside or any(overlap(other, path) for other in paths)

    return is_ignored


def accept(
    values: Sequence[Ignored], options: Options, workspace: AnyWorkspace, info: ConversationInfo | None = None
) -> None:
    """Remember that the user has accepted `values` of the workspace's files, and of the conversation `info`.

    Raises:
        StorageError: that could not be written.
    """
    marks = {mark for value in values for mark in value.marks}
    if marks:
        trust_store(options, workspace).accept(marks)
    of_conversation = {mark for value in values for mark in value.conversation_marks}
    if info is not None and of_conversation:
        trust_store(options, workspace, info).accept(of_conversation)


def accept_own(
    change: JsonObject,
    options: Options,
    workspace: AnyWorkspace,
    info: ConversationInfo,
    *,
    over: Resolved | None = None,
    attachments: Collection[str] = (),
) -> None:
    """Remember that jp has written `change` for its user into a conversation that lies where others can write.

    `change` is its base configuration, or a delta over what `over` resolves to: attachments that nobody has accepted of
    that are not by being repeated. `attachments` are declarations that were typed and may lie anywhere.

    Raises:
        StorageError: that could not be written.
    """
    marks = {mark_of_attachment(text) for text in attachments}
    repeats = over is not None and _repeats(change, {value.value for value in untrusted_attachments(over)})
    if workspace.root is not None and not info.local and not repeats:
        marks.add(mark_of_change(change))
    if marks:
        trust_store(options, workspace, info).accept(marks)


def _repeats(change: JsonObject, attachments: Collection[str]) -> bool:
    said = change.get("conversation", {}).get("attachments", [])
    texts: Sequence[str] = cast("JsonObject", said)["value"] if isinstance(said, dict) else said
    return not set(attachments).isdisjoint(texts)


def is_accepted_attachment(text: str, accepted: Collection[str]) -> bool:
    """Return whether `accepted` has the declaration `text`, so that it may lead out of the workspace."""
    return mark_of_attachment(text) in accepted


def trust_store(options: Options, workspace: AnyWorkspace, info: ConversationInfo | None = None) -> TrustStore:
    """Return the store of what the user has accepted of the workspace, or of one conversation."""
    from jp.workspace.trust import TrustStore

    return TrustStore(
        workspace.root or workspace.user_data,
        user_data=workspace.user_data,
        conversation="" if info is None else info.id.digits,
        persistent=options.persist,
    )


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """The sources of every configuration of this process: the files and the environment, and `--cfg`."""

    places: Places
    lower: tuple[Layer, ...]
    cfg: tuple[Layer, ...]
    root: str
    accepted: Accepted
    resolved: dict[tuple[int, ...], Resolved] = {}
    """Results by the identities of their layers, which they hold: one command asks several times for the same."""

    def resolve(self, *, conversation: Sequence[Layer] = (), flags: Sequence[Layer] = (), cfg: bool = True) -> Resolved:
        """Return the configuration with a conversation's layers and the options of a command; `cfg`: with `--cfg` too.

        What a stranger's files loosen and nobody has accepted is ignored in it.

        Raises:
            ConfigurationError: the layers do not fit together.
        """
        layers = [*self.lower, *conversation, *(self.cfg if cfg else ()), *flags]
        identity = tuple(map(id, layers))
        if identity not in self.resolved:
            self.resolved[identity] = resolve_trusted(layers, self.root, self.accepted)
        return self.resolved[identity]

    def kept(self, *, conversation: Sequence[Layer] | None, flags: Sequence[Layer]) -> Resolved:
        """Return the configuration that a conversation keeps: without what the variables, `--cfg` and options loosen.

        A `conversation` of None is a new one.

        Raises:
            ConfigurationError: the layers do not fit together.
        """
        after = self.resolve(conversation=conversation or (), flags=flags)
        files = tuple(layer for layer in self.lower if layer.origin.kind != "environment")
        lasting = self if conversation is not None else replace(self, lower=files)
        if not self.cfg and not flags and lasting.lower == self.lower:
            return after
        return without_lapsing(after, lasting.resolve(conversation=conversation or (), cfg=False))

    def needing_trust(self, conversation: Sequence[Layer] = ()) -> tuple[Ignored, ...]:
        """Return the values ignored for a user who accepted nothing yet, except in the conversation's own layers."""
        layers = [*self.lower, *conversation, *self.cfg]
        return resolve_trusted(layers, self.root).ignored


def read_sources(options: Options, workspace: AnyWorkspace, *, lenient: bool = False) -> Sources:
    """Read the configuration files, the environment and `--cfg`.

    `lenient`: where one of the files or the environment is invalid, none of them counts, and a note says so.

    Raises:
        ConfigurationError: one of them is invalid.
    """
    places = config_places(workspace)
    try:
        lower = lower_layers(places, os.environ)
    except ConfigurationError as error:
        if not lenient:
            raise
        options.notice(phrase("printed without your settings: ", error.message))
        lower = []
    return Sources(
        places=places,
        lower=tuple(lower),
        cfg=tuple(cfg_layers(options.config, places, lower)),
        root=str(workspace.root or workspace.user_data),
        accepted=lambda: accepted_of(workspace),
    )


def accepted_of(workspace: AnyWorkspace, info: ConversationInfo | None = None) -> frozenset[str]:
    """Return the hashes of what the user has accepted of the workspace's files, or of one conversation."""
    from jp.workspace.trust import TrustStore

    conversation = "" if info is None else info.id.digits
    root = workspace.root or workspace.user_data
    return TrustStore(root, user_data=workspace.user_data, conversation=conversation).accepted()


def config_places(workspace: AnyWorkspace) -> Places:
    """Return the places of configuration files for a command in `workspace`."""
    root = workspace.root
    private = None if root is None else silo_directory(root / MARKER, workspace.user_data, create=False)
    return Places(
        cwd=current_directory(),
        user=user_config_directory(os.environ),
        root=root,
        user_workspace=private,
        is_id_known=private is None or not has_settings(private) or mark_of_id(private.name) in accepted_of(workspace),
    )


def accept_id(options: Options, workspace: AnyWorkspace) -> None:
    """Remember that the user's settings for the workspace with this id are meant for the workspace at this path.

    Raises:
        StorageError: that could not be written.
    """
    private = config_places(workspace).user_workspace
    if private is not None:
        trust_store(options, workspace).accept({mark_of_id(private.name)})


def layers_of(workspace: AnyWorkspace, info: ConversationInfo, entries: Sequence[AnyEntry]) -> tuple[Layer, ...]:
    """Return the layers of a conversation: what it was created with, and the deltas in its log that stand.

    Raises:
        StorageError: its base configuration is damaged.
    """
    foreign = is_foreign(workspace, info, entries)
    accepted = accepted_of(workspace, info) if foreign else frozenset[str]()
    return layers_from(workspace.base_config(info), entries, foreign=foreign, accepted=accepted)


def is_foreign(workspace: AnyWorkspace, info: ConversationInfo, entries: Sequence[AnyEntry]) -> bool:
    """Return whether another may have written a conversation: it lies where others write, or came from elsewhere."""
    is_shared = workspace.root is not None and not info.local
    return is_shared or info.metadata.imported_at is not None or original_of(entries) is not None


def layers_from(
    base: entries_JsonObject, entries: Sequence[AnyEntry], *, foreign: bool, accepted: Collection[str] = ()
) -> tuple[Layer, ...]:
    """Return the layers of a conversation with the base configuration `base` and these entries."""
    gone = undone(entries)
    deltas = [(entry.id, entry.delta) for entry in entries if isinstance(entry, ConfigDelta) and entry.id not in gone]
    return conversation_layers(base, deltas, foreign=foreign, accepted=accepted).layers


def trusted_config(options: Options, *, say: bool = False) -> AppConfig:
    """Return the configuration that holds, in which no stranger decides where a key goes, or which one.

    `say`: with a notice where something is ignored.
    """
    from jp.app.options import open_workspace

    resolved = read_sources(options, open_workspace(options)).resolve()
    if say:
        tell_ignored(options, resolved)
    return resolved.config


def own_config(options: Options) -> AppConfig:
    """Return the configuration outside of any workspace."""
    from jp.workspace.layout import user_data_directory
    from jp.workspace.workspace import Workspace

    outside = Workspace(None, user_data=user_data_directory())
    return read_sources(options, outside).resolve().config
