"""The calls of a cycle: checked, permitted, run side by side, and reported as each one ends."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, assert_never, cast

import msgspec
from msgspec.structs import replace

from jp.conversation.entries import AnyEntry, JsonObject, Question, ToolCallRequest
from jp.conversation.resource import Block, Resource, ResourceBlock, ResourceLink, TextBlock, size_in_bytes
from jp.conversation.thread import ToolDefinition
from jp.errors import JpError
from jp.tool.base import (
    Answer,
    CallOutcome,
    CallProgress,
    CallStarted,
    ConfiguredTool,
    Delivery,
    Inquirer,
    NoInquirer,
    OwnTimeout,
    QuestionAnswered,
    ReadsOnly,
    Stream,
    Toolbox,
    ToolEvent,
    ToolInvocation,
    ToolOutput,
    Unanswered,
    error_output,
)
from jp.tool.consent import Allowed, Consent, Denied, PendingApproval, explain
from jp.tool.rules import CheckedCall, check, is_path
from jp.tool.toolbox import definitions

if TYPE_CHECKING:
    from anyio import CancelScope, CapacityLimiter, Event
    from anyio.abc import TaskGroup


class CallInquirer:
    """Passes questions on to `inquirer`. `scope` stops the call; `is_unanswered` says that nobody could answer."""

    def __init__(
        self, call: ToolCallRequest, inquirer: Inquirer, scope: CancelScope, tell: Callable[[ToolEvent], None]
    ) -> None:
        self.is_unanswered = False
        self._call = call
        self._inquirer = inquirer
        self._scope = scope
        self._tell = tell
        self._asking = 0
        self._left = inf

    async def ask(self, question: Question, *, person_only: bool = False) -> Answer | Unanswered:
        """See the port."""
        with self._paused_clock():
            answer = await self._inquirer.ask(question, person_only=person_only)
        if isinstance(answer, Answer):
            self._tell(QuestionAnswered(call=self._call, question=question, answer=answer))
        elif answer.cause == "nobody":
            self.is_unanswered = True
        return answer

    @contextmanager
    def _paused_clock(self) -> Generator[None]:
        """Pause the timeout of the call while a question of it is open."""
        from anyio import current_time

        if not self._asking:
            self._left = self._scope.deadline - current_time()
            self._scope.deadline = inf
        self._asking += 1
        try:
            yield
        finally:
            self._asking -= 1
            if not self._asking:
                self._scope.deadline = current_time() + self._left


_ENDS = frozenset({"source", "target", "destination", "from", "to"})
"""Names of the two paths of a move."""


class _Entered(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    paths: frozenset[str]
    reads_only: bool
    is_over: Event


class _PathIndex:
    """Calls by the paths that they name, and by the directories around these."""

    def __init__(self) -> None:
        self._naming: dict[str, list[str]] = {}
        self._within: dict[str, list[str]] = {}

    def add(self, identity: str, paths: Iterable[str]) -> None:
        for path in paths:
            key, *parents = _with_parents(path)
            self._naming.setdefault(key, []).append(identity)
            for parent in parents:
                self._within.setdefault(parent, []).append(identity)

    def find(self, paths: Iterable[str]) -> set[str]:
        """Return the calls that may name one of `paths`, something in it, or a directory around it."""
        found: set[str] = set()
        for path in paths:
            key, *parents = _with_parents(path)
            found.update(self._within.get(key, ()), *(self._naming.get(place, ()) for place in (key, *parents)))
        return found


def _with_parents(path: str) -> list[str]:
    """Return a path and all directories around it."""
    found = ["/" + path.lstrip("/") if path.startswith("/") else path]
    while (parent := posixpath.dirname(found[-1])) not in {"", found[-1]}:
        found.append(parent)
    return found


class CallOrder:
    """The order of the calls of one cycle, which enter as they were asked for."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._entered: dict[str, _Entered] = {}
        self._calls = _PathIndex()
        self._changing_calls = _PathIndex()

    def enter(self, checked: CheckedCall) -> None:
        """Take note of a call that may run, or of its arguments where they have changed."""
        from anyio import Event

        identity, tool = checked.call.id, checked.configured.tool
        known = self._entered.get(identity)
        entered = self._entered[identity] = _Entered(
            number=len(self._entered) if known is None else known.number,
            paths=paths_named(checked.arguments, self._root),
            reads_only=isinstance(tool, ReadsOnly) and tool.reads_only,
            is_over=Event() if known is None else known.is_over,
        )
        self._calls.add(identity, entered.paths)
        if not entered.reads_only:
            self._changing_calls.add(identity, entered.paths)

    async def wait(self, identity: str) -> None:
        """Wait until all calls are over that have to be before this one."""
        mine = self._entered[identity]
        index = self._changing_calls if mine.reads_only else self._calls
        for other in [self._entered[found] for found in index.find(mine.paths)]:
            # The index also has paths that a call named before its arguments were changed.
            if other.number < mine.number and _touch(mine.paths, other.paths):
                await other.is_over.wait()

    def leave(self, identity: str) -> None:
        """Record that a call is over, or does not run."""
        if identity in self._entered:
            self._entered[identity].is_over.set()


