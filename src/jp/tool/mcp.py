"""Tools of MCP servers, and the forms with which servers ask."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, assert_never

import msgspec
from msgspec.structs import replace

from jp.config.entries import ToolConfig
from jp.conversation.entries import Facts, Question
from jp.conversation.resource import Block, ResourceBlock, ResourceLink, TextBlock
from jp.conversation.thread import ToolDefinition
from jp.errors import JpError
from jp.mcp.definitions import Elicitation, Field, Form, FormAnswer, Listing, ServerTool, UrlRequest, Value, value_of
from jp.mcp.session import Call, CallResult
from jp.process.sandbox.policy import Limits
from jp.tool.base import Inquirer, ToolInvocation, ToolOutput, Unanswered, error_output
from jp.tool.toolbox import ALL, OnServer, is_enabled, nearest, settings_over, source_of

EVERY = "*"
"""In place of a tool's name: every tool of a server."""

_LONGEST = 64
_HASHED = 8
_STRANGE = re.compile(r"[^A-Za-z0-9_-]")
_UNSET = ToolConfig()


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Every tool of `server`, under names that begin with `name`."""

    name: str
    server: str


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of `server` under the name `name`, which the group called `group` has given it, if one has."""

    name: str
    server: str
    tool: ServerTool
    group: str | None = None


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """Offered tools by the names in `conversation.tools`.

    `settings` has every tool under its own name, and no group. `notices` are sentences for the user.
    """

    settings: Mapping[str, ToolConfig]
    tools: tuple[OfferedTool, ...]
    notices: tuple[str, ...]


def single_tools(settings: Mapping[str, ToolConfig]) -> dict[str, OnServer]:
    """Return the names that stand for one tool of a server.

    Raises:
        ConfigurationError: a source is none.
    """
    return {name: source for name, source in _on_servers(settings) if source.tool != EVERY}


def groups_of(settings: Mapping[str, ToolConfig]) -> tuple[Group, ...]:
    """Return the names that mean every tool of a server, longest first: a tool belongs to its first prefix.

    Raises:
        ConfigurationError: a source is none.
    """
    found = [Group(name=name, server=source.server) for name, source in _on_servers(settings) if source.tool == EVERY]
    return tuple(sorted(found, key=lambda group: (-len(group.name), group.name)))


def _on_servers(settings: Mapping[str, ToolConfig]) -> Iterator[tuple[str, OnServer]]:
    for name, own in settings.items():
        source = source_of(name, own, ()) if (own.source or "").startswith("mcp") else None
        if isinstance(source, OnServer):
            yield name, source


def member_of(name: str, own: ToolConfig, groups: Collection[Group]) -> Group | None:
    """Return the group to which a name belongs that says nothing of its source."""
    if own.source is not None or own.command is not None:
        return None
    return next((group for group in groups if name.startswith(f"{group.name}_")), None)


def declared_servers(settings: Mapping[str, ToolConfig]) -> frozenset[str]:
    """Return the servers that some tool comes from, whether it is enabled or not.

    Raises:
        ConfigurationError: a source is none.
    """
    return frozenset(source.server for _, source in _on_servers(settings))


def on_servers(names: Iterable[str], settings: Mapping[str, ToolConfig]) -> frozenset[str]:
    """Return those of the `names` of offered tools that come from servers, as far as `settings` say.

    Raises:
        ConfigurationError: a source is none.
    """
    singles, groups = single_tools(settings), groups_of(settings)
    return frozenset(name for name in names if name in singles or member_of(name, settings.get(name, _UNSET), groups))


def wanted_servers(settings: Mapping[str, ToolConfig]) -> frozenset[str]:
    """Return the servers of which a tool is, or may be, enabled.

    Raises:
        ConfigurationError: a source is none.
    """
    groups = groups_of(settings)
    wanted = {source.server for name, source in single_tools(settings).items() if _enabled(name, settings)}
    wanted |= {group.server for group in groups if _enabled(group.name, settings)}
    for name, own in settings.items():
        group = member_of(name, own, groups)
        if group is not None and is_enabled(own):
            wanted.add(group.server)
    return frozenset(wanted)


def _enabled(name: str, settings: Mapping[str, ToolConfig]) -> bool:
    return is_enabled(settings_over(settings.get(ALL, _UNSET), settings[name]))


