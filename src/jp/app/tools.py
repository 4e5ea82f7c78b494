"""The tools of the configuration in effect, or of a conversation's, asked of servers again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec
from msgspec.structs import replace

from jp.app.conversations import read_conversation
from jp.app.options import AnyWorkspace, Options, base_directory, open_workspace
from jp.app.query.attachments import AttachmentSchemes
from jp.app.settings import accept_id, config_places, read_sources, require_tool, trusted_config
from jp.config.entries import ToolConfig
from jp.config.layers import Resolved
from jp.config.model import AppConfig
from jp.config.schema import key_text
from jp.conversation.entries import AnyEntry, JsonObject
from jp.conversation.resource import Carrier
from jp.errors import JpError, UsageError
from jp.provider.registry import ModelId
from jp.remedies import Option, Show, TrustWorkspace, phrase
from jp.tool.toolbox import nearest
from jp.turn.request import InlineLoader, Loader
from jp.workspace.files import MARKER
from jp.workspace.layout import silo_directory

if TYPE_CHECKING:
    from jp.app.servers import Servers
    from jp.app.toolset import Toolset
    from jp.tool.consent import Proposal
    from jp.tool.rules import LastingRule
    from jp.workspace.listing import ConversationInfo


async def refresh(options: Options, config: AppConfig, servers: Servers) -> list[JpError]:
    """Ask every server of which a tool is declared, all at once. Return what went wrong, at most once per server.

    Raises:
        ConfigurationError: there is no such server.
    """
    from jp.tool.mcp import declared_servers

    servers.configure(config)
    asked = [(name, servers.asked(name)) for name in sorted(declared_servers(config.conversation.tools))]
    errors: list[JpError] = []
    for name, connection in asked:
        try:
            listing = await connection.listing()
        except JpError as error:
            errors.append(error)
        else:
            options.notice(f"the MCP server {name!r} has {len(listing.tools)} tools")
    return errors


C = TypeVar("C", bound=Carrier)

_NO_MODEL = ModelId(provider="script", name="by-hand")
"""The model for a tool that is run by hand, where there is none to decide which tools are offered unasked."""


class ReadStream(msgspec.Struct, frozen=True):
    """A conversation that is only read, as tools see it."""

    entries: Sequence[AnyEntry]
    loader: Loader

    def load(self, carrier: C, /) -> C:
        """Return the carrier with its content inline."""
        return self.loader.load(carrier)


class ReadTools(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace's tools, and the conversation whose configuration counts, if one was named."""

    options: Options
    workspace: AnyWorkspace
    info: ConversationInfo | None
    stream: ReadStream
    resolved: Resolved
    schemes: AttachmentSchemes

    @property
    def root(self) -> Path:
        """The directory that file tools are confined to."""
        return base_directory(self.workspace)

    @property
    def _cache(self) -> Path:
        return self.workspace.user_data / "cache"

    def toolset(self) -> Toolset:
        """Return the tools. Those of MCP servers as far as it is remembered what these have: none is started.

        Raises:
            ConfigurationError: a tool is on a server that there is not.
        """
        return self._toolset(self.schemes.servers.remembered(self.resolved.config))

    def strange_servers(self) -> list[str]:
        """Return the servers from which tools are declared and of which nothing is remembered."""
        config = self.resolved.config
        if not config.providers.mcp:
            return []
        from jp.mcp.definitions import ListingCache, fingerprint
        from jp.tool.mcp import declared_servers

        cache, servers = ListingCache(self._cache / "mcp"), config.providers.mcp
        declared = sorted(declared_servers(config.conversation.tools).intersection(servers))
        return [name for name in declared if cache.read(fingerprint(servers[name], self.root)) is None]

    async def refreshed(self) -> tuple[Toolset, list[JpError]]:
        """Return the tools, after every server was asked for its own, and why servers did not answer.

        Raises:
            ConfigurationError: a tool is on a server that there is not.
        """
        async with self.schemes.servers as servers:
            errors = await refresh(self.options, self.resolved.config, servers)
            return self._toolset(servers.remembered(self.resolved.config)), errors

    @asynccontextmanager
    async def opened(self, name: str) -> AsyncGenerator[Toolset]:
        """Yield the tools, of which `name` can be run: what that takes runs until the context is left.

        Raises:
            JpError: its server does not start.
        """
        async with self.schemes.servers as servers:
            toolset = self._toolset(servers.remembered(self.resolved.config))
            if not toolset.is_known(name):
                # Perhaps a server has it that nobody has asked yet.
                toolset = self._toolset(await servers.join(_only_for(name, self.resolved.config), every=True))
            yield toolset

    def _toolset(self, config: AppConfig) -> Toolset:
        from jp.app.query.tools import BuiltinTools
        from jp.app.toolset import Toolset

        builtin = BuiltinTools(self.schemes, config, None, (), is_structured=False)
        return Toolset(
            config,
            cache_directory=self._cache,
            automatic=partial(builtin.factories, _NO_MODEL),
            servers=self.schemes.servers.tools,
            root=self.workspace.root,
        )


