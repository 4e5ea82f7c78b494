"""Composing the words of a query: typed, edited, quoted, from a template."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from jp.cli.options import GlobalOptions
from jp.cli.output import notice
from jp.cli.query.arguments import QueryArguments, flag_layers
from jp.cli.query.attachments import Schemes
from jp.cli.query.conversation import Held, Place, peek, settle
from jp.cli.query.past import answer_of, calls_of, last_answer, request_of, standing_turns
from jp.cli.query.question import Composed, Given, Part, nothing_asked
from jp.cli.query.standing_tools import Standing
from jp.cli.query.tool_flags import tool_layers, without_missing_tools
from jp.cli.query.wiring import Wiring, wire
from jp.config.model import AppConfig
from jp.conversation.entries import AnyEntry, CycleEnd
from jp.conversation.turns import Turn
from jp.errors import ConfigurationError, UsageError
from jp.render.sanitize import one_line, sanitize

if TYPE_CHECKING:
    from jp.cli.drafts import OpenedDraft
    from jp.cli.editor import Editor
    from jp.cli.query.question import Keeper
    from jp.workspace.listing import ConversationInfo


MOST_TURNS = 10
MOST_CHARS = 32_000
MOST_CHARS_OF_ONE = 4_000
_MOST_CHARS_OF_FACT = 200
_MOST_CALLS = 20
_ADVICE = "Write above the line. Save and leave the editor to ask; leave nothing above it to ask nothing."


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is worth knowing about the conversation."""

    name: str
    value: str


def block_quote(text: str) -> str:
    """`text` as a block quote of Markdown, without anything that steers a terminal."""
    return "\n".join(f"> {line}" if line else ">" for line in sanitize(text).strip("\n").split("\n"))


def is_quote_only(text: str) -> bool:
    """Whether `text` has no words but quoted ones."""
    return all(line.startswith(">") or not line.strip() for line in text.split("\n"))


def notes(facts: Sequence[Fact], turns: Sequence[Turn]) -> str:
    """What stands below the cut line: how to go on, the facts, and the last of `turns`, newest first. Bounded."""
    listed = [f"- {fact.name}: {_shortened(one_line(fact.value), _MOST_CHARS_OF_FACT)}" for fact in facts]
    return "\n".join([_ADVICE, "", *listed, *_quoted_turns(turns), ""])


