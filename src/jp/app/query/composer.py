"""Composing the words of a query: typed, edited, quoted, from a template."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from jp.app.query.arguments import flag_layers
from jp.app.query.attachments import AttachmentSchemes
from jp.app.query.conversation import QueryContext, QueryConversation, read_conversation, resolve_settings
from jp.app.query.earlier_turns import answer_of, calls_of, effective_turns, last_answer, request_of
from jp.app.query.question import ComposedQuery, Part, QueryInput, nothing_asked
from jp.app.query.screen import NoScreen
from jp.app.query.tools import BuiltinTools, tool_layers, without_missing_tools
from jp.app.query.wiring import Wiring, wire
from jp.config.model import AppConfig
from jp.conversation.entries import AnyEntry, CycleEnd
from jp.conversation.turns import Turn
from jp.errors import ConfigurationError, UsageError
from jp.remedies import Ask, Option, SetSettings, UseOption, phrase
from jp.render.sanitize import one_line, sanitize

if TYPE_CHECKING:
    from jinja2 import Environment, Template

    from jp.app.drafts import Editor, OpenedDraft
    from jp.app.prompts import SavedText
    from jp.app.query.question import DraftKeeper
    from jp.config.model import JsonObject
    from jp.workspace.listing import ConversationInfo


MOST_CHARS = 10 * 1024 * 1024
_SHOWN_CHARS = 60
_FILE = "<template>"
_INPUT = "input"
"""The name of the query's words in a saved prompt."""


class TemplateError(UsageError):
    """A query is no template, or cannot be rendered."""


class _Fault(msgspec.Struct, frozen=True):
    """A mistake in a template. `line` is its line, None where that is unknown."""

    line: int | None
    reason: str
    is_missing: bool = False


async def render(text: str, values: JsonObject, parts: Sequence[Part] = (), *, hint: str = "") -> str:
    """Return `text` with its expressions replaced. A name that `values` lacks is an error, and so is every file.

    `hint` is that of an error in the template itself.

    Raises:
        TemplateError: it cannot be rendered; the message says in which line of `text`, or of the file
            that this part of it is of.
    """
    from jp.process.worker import WorkerError, render_in_worker

    found = _render_here((text, values)) if _is_placing(text) else None
    try:
        found = msgspec.convert(await render_in_worker(__name__, (text, values)), _Outcome) if found is None else found
    except WorkerError as error:
        found = _Outcome(fault=_Fault(None, str(error)))
    if found.fault is None:
        return found.text
    hint = _missing(found.fault.reason, values) if found.fault.is_missing else hint
    raise _failed(found.fault, text, parts, hint=hint)


async def render_prompt(prompt: SavedText, words: str, values: JsonObject) -> str:
    """Return the text of a saved prompt around the words of a query, which follow it if it has no `input`.

    Raises:
        TemplateError: it cannot be rendered, or has `input` and there are no words.
    """
    parts = (Part(1, str(prompt.path)),)
    given = {**values, _INPUT: words} if words.strip() else {name: values[name] for name in values if name != _INPUT}
    text = prompt.text.removesuffix("\n")
    rendered = await render(text, given, parts, hint="change it in the file of the prompt")
    if not words.strip() or _INPUT in _names_in(text):
        return rendered
    return f"{rendered}\n\n{words}"


def check_template(text: str, name: str) -> None:
    """Refuse a saved prompt that is no template.

    Raises:
        TemplateError: it is none.
    """
    import jinja2

    try:
        _environment().parse(text)
    except jinja2.TemplateSyntaxError as error:
        fault = _Fault(error.lineno, error.message or "it cannot be read")
        hint = "{% raw %} … {% endraw %} keeps a part of it as it is"
        raise _failed(fault, text, (Part(1, name),), hint=hint) from None


def _names_in(text: str) -> set[str]:
    from jinja2 import meta

    return meta.find_undeclared_variables(_environment().parse(text))


def _missing(reason: str, values: JsonObject) -> str:
    if reason.startswith(f"'{_INPUT}'"):
        return "this prompt needs a query: type one, or pipe it in"
    known = ", ".join(sorted(values)) or "none"
    undefined = re.match(r"'(\w+)' is undefined", reason)
    name = "NAME" if undefined is None else undefined[1]
    setting = SetSettings((f"template.values.{name}=VALUE",), scope="run")
    return phrase(f"`template.values` has: {known}; set one with `", setting, "`")