def paths_named(arguments: JsonObject, root: str) -> frozenset[str]:
    """Return the absolute paths that the arguments of a call name; links on the disk are not followed."""
    return frozenset(posixpath.normpath(posixpath.join(root, text)) for text in _texts(arguments))


def _texts(arguments: JsonObject) -> Iterator[str]:
    for name, value in arguments.items():
        if name in _ENDS or is_path(name):
            yield from (text for text in _elements(value) if isinstance(text, str))


def _elements(value: object) -> Iterable[object]:
    return cast("list[object]", value) if isinstance(value, list) else [value]


def _touch(some: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether a path of `some` is one of `others`, or the one lies in the other."""
    return any(_is_within(one, other) or _is_within(other, one) for one in some for other in others)


def _is_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


CEILING = 10 * 1024 * 1024
"""Bytes that are kept of one result."""

MOST_BLOCKS = 1000
"""Blocks that are kept of one result."""


def within_ceiling(output: ToolOutput, *, ceiling: int = CEILING, most_blocks: int = MOST_BLOCKS) -> ToolOutput:
    """Return `output`; if it exceeds the ceiling, its beginning with a note."""
    sizes = [_size(block) for block in output.content]
    if sum(sizes) <= ceiling and len(sizes) <= most_blocks:
        return output
    kept: list[Block] = []
    left = ceiling
    for block, size in zip(output.content[:most_blocks], sizes, strict=False):
        if size > left:
            kept += _beginning(block, left)
            break
        kept.append(block)
        left -= size
    note = f"[Only the beginning of the result was kept: it had {sum(sizes):,} bytes in {len(sizes):,} parts.]"
    return replace(output, content=(*kept, TextBlock(text=note)))


def _size(block: Block) -> int:
    match block:
        case ResourceBlock(resource=resource):
            return size_in_bytes(resource)
        case ResourceLink(uri=uri, description=description):
            return len(uri) + len(description or "")
        case _:
            return size_in_bytes(block)


def _beginning(block: Block, size: int) -> list[Block]:
    """Return at most `size` bytes of a text block, and nothing of other blocks."""
    match block:
        case TextBlock(text=str() as text):
            return [replace(block, text=_cut(text, size))]
        case ResourceBlock(resource=Resource(text=str() as text) as resource):
            return [ResourceBlock(resource=replace(resource, text=_cut(text, size)))]
        case _:
            return []


def _cut(text: str, size: int) -> str:
    return text.encode()[:size].decode(errors="ignore")


AT_ONCE = 8
"""So many calls run at the same time; the others wait."""

TIMEOUT_SECS = 120.0
"""Default seconds for a call of a command or a server."""

Tell = Callable[[ToolEvent], None]
"""Hears what happens, at once: when it returns, a result is recorded."""


_NOBODY = NoInquirer()


def _unheard(text: str) -> None:
    del text


def unchanged_delivery(configured: ConfiguredTool, output: ToolOutput, entries: Sequence[AnyEntry]) -> ToolOutput:
    """Return a delivery that changes nothing."""
    del configured, entries
    return output


def _nobody(call: ToolCallRequest, stream: Stream) -> Inquirer:
    del call, stream
    return _NOBODY


class ToolPorts(msgspec.Struct, frozen=True, kw_only=True):
    """Dependencies of the tool coordinator.

    `root` confines built-in file tools; `notice` hears what a person should know although the turn goes on, `log` what
    is of use only to who looks for a reason; `delivery` makes of a result what is recorded; `inquirer_for` gives who
    answers the questions of a call.
    """

    root: Path
    consent: Consent
    notice: Callable[[str], None] = _unheard
    log: Callable[[str], None] = _unheard
    delivery: Delivery = unchanged_delivery
    inquirer_for: Callable[[ToolCallRequest, Stream], Inquirer] = _nobody


class ToolCoordinator:
    """Runs the calls of each cycle."""

    def __init__(self, toolbox: Toolbox, ports: ToolPorts) -> None:
        self._toolbox = toolbox
        self._ports = ports
        self._running: _Cycle | None = None

    @property
    def is_running(self) -> bool:
        """Return whether calls run, or a person is asked about them."""
        return self._running is not None

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """Return the tools that the model may call, sorted by name."""
        return definitions(self._toolbox)

    async def run(self, calls: Sequence[ToolCallRequest], stream: Stream, tell: Tell) -> None:
        """Run the calls of one cycle: `tell` gets the outcome of each, and before it an event if the call runs.

        What needs no answer runs while a person is asked about the rest, one call after the other. Cancelling stops
        all that run, and no other starts; `tell` gets no outcome of them.

        Raises:
            Exception: what `tell` raised; then everything is stopped, too.
        """
        cycle = self._running = _Cycle(self._toolbox, self._ports, stream, tell)
        try:
            await cycle.run(calls)
        finally:
            self._running = None

    def stop(self, words: str = "") -> None:
        """Stop all calls that run, and start no other: the model is told so, and what the person says to it."""
        if self._running is not None:
            self._running.stop(words)


class _Cycle:
    """The calls of one cycle. Runs once."""

    def __init__(self, toolbox: Toolbox, ports: ToolPorts, stream: Stream, tell: Tell) -> None:
        from anyio import CapacityLimiter, create_task_group

        self._toolbox = toolbox
        self._ports = ports
        self._stream = stream
        self._hears = tell
        self._order = CallOrder(ports.root)
        self._open: dict[str, ToolCallRequest] = {}
        self._started: set[str] = set()
        self._unanswered: set[str] = set()
        self._stopped: str | None = None
        self._failure: Exception | None = None
        self._tasks: TaskGroup = create_task_group()
        self._places: CapacityLimiter = CapacityLimiter(AT_ONCE)

    async def run(self, calls: Sequence[ToolCallRequest]) -> None:
        """See `ToolCoordinator.run`."""
        self._open = {call.id: call for call in calls}
        async with self._tasks:
            try:
                await self._work(calls)
            except Exception as error:  # noqa: BLE001  raised again when everything has stopped
                self._fail(error)
        if self._stopped is not None:
            for call in tuple(self._open.values()):
                output = stopped_output(self._stopped, had_started=call.id in self._started)
                self._tell(CallOutcome(call=call, output=output))
        if self._failure is not None:
            raise self._failure

    def stop(self, words: str) -> None:
        """See `ToolCoordinator.stop`."""
        self._stopped = words
        self._tasks.cancel_scope.cancel()

    async def _work(self, calls: Sequence[ToolCallRequest]) -> None:
        """Start what may run, then ask about the rest, one call after the other."""
        consent = self._ports.consent
        open_calls = [asking for call in calls if (asking := await self._begin(call)) is not None]
        for asking in open_calls:
            self._decided(asking.checked.call, await consent.ask(asking, self._stream, self._invocation))

    async def _begin(self, call: ToolCallRequest) -> PendingApproval | None:
        """Start a call that may run, and end one that cannot; about another, a person has to be asked."""
        checked = check(call, self._toolbox)
        if isinstance(checked, ToolOutput):
            self._tell(CallOutcome(call=call, output=checked))
            return None
        decision = await self._ports.consent.known(checked, self._ports.root)
        if isinstance(decision, PendingApproval):
            self._order.enter(checked)
            return decision
        self._decided(call, checked if isinstance(decision, Allowed) else decision)
        return None

    def _decided(self, call: ToolCallRequest, decided: CheckedCall | Denied) -> None:
        match decided:
            case CheckedCall():
                self._order.enter(decided)
                self._tasks.start_soon(self._run, decided)
            case Denied(cause=cause):
                self._order.leave(call.id)
                output = error_output(explain(call.name, decided))
                self._tell(CallOutcome(call=call, output=output, denied=cause != "skipped"))
            case _:
                assert_never(decided)

    async def _run(self, checked: CheckedCall) -> None:
        try:
            await self._order.wait(checked.call.id)
            async with self._places:
                self._tell(CallStarted(call=checked.call))
                start = monotonic()
                output = await self._output(checked)
                duration = round((monotonic() - start) * 1000)
            self._order.leave(checked.call.id)
            await self._end(checked, output, duration)
        except Exception as error:  # noqa: BLE001  raised again when everything has stopped
            self._fail(error)

    async def _end(self, checked: CheckedCall, output: ToolOutput, duration: int) -> None:
        given = await self._ports.consent.deliver(checked, _with_note(checked, output))
        delivered = self._ports.delivery(checked.configured, given.output, self._stream.entries)
        denied = given.denied or checked.call.id in self._unanswered
        self._tell(CallOutcome(call=checked.call, output=delivered, duration_ms=duration, denied=denied))

    async def _output(self, checked: CheckedCall) -> ToolOutput:
        from anyio import move_on_after

        name, seconds = checked.call.name, timeout_of(checked.configured)
        try:
            with move_on_after(seconds) as scope:
                return within_ceiling(await self._result(checked, scope))
        except JpError as error:
            return error_output(error.message)
        except (Exception, SystemExit) as error:  # noqa: BLE001  a tool may raise anything; the turn goes on
            self._ports.notice(f"tool {name!r} failed: {type(error).__name__}: {error}")
            return error_output(f"{name} failed: {type(error).__name__}: {error}")
        return error_output(f"{name} was stopped: it took longer than {seconds:g} s. What it did until then stays.")

    async def _result(self, checked: CheckedCall, scope: CancelScope) -> ToolOutput:
        call = checked.call
        inquirer = CallInquirer(call, self._ports.inquirer_for(call, self._stream), scope, self._tell)
        try:
            return await checked.configured.tool.run(self._invocation(checked, inquirer))
        finally:
            if inquirer.is_unanswered:
                self._unanswered.add(call.id)

    def _invocation(self, checked: CheckedCall, inquirer: Inquirer = _NOBODY) -> ToolInvocation:
        call = checked.call
        return ToolInvocation(
            arguments=checked.arguments,
            root=self._ports.root,
            settings=checked.configured.settings,
            inquirer=inquirer,
            progress=lambda text: self._tell(CallProgress(call=call, text=text)),
            notice=self._ports.notice,
            log=self._ports.log,
            stream=self._stream,
            is_agreed=checked.is_agreed,
        )

    def _tell(self, event: ToolEvent) -> None:
        """Pass `event` on. If its receiver fails, everything stops."""
        if self._failure is not None:
            return
        if isinstance(event, CallStarted):
            self._started.add(event.call.id)
        if isinstance(event, CallOutcome):
            del self._open[event.call.id]
        try:
            self._hears(event)
        except Exception as error:  # noqa: BLE001  raised again when everything has stopped
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self._tasks.cancel_scope.cancel()


def _with_note(checked: CheckedCall, output: ToolOutput) -> ToolOutput:
    """Return `output`, with a note if a person changed the arguments: the log has those of the model."""
    if not checked.is_edited:
        return output
    arguments = msgspec.json.encode(checked.arguments).decode()
    note = TextBlock(text=f"The user changed the arguments, and the call ran with these: {arguments}")
    return msgspec.structs.replace(output, content=(note, *output.content))


def stopped_output(words: str, *, had_started: bool) -> ToolOutput:
    """Return the result of a call that a person stopped, with their `words`."""
    what = (
        "The user stopped this call while it ran; what it did until then stays."
        if had_started
        else "This call did not run: the user stopped the calls before it began."
    )
    return error_output(f"{what} The user says: {words}" if words else what)


def timeout_of(configured: ConfiguredTool) -> float | None:
    """Return the timeout of a call in seconds; None: there is none, or the tool has its own."""
    settings, tool = configured.settings, configured.tool
    if isinstance(tool, OwnTimeout) and tool.keeps_time:
        return None
    if settings.timeout_secs is not None:
        return settings.timeout_secs or None
    is_outside = settings.command is not None or (settings.source or "").startswith(("local", "mcp."))
    return TIMEOUT_SECS if is_outside else None