def _quoted_turns(turns: Sequence[Turn]) -> list[str]:
    lines: list[str] = []
    room = MOST_CHARS
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

    def __init__(
        self, options: GlobalOptions, arguments: QueryArguments, place: Place, chosen: ConversationInfo | None
    ) -> None:
        self._options = options
        self._arguments = arguments
        self._place = place
        self._chosen = chosen

    async def compose(self, given: Given, stack: AsyncExitStack) -> Composed:
        """See `jp.cli.query.run.compose`."""
        arguments = self._arguments
        parts = [self._quote()] if arguments.quote else []
        replayed = ""
        if arguments.replay and given.opens_editor:
            from jp.cli.query.replaying import conversation_of, last_request

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
        if keeper is None and self._is_blank(text) and not (given.piped.strip() or arguments.replay):
            raise nothing_asked()
        return Composed(text, given.piped, replays=arguments.replay, replayed=replayed, keeper=keeper)

    async def _edited(self, parts: Sequence[str], given: Given, stack: AsyncExitStack) -> tuple[Keeper, str]:
        from jp.cli.drafts import drafts_directory, open_draft
        from jp.cli.editor import NotAskedError, edit
        from jp.cli.query.question import Keeper

        editor = self._editor(given)
        below = notes(self._facts(given), standing_turns(self._entries))
        digits = "" if self._chosen is None else self._chosen.id.digits
        directory = drafts_directory(self._place.workspace, digits, persistent=self._options.persist)
        opened = open_draft(directory, parts)
        keeper = stack.enter_context(Keeper(opened.draft, self._options, self._place, self._chosen))
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
        """Whether nothing is asked: of a quote alone nothing is."""
        return not text.strip() or (self._arguments.quote and is_quote_only(text))

    def _say_what_is_kept(self, opened: OpenedDraft) -> None:
        if opened.left is not None:
            notice(
                self._options,
                f"what you wrote before and was not answered stays in {str(opened.left)!r}; "
                "`jp query --edit` without a text goes on with it",
            )
        if opened.is_kept:
            others = f"; {opened.others} more in {str(opened.draft.path.parent.parent)!r}" if opened.others else ""
            notice(self._options, f"the editor starts from what you wrote before and was not answered{others}")

    def _editor(self, given: Given) -> Editor:
        from jp.cli.editor import find_editor

        editor = find_editor(self._config.editor, os.environ)
        if editor is None and given.is_empty and not (self._arguments.edit or self._arguments.quote):
            raise nothing_asked(more="; with EDITOR set, it is written in an editor")
        if editor is None:
            raise ConfigurationError(
                "no editor is set", hint="set EDITOR, or for good: `jp config set --in user editor.cmd=vim`"
            )
        return editor

    def _quote(self) -> str:
        answer = last_answer(self._entries)
        if not answer:
            what = "this conversation has" if self._held else "there is"
            raise UsageError(
                f"{what} no answer that could be quoted",
                hint="name another conversation: `jp query --id TARGET --quote`",
            )
        return block_quote(answer)

    async def _rendered(self, text: str, parts: Sequence[Part]) -> str:
        from jp.cli.query.template import TemplateError, render

        rendered = await render(text, self._config.template.values, parts)
        if text.strip() and not rendered.strip():
            raise TemplateError("the template renders to nothing")
        return rendered

    @property
    def _entries(self) -> Sequence[AnyEntry]:
        return () if self._held is None else self._held.entries

    @cached_property
    def _held(self) -> Held | None:
        if self._chosen is None:
            return None
        return peek(self._chosen, self._place, self._options, self._arguments)

    @cached_property
    def _wiring(self) -> Wiring:
        schemes = Schemes(self._place.workspace, self._options, self._chosen)
        config = schemes.servers.remembered(self._config)
        typed = schemes.typed(self._arguments.attach)
        standing = Standing(schemes, config, self._held, typed, is_structured=self._arguments.schema is not None)

        def say(sentence: str) -> None:
            notice(self._options, sentence)

        arguments = self._arguments
        if schemes.servers.has_strangers:
            # What may be a tool of theirs is looked at when they have said so.
            arguments = replace(arguments, approve=frozenset())
        return wire(config, self._place, arguments, say, standing)

    @cached_property
    def _config(self) -> AppConfig:
        """What will hold for the turn, if nobody else changes the conversation before it begins."""
        schemes = Schemes(self._place.workspace, self._options, self._chosen)
        typed = [declaration.text for declaration in schemes.typed(self._arguments.attach)]
        flags = flag_layers(self._arguments, typed)
        switched = tool_layers(self._arguments, self._place, self._held, flags)
        settings = settle(self._place, self._held, [*flags, *switched])
        return without_missing_tools(settings.resolved, self._place.cache)[0]

    def _facts(self, given: Given) -> list[Fact]:
        """What is worth knowing while one writes: also that there is a model, and a key for it.

        Raises:
            JpError: there is none.
        """
        attachments = self._config.conversation.attachments
        more = f" and {len(attachments) - _MOST_ATTACHMENTS} more" if len(attachments) > _MOST_ATTACHMENTS else ""
        known = {
            "conversation": self._conversation(),
            "model": str(self._wiring.model),
            "attachments": ", ".join(attachments[:_MOST_ATTACHMENTS]) + more,
            "tokens": self._tokens(),
            "standard input": f"{len(given.piped):,} characters follow your text" if given.piped else "",
        }
        return [Fact(name=name, value=value) for name, value in known.items() if value]

    def _conversation(self) -> str:
        if self._chosen is None:
            return "a new one"

        from jp.cli.targets import title_of

        turns = len(standing_turns(self._entries))
        return f"{self._chosen.id}, {title_of(self._chosen)}, {turns} {'turn' if turns == 1 else 'turns'}"

    def _tokens(self) -> str:
        """How large the last request was, and its answer: what the next one has to begin with."""
        ends = (entry for entry in reversed(self._entries) if isinstance(entry, CycleEnd))
        usage = next((end.usage for end in ends if end.usage.output), None)
        if usage is None:
            return ""
        used = usage.input + usage.cache_read + usage.cache_write + usage.output
        return f"{used:,} with the last answer{self._window()}"

    def _window(self) -> str:
        from jp.cli.model_details import details_of

        window = details_of(self._wiring.config, self._wiring.model).context_window
        return "" if window is None else f", of {window:,}"