def offer(
    settings: Mapping[str, ToolConfig], listings: Mapping[str, Listing], *, taken: Collection[str] = ()
) -> Offered:
    """Give every tool its name, and every name its settings.

    `listings` are of the servers that are known; what is said of others has no effect. Names that are `taken` are
    those of tools that come with jp.

    Raises:
        ConfigurationError: a source is none.
    """
    offering = _Offering(settings, listings, taken)
    offering.add_singles()
    offering.add_groups()
    offering.tell_of_unknown_members()
    return Offered(settings=offering.kept, tools=tuple(offering.tools), notices=tuple(offering.notices))


class _Offering:
    """The tools that are offered so far."""

    def __init__(
        self, settings: Mapping[str, ToolConfig], listings: Mapping[str, Listing], taken: Collection[str]
    ) -> None:
        self._settings = settings
        self._listings = listings
        self._taken = taken
        self._singles = single_tools(settings)
        self._groups = groups_of(settings)
        self._members = {
            name: group
            for name, own in settings.items()
            if name not in taken and (group := member_of(name, own, self._groups)) is not None
        }
        gone = {*self._singles, *self._members, *(group.name for group in self._groups)}
        self.kept = {name: own for name, own in settings.items() if name not in gone}
        self.tools: list[OfferedTool] = []
        self.notices: list[str] = []

    def add_singles(self) -> None:
        for name, source in self._singles.items():
            listing = self._listings.get(source.server)
            tool = None if listing is None else listing.tool(source.tool)
            if tool is not None:
                self._add(name, source.server, tool, self._settings[name])
            elif listing is not None and _enabled(name, self._settings):
                self.notices.append(_missing(source, listing))

    def add_groups(self) -> None:
        spoken_for = {(source.server, source.tool) for source in self._singles.values()}
        for group in self._groups:
            every = self._settings[group.name]
            listing = self._listings.get(group.server, Listing())
            for name, tool in names_in(group, listing, {*self._taken, *self.kept}).items():
                if (group.server, tool.name) not in spoken_for:
                    own = self._settings[name] if self._members.get(name) == group else _UNSET
                    self._add(name, group.server, tool, settings_over(every, own), group=group.name)

    def tell_of_unknown_members(self) -> None:
        for name, group in self._members.items():
            listing = self._listings.get(group.server)
            if listing is not None and name not in self.kept:
                known = [tool.name for tool in self.tools if tool.server == group.server]
                hint = nearest(name, known)
                self.notices.append(f"no tool of the MCP server {group.server!r} is called {name!r}: {hint}")

    def _add(self, name: str, server: str, tool: ServerTool, own: ToolConfig, *, group: str | None = None) -> None:
        self.tools.append(OfferedTool(name=name, server=server, tool=tool, group=group))
        self.kept[name] = replace(own, source=OnServer(server, tool.name).text)


def _missing(source: OnServer, listing: Listing) -> str:
    hint = nearest(source.tool, [tool.name for tool in listing.tools])
    return f"the MCP server {source.server!r} has no tool {source.tool!r}: {hint}"


def names_in(group: Group, listing: Listing, taken: Collection[str]) -> dict[str, ServerTool]:
    """Return the tools of a server by the names that the model is offered them under, in the order of the listing.

    A name is the group's, `_`, and the tool's own, or just the tool's own where that begins so already. What no
    provider takes becomes `_`, what is too long ends in a hash of itself, and what is taken gets a number.
    """
    prefix = f"{group.name}_"
    plain = [tool for tool in listing.tools if tool.name.startswith(prefix)]
    named: dict[str, ServerTool] = {}
    for tool in (*plain, *(tool for tool in listing.tools if not tool.name.startswith(prefix))):
        own = tool.name if tool.name.startswith(prefix) else prefix + tool.name
        named[_free(_plain(own), {*taken, *named})] = tool
    order = {tool.name: position for position, tool in enumerate(listing.tools)}
    return dict(sorted(named.items(), key=lambda item: order[item[1].name]))


def _plain(name: str) -> str:
    plain = _STRANGE.sub("_", name)
    if len(plain) <= _LONGEST:
        return plain
    from hashlib import sha256

    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASHED]
    return f"{plain[: _LONGEST - _HASHED - 1]}_{digest}"