def _only_for(name: str, config: AppConfig) -> AppConfig:
    """Return the configuration without the tools of servers that cannot have `name`."""
    from jp.tool.mcp import groups_of, member_of

    tools = config.conversation.tools
    own = tools.get(name, ToolConfig())
    group = member_of(name, own, groups_of(tools))
    kept = {name, group.name} if group is not None else {name}
    only = {
        other: settings
        for other, settings in tools.items()
        if other in kept or not (settings.source or "").startswith("mcp")
    }
    return replace(config, conversation=replace(config.conversation, tools=only))


def read_tools(options: Options, target: str | None) -> ReadTools:
    """Read what is known of tools.

    Raises:
        JpError: the configuration or the conversation cannot be read.
    """
    if target is None:
        workspace = open_workspace(options)
        resolved = read_sources(options, workspace).resolve()
        info, stream = None, ReadStream((), InlineLoader())
    else:
        read = read_conversation(options, target)
        workspace, resolved = read.workspace, read.resolved
        info, stream = read.info, ReadStream(read.entries, read.loader)
    schemes = AttachmentSchemes(workspace, options, info)
    schemes.distrust(resolved)
    return ReadTools(
        options=options,
        workspace=workspace,
        info=info,
        stream=stream,
        resolved=resolved,
        schemes=schemes,
    )


def unknown_name(name: str, toolset: Toolset, read: ReadTools) -> UsageError:
    """Return the error for a tool that the command line names and that does not exist.

    Raises:
        UntrustedError: there is one once the user trusts the workspace.
    """
    require_tool(read.resolved, name, read.info)
    listing = Show("tools", refreshed=True)
    more = phrase("; `", listing, "` asks the MCP servers that nobody has asked yet") if read.strange_servers() else ""
    return UsageError(f"there is no tool {name!r}", hint=phrase(nearest(name, toolset.all_names), more))


class StoredRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule of the user's own settings: how calls of `tool` run that fit; any call without a `rule`.

    Args:
        tool: the name of the tool.
        run: the mode of such calls.
        file: the file with the rule.
        arguments: patterns by argument.
        prefix: the words with which an argument begins.
        exact: whether calls with other arguments do not match.
        rule: its position among the tool's rules of the file.
    """

    tool: str
    run: str
    file: str
    arguments: Mapping[str, str] = {}
    prefix: Mapping[str, str] = {}
    exact: bool = False
    rule: int | None = None


def allow_always(options: Options, proposal: Proposal, way: LastingRule) -> Path:
    """Let such calls run without a question from now on: write so into the user's own settings; return the file.

    These are the settings for this workspace, outside of it, because the same call does something else in another one:
    `make test` runs what a cloned repository says. Outside of any workspace they are the user's settings for all.

    Raises:
        UsageError: nothing is to be written, there is no place for it, or other rules would no longer go first.
        ConfigurationError: the file is invalid.
        StorageError: it could not be written.
    """
    from jp.app.toolset import AUTOMATIC_SETTINGS

    name = proposal.call.name
    workspace = open_workspace(options)
    if not options.persist:
        raise UsageError(
            phrase("nothing is written with ", Option.NO_PERSIST), hint=phrase("remove ", Option.NO_PERSIST)
        )
    if workspace.root is not None:
        silo_directory(workspace.root / MARKER, workspace.user_data, create=True)
    places = config_places(workspace)
    if not places.is_id_known:
        raise UsageError(
            f"the settings in {str(places.user_workspace)!r} were made for a workspace at another path",
            hint=phrase("accept them for this one: `", TrustWorkspace(), "`"),
        )
    file = _own_settings(options)[-1]
    key = key_text(("conversation", "tools", name))
    if way.rule is None:
        return _written(file, f"{key}.run=unattended", options)
    own = trusted_config(options).conversation.tools.get(name, ToolConfig()).rules
    if proposal.rules not in (own, (*own, *AUTOMATIC_SETTINGS.get(name, ToolConfig()).rules)):
        raise UsageError(
            f"{name!r} follows rules for several tools or of this conversation, which a rule of its own would replace",
            hint=f"write the rules by hand, as `conversation.tools.{name}.rules`",
        )
    return _written(file, f"{key}.rules:+={msgspec.json.encode([way.rule]).decode()}", options)


def _written(file: Path, value: str, options: Options) -> Path:
    from jp.config.edit import set_in_file

    set_in_file(file, [value])
    accept_id(options, open_workspace(options))
    return file


def stored_rules(options: Options) -> list[StoredRule]:
    """Return the rules of the user's own settings, and the tools whose every call runs without a question.

    Raises:
        ConfigurationError: a file is invalid, or there is no place for it.
    """
    found: list[StoredRule] = []
    for file in _own_settings(options):
        for name, settings in _tools_of(file).items():
            if settings.get("run") == "unattended":
                found.append(StoredRule(tool=name, run="unattended", file=str(file)))
            for number, rule in enumerate(_rules_of(settings)):
                said = {"run": "ask", **rule, "tool": name, "file": str(file), "rule": number}
                found.append(msgspec.convert(said, StoredRule))
    return found


def remove_rule(options: Options, number: int) -> StoredRule:
    """Remove a rule from the user's own settings, by its position in `stored_rules`, from 1; return it.

    Raises:
        UsageError: there is no such rule.
        ConfigurationError: the file is invalid.
        StorageError: it could not be written.
    """
    from jp.config.edit import set_in_file

    stored = stored_rules(options)
    if not 0 < number <= len(stored):
        raise UsageError(f"there is no rule {number}", hint=phrase("`", Show("tool rules"), "` lists them"))
    gone = stored[number - 1]
    file = Path(gone.file)
    key = key_text(("conversation", "tools", gone.tool))
    if gone.rule is None:
        set_in_file(file, [f"{key}.run:=null"])
    else:
        rules = _rules_of(_tools_of(file)[gone.tool])
        left = [rule for position, rule in enumerate(rules) if position != gone.rule]
        set_in_file(file, [f"{key}.rules:={msgspec.json.encode(left).decode()}"])
    return gone


def _own_settings(options: Options) -> list[Path]:
    """Return the user's settings file, and the one for this workspace if there is one.

    Raises:
        UsageError: there is no place for them.
    """
    from jp.config.files import candidates

    files = [file.path for file in candidates(config_places(open_workspace(options))) if not file.foreign]
    if not files:
        raise UsageError("there is no place for your settings", hint="set HOME")
    return files


def _tools_of(file: Path) -> Mapping[str, JsonObject]:
    from jp.config.files import parse, read_text

    tools = cast("JsonObject", parse(read_text(file) or "", file).get("conversation", {}).get("tools", {}))
    return {name: cast("JsonObject", settings) for name, settings in tools.items() if isinstance(settings, dict)}


def _rules_of(settings: JsonObject) -> list[JsonObject]:
    rules = settings.get("rules", [])
    return [cast("JsonObject", rule) for rule in cast("list[object]", rules)] if isinstance(rules, list) else []