class _Outcome(msgspec.Struct, frozen=True):
    text: str = ""
    fault: _Fault | None = None


def main() -> None:
    """Render apart: see `jp.process.worker.render_in_worker`."""
    from jp.process.worker import serve_task

    serve_task(lambda task: msgspec.to_builtins(_render_here(task)))


def _is_placing(text: str) -> bool:
    from jinja2 import TemplateSyntaxError

    from jp.process.worker import is_simple_template

    try:
        return is_simple_template(_environment(), text)
    except TemplateSyntaxError:
        return True  # and nothing is computed before that is found out again
    except RecursionError:
        return False


def _render_here(task: tuple[str, JsonObject]) -> _Outcome:
    import jinja2

    from jp.process.worker import reason_of

    try:
        return _Outcome(_rendered(_parsed(task[0]), task[1]))
    except jinja2.TemplateSyntaxError as error:
        fault = _Fault(error.lineno, error.message or "it cannot be read")
    except jinja2.UndefinedError as error:
        fault = _Fault(_line_of(error), str(error), is_missing=True)
    except Exception as error:  # noqa: BLE001 - an expression can raise whatever Python has
        fault = _Fault(_line_of(error), reason_of(error))
    return _Outcome(fault=fault)


def _environment() -> Environment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
    del environment.globals["lipsum"]  # chance
    return environment


def _parsed(text: str) -> Template:
    environment = _environment()
    code = environment.compile(text, filename=_FILE)
    return environment.template_class.from_code(environment, code, environment.make_globals(None))


def _rendered(template: Template, values: JsonObject) -> str:
    pieces: list[str] = []
    size = 0
    for piece in template.generate(values):
        size += len(piece)
        if size > MOST_CHARS:
            raise ValueError(f"it renders to more than {MOST_CHARS:,} characters")
        pieces.append(piece)
    return "".join(pieces)