def _free(name: str, taken: Collection[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        ending = f"_{number}"
        free = name[: _LONGEST - len(ending)] + ending
    return free


_MOST_TRIES = 3

_GO_ON = "go on"


async def answer(elicitation: Elicitation, inquirer: Inquirer, say: Callable[[str], None]) -> FormAnswer:
    """Return what is answered. An address is never opened for a server: it is shown, and declined."""
    match elicitation:
        case UrlRequest(server=server, message=message, url=url):
            say(f"the MCP server {server!r} asks you to open {url} ({message}); jp declines: open it and ask again")
            return FormAnswer(action="decline")
        case Form():
            return await _fill(elicitation, inquirer)
        case _:
            assert_never(elicitation)


async def _fill(form: Form, inquirer: Inquirer) -> FormAnswer:
    if not form.fields:
        question = Question(id=_GO_ON, text=_headed(form, "go on?"), kind="boolean")
        reply = await inquirer.ask(question, person_only=True)
        if isinstance(reply, Unanswered):
            return _without(reply)
        return FormAnswer(action="accept" if reply.value is True else "decline")
    values: dict[str, Value | None] = {}
    for position, field in enumerate(form.fields):
        asked = field if position else _introduced(form, field)
        value = await _ask(asked, inquirer)
        if isinstance(value, Unanswered):
            return _without(value)
        if value is not None:
            values[field.question.id] = value
        elif field.required:
            return FormAnswer(action="decline")
    return FormAnswer(action="accept", values=values)


def _introduced(form: Form, field: Field) -> Field:
    """Return the first field, with what the form is about."""
    question = field.question
    return replace(field, question=replace(question, text=_headed(form, question.text)))


def _headed(form: Form, text: str) -> str:
    return f"{form.server}: {form.message}\n{text}"


def _without(reply: Unanswered) -> FormAnswer:
    return FormAnswer(action="decline" if reply.cause == "declined" else "cancel")


async def _ask(field: Field, inquirer: Inquirer) -> Value | Unanswered | None:
    """Return the value of a field, None where it is left empty. What it cannot be is asked for again, a few times."""
    for attempt in range(_MOST_TRIES):
        question = field.question
        if attempt:
            # What was answered to a question is not asked again in a turn.
            question = replace(question, id=f"{question.id}#{attempt + 1}", text=f"that does not fit. {question.text}")
        reply = await inquirer.ask(question)
        if isinstance(reply, Unanswered):
            return reply
        value = value_of(field, reply.value)
        if value is not None or (not field.required and reply.value in {None, ""}):
            return value
    return None


def _unconfined() -> Limits:
    return Limits(word="off", text="")


class Server(Protocol):
    """Caller of one server's tools, which starts the server if needed."""

    async def call(self, call: Call) -> CallResult:
        """Call a tool; cancelling tells the server.

        Raises:
            JpError: the server does not start, has ended, or refuses.
        """
        ...


class McpTool:
    """A tool of a server. Whatever becomes of the server costs this tool a result that says so, and nothing else."""

    def __init__(
        self,
        offered: OfferedTool,
        server: Server,
        *,
        summary: str | None = None,
        limits: Callable[[], Limits] = _unconfined,
    ) -> None:
        """`summary` takes the place of what the server says of the tool; `limits` says what confines the server."""
        self._offered = offered
        self._server = server
        self._summary = summary
        self._limits = limits

    @property
    def definition(self) -> ToolDefinition:
        """Return what the server says of it, under the name that it is offered by."""
        tool = self._offered.tool
        return ToolDefinition(
            name=self._offered.name, description=self._summary or tool.description, parameters=tool.parameters
        )

    @property
    def source(self) -> OnServer:
        """Return where it is."""
        return OnServer(self._offered.server, self._offered.tool.name)

    @property
    def hints(self) -> tuple[str, ...]:
        """Return what the server says of its effects, for a person. It may be wrong, and is never consent."""
        return self._offered.tool.hints.sentences

    def sandbox_limits(self, invocation: ToolInvocation) -> Limits:
        """See the port."""
        return self._limits()

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """Call it, and let the server ask meanwhile."""

        async def elicit(elicitation: Elicitation) -> FormAnswer:
            return await answer(elicitation, invocation.inquirer, invocation.notice)

        call = Call(
            tool=self._offered.tool.name, arguments=invocation.arguments, progress=invocation.progress, elicit=elicit
        )
        try:
            called = await self._server.call(call)
        except JpError as error:
            return error_output(error.message)
        content = called.content or (TextBlock(text=""),)
        return ToolOutput(content=content, is_error=called.is_error, facts=_facts(content))


def _facts(content: Sequence[Block]) -> Facts | None:
    """Return what is known of the one resource that came, embedded or named."""
    found = [
        block.resource if isinstance(block, ResourceBlock) else block
        for block in content
        if isinstance(block, ResourceBlock | ResourceLink)
    ]
    return Facts(url=found[0].uri, title=found[0].title) if len(found) == 1 else None