def _line_of(error: Exception) -> int | None:
    """Return the line of the template that an error comes from; None where nothing tells."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == _FILE), None)


def _failed(fault: _Fault, text: str, parts: Sequence[Part], *, hint: str) -> TemplateError:
    line = fault.line
    lines = text.split("\n")
    part = next((part for part in reversed(parts) if part.line <= (line or 0)), Part(1, ""))
    at = f", line {line}" if line else ""
    place = f" in {part.file!r}, line {(line or 0) - part.line + 1}" if part.file else at
    where = f"{place} ({lines[line - 1].strip()[:_SHOWN_CHARS]!r})" if line and line <= len(lines) else ""
    return TemplateError(
        f"the template cannot be rendered{where}: {fault.reason}",
        hint=hint
        or phrase(
            *("without ", Option.TEMPLATE),
            " the text is sent as it is; {% raw %} … {% endraw %} keeps a part of it",
        ),
    )


MOST_TURNS = 10
MOST_CHARS_COMPOSER = 32_000
MOST_CHARS_OF_ONE = 4_000
_MOST_CHARS_OF_FACT = 200
_MOST_CALLS = 20
_ADVICE = "Write above the line, save, and close the editor to ask. Leave it empty to cancel."


def block_quote(text: str) -> str:
    """Return `text` as a block quote of Markdown, without anything that steers a terminal."""
    return "\n".join(f"> {line}" if line else ">" for line in sanitize(text).strip("\n").split("\n"))


def is_quote_only(text: str) -> bool:
    """Return whether `text` has no words but quoted ones."""
    return all(line.startswith(">") or not line.strip() for line in text.split("\n"))


def notes(facts: Mapping[str, str], turns: Sequence[Turn]) -> str:
    """Return the text below the cut line: how to go on, the facts, and the last of `turns`, newest first. Bounded."""
    listed = [f"- {name}: {_shortened(one_line(value), _MOST_CHARS_OF_FACT)}" for name, value in facts.items() if value]
    return "\n".join([_ADVICE, "", *listed, *_quoted_turns(turns), ""])


def _quoted_turns(turns: Sequence[Turn]) -> list[str]:
    lines: list[str] = []
    room = MOST_CHARS_COMPOSER
    for turn in reversed(turns[-MOST_TURNS:]):
        for heading, text in _said_in(turn):
            quote = block_quote(_shortened(text, min(room, MOST_CHARS_OF_ONE)))
            room -= len(quote)
            if room <= 0:
                return lines
            lines += ["", f"## Turn {turn.number}, {heading}", "", quote]
    return lines


def _said_in(turn: Turn) -> list[tuple[str, str]]:
    request, answer, calls = request_of(turn), answer_of(turn), calls_of(turn)
    called = ", ".join(calls[:_MOST_CALLS]) + (", …" if len(calls) > _MOST_CALLS else "")
    said = [("answer", answer), ("calls of tools", called), ("request", "" if request is None else request.content)]
    return [(heading, text) for heading, text in said if text.strip()]


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} … ({len(text) - most:,} more characters)"


_MOST_ATTACHMENTS = 20


class Composer:
    """Composes the words of one query. The conversation is only read, without its lock."""

    def __init__(self, context: QueryContext, chosen: ConversationInfo | None) -> None:
        self._context = context
        self._options = context.options
        self._arguments = context.arguments
        self._chosen = chosen

    async def compose(self, given: QueryInput, stack: AsyncExitStack) -> ComposedQuery:
        """See `jp.app.query.run.compose`."""
        arguments = self._arguments
        parts = [self._quote()] if arguments.quote else []
        replayed = ""
        if arguments.replay and given.opens_editor:
            from jp.app.query.earlier_turns import conversation_of, last_request

            last = last_request(conversation_of(self._held).entries)
            replayed = last.identity
            parts.append(last.request.content)
        parts.append(given.typed)
        if not given.opens_editor:
            text, keeper = "\n\n".join(part for part in parts if part.strip()), None
        else:
            keeper, text = await self._edited(parts, given, stack)
        if arguments.template:
            text = await self._rendered(text, () if given.opens_editor else given.parts)
        piped = given.piped
        if arguments.prompt is not None:
            text, piped = await self._prompted(arguments.prompt, text, piped), ""
        if keeper is None and self._is_blank(text) and not (piped.strip() or arguments.replay):
            raise nothing_asked()
        return ComposedQuery(text, piped, replays=arguments.replay, replayed=replayed, keeper=keeper)

    async def _prompted(self, name: str, text: str, piped: str) -> str:
        """Return the words within the saved prompt `name`."""
        from jp.app.prompts import find_prompt

        prompt = find_prompt(self._context.workspace, name)
        words = "\n\n".join(part for part in (text, piped) if part.strip())
        return await render_prompt(prompt, words, self._config.template.values)

    async def _edited(self, parts: Sequence[str], given: QueryInput, stack: AsyncExitStack) -> tuple[DraftKeeper, str]:
        from jp.app.drafts import NotAskedError, drafts_directory, edit, open_draft
        from jp.app.query.question import DraftKeeper

        editor = self._editor(given)
        below = notes(self._facts(given), effective_turns(self._entries))
        digits = "" if self._chosen is None else self._chosen.id.digits
        directory = drafts_directory(self._context.workspace, digits, persistent=self._options.persist)
        opened = open_draft(directory, parts)
        keeper = stack.enter_context(DraftKeeper(opened.draft, self._context, self._chosen))
        opened.draft.write(opened.text, below)
        self._say_what_is_kept(opened)
        try:
            await edit(editor, opened.draft.path)
        except NotAskedError as error:
            keeper.explain(error)
            raise
        text = opened.draft.text()
        opened.draft.protect()
        if self._is_blank(text):
            opened.draft.remove()
            what = "nothing stands there besides the quote" if text.strip() else "the text is empty"
            raise NotAskedError(f"nothing was asked: {what}")
        return keeper, text

    def _is_blank(self, text: str) -> bool:
        """Return whether nothing is asked: a quote alone asks nothing."""
        return not text.strip() or (self._arguments.quote and is_quote_only(text))

    def _say_what_is_kept(self, opened: OpenedDraft) -> None:
        if opened.left is not None:
            self._options.notice(
                phrase(
                    f"what you wrote before and was not answered stays in {str(opened.left)!r}; `",
                    Ask((UseOption(Option.EDIT),)),
                    "` without a text goes on with it",
                )
            )
        if opened.is_kept:
            others = f"; {opened.others} more in {str(opened.draft.path.parent.parent)!r}" if opened.others else ""
            self._options.notice(f"the editor starts from what you wrote before and was not answered{others}")

    def _editor(self, given: QueryInput) -> Editor:
        from jp.app.drafts import find_editor

        editor = find_editor(self._config.editor, os.environ)
        if editor is None and given.is_empty and not (self._arguments.edit or self._arguments.quote):
            raise nothing_asked(more="; with EDITOR set, it is written in an editor")
        if editor is None:
            raise ConfigurationError(
                "no editor is set",
                hint=phrase("set EDITOR, or for all sessions: `", SetSettings(("editor.cmd=vim",), scope="user"), "`"),
            )
        return editor

    def _quote(self) -> str:
        answer = last_answer(self._entries)
        if not answer:
            what = "this conversation has" if self._held else "there is"
            raise UsageError(
                f"{what} no answer that could be quoted",
                hint=phrase(
                    "name another conversation: `",
                    Ask((UseOption(Option.TARGET, "TARGET"), UseOption(Option.QUOTE))),
                    "`",
                ),
            )
        return block_quote(answer)

    async def _rendered(self, text: str, parts: Sequence[Part]) -> str:

        rendered = await render(text, self._config.template.values, parts)
        if text.strip() and not rendered.strip():
            raise TemplateError("the template renders to nothing")
        return rendered

    @property
    def _entries(self) -> Sequence[AnyEntry]:
        return () if self._held is None else self._held.entries

    @cached_property
    def _held(self) -> QueryConversation | None:
        if self._chosen is None:
            return None
        return read_conversation(self._chosen, self._context)

    @cached_property
    def _wiring(self) -> Wiring:
        schemes = AttachmentSchemes(self._context.workspace, self._options, self._chosen)
        config = schemes.servers.remembered(self._config)
        typed = schemes.typed(self._arguments.attach)
        builtin = BuiltinTools(schemes, config, self._held, typed, is_structured=self._arguments.schema is not None)
        # A name that may be a tool of a server that was never asked is checked once it has listed its tools.
        approve: frozenset[str] = frozenset() if schemes.servers.has_strangers else self._arguments.approve
        arguments = replace(self._arguments, approve=approve)
        return wire(replace(self._context, arguments=arguments, screen=NoScreen()), config, builtin)

    @cached_property
    def _config(self) -> AppConfig:
        """The configuration of the turn, if nobody else changes the conversation before it begins."""
        schemes = AttachmentSchemes(self._context.workspace, self._options, self._chosen)
        typed = [declaration.text for declaration in schemes.typed(self._arguments.attach)]
        flags = flag_layers(self._arguments, typed)
        switched = tool_layers(self._context, self._held, flags)
        settings = resolve_settings(self._context, self._held, [*flags, *switched])
        return without_missing_tools(settings.resolved, self._context.cache)[0]

    def _facts(self, given: QueryInput) -> dict[str, str]:
        """Return the facts worth knowing while one writes: also that there is a model, and a key for it.

        Raises:
            JpError: there is none.
        """
        attachments = self._config.conversation.attachments
        more = f" and {len(attachments) - _MOST_ATTACHMENTS} more" if len(attachments) > _MOST_ATTACHMENTS else ""
        return {
            "conversation": self._conversation(),
            "model": str(self._wiring.model),
            "attachments": ", ".join(attachments[:_MOST_ATTACHMENTS]) + more,
            "tokens": self._tokens(),
            "standard input": f"{len(given.piped):,} characters follow your text" if given.piped else "",
        }

    def _conversation(self) -> str:
        if self._chosen is None:
            return "a new one"

        from jp.app.targets import title_of

        turns = len(effective_turns(self._entries))
        return f"{self._chosen.id}, {title_of(self._chosen)}, {turns} {'turn' if turns == 1 else 'turns'}"

    def _tokens(self) -> str:
        """Return the size of the last request and its answer, with which the next one has to begin."""
        ends = (entry for entry in reversed(self._entries) if isinstance(entry, CycleEnd))
        usage = next((end.usage for end in ends if end.usage.output), None)
        if usage is None:
            return ""
        used = usage.input + usage.cache_read + usage.cache_write + usage.output
        return f"{used:,} with the last answer{self._window()}"

    def _window(self) -> str:
        from jp.app.models import details_of

        window = details_of(self._wiring.config, self._wiring.model).context_window
        return "" if window is None else f", of {window:,}"
