"""Two schemes that make digests of old results and, without a model, a summary by rules; as their projects have them.

Written anew from descriptions of what they do, with their constants and with what they get wrong. Where a window is
meant, the target is taken for the part of it that triggers.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from context.baselines import Forgetful
from context.rounds import index_groups, leading_systems
from context.schemes import newest_request, trimmed
from context.sessions import TOOLS
from jp.context.budget import estimate_message, estimate_messages
from jp.context.markers import checksum_of
from jp.context.types import Call, Message, Meta, Transcript, texts_of

_DUPLICATE = "[Duplicate: the same output as a more recent call]"
_CUT = "...[truncated]"


class Store:
    """Originals by the first sixteen digits of their checksums: of so many contents, none are alike in these."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def handle(self, sha256: str) -> str:
        """The beginning of the checksum."""
        return sha256[:16]

    def keep(self, content: str) -> str:
        """Store `content`."""
        handle = self.handle(checksum_of(content))
        self.kept[handle] = content
        return handle

    def recall(self, handle: str) -> str | None:
        """What was kept."""
        return self.kept.get(handle)


class LineDigests(Forgetful):
    """One line for an old result, without a handle; arguments cut; a summary of at most 8,000 characters by rules.

    The tail has a fifth of the target, half as much again at most, and at least eight messages where they fit. The
    first three messages stay until the first summary.
    """

    def compact(self, messages: Transcript, target: int) -> Transcript:
        """Digests outside of the tail; where that is not enough, the middle becomes a summary."""
        tail = _tail_start(messages, target * 30 // 100, least=8)
        rows = _pruned(messages, tail)
        if estimate_messages(rows) <= target:
            return rows
        index = index_groups(rows)
        has_summary = any(row.meta.kind == "summary" for row in rows)
        head = leading_systems(rows) if has_summary else min(leading_systems(rows) + 3, len(rows))
        head = _after_round(rows, head)
        start = max(index.groups[index.group_of[min(tail, len(rows) - 1)]].start, head)
        if start <= head:
            return trimmed(rows, target)
        middle = rows[head:start]
        text = _eight_thousand(middle, [row for row in rows if row.meta.kind == "summary"])
        summary = Message(role="user", content=text, meta=Meta(kind="summary", hidden=True))
        kept = tuple(row for row in rows[:head] if row.meta.kind != "summary")
        return trimmed((*kept, summary, *rows[start:]), target)


class HashDigests:
    """A line with a hash for all long results but the newest four; every argument cut at 160 characters.

    Its summary by rules lists the eight oldest of each kind, and knows nothing of the summary before it. Whoever reads
    a hash may recall what it is of, though the project describes no tool for that.
    """

    def __init__(self) -> None:
        self.store = Store()

    def compact(self, messages: Transcript, target: int) -> Transcript:
        """Digests; where that is not enough, everything but the tail becomes a summary."""
        rows = self._digested(messages)
        if estimate_messages(rows) <= target:
            return rows
        systems = leading_systems(rows)
        start = max(_tail_start(rows, target // 2, least=4), systems)
        if start <= systems:
            return trimmed(rows, target)
        text = _oldest_eight(rows[systems:start])
        summary = Message(role="system", content=text, meta=Meta(kind="summary", hidden=True))
        tail = tuple(row for row in rows[start:] if row.meta.kind != "summary")
        leading = tuple(row for row in rows[:systems] if row.meta.kind != "summary")
        return trimmed((*leading, summary, *tail), target)

    def recallable(self, messages: Transcript) -> Iterator[str]:
        """What the hashes are of."""
        for row in messages:
            for found in re.finditer(r"hash=([0-9a-f]{16})", "\n".join(texts_of(row))):
                if found[1] in self.store.kept:
                    yield self.store.kept[found[1]]

    def _digested(self, messages: Transcript) -> Transcript:
        results = [at for at, row in enumerate(messages) if row.role == "tool"]
        calls = {call.id: call for row in messages for call in row.calls}
        newest: dict[str, int] = {_body(messages[at]): at for at in results}
        exempt = set(results[-4:])
        rows: list[Message] = []
        for at, row in enumerate(messages):
            body = _body(row)
            if row.role != "tool":
                rows.append(_with_arguments(row, _cut_at_160))
            elif newest[body] != at or (at not in exempt and len(body) > 2_000):
                rows.append(self._line(row, calls.get(row.call_id), is_duplicate=newest[body] != at))
            else:
                rows.append(row)
        return tuple(rows)

    def _line(self, row: Message, call: Call | None, *, is_duplicate: bool) -> Message:
        body = _body(row)
        if body.startswith("[tool result digest"):
            return row
        self.store.keep(body)
        known = row.meta.facts
        what = "" if call is None else _subject(call)[:160]
        lines, size = body.count("\n") + 1, len(body.encode("utf-8", "surrogatepass"))
        text = (
            f"[tool result digest id={row.call_id} tool={'' if call is None else call.name} {what} "
            f"path={known.path if known else ''} bytes={size} chars={len(body)} lines={lines} "
            f"hash={checksum_of(body)[:16]}{' duplicate of a newer result' if is_duplicate else ''}]"
        )
        return replace(row, content=text)


def _tail_start(messages: Sequence[Message], budget: int, least: int) -> int:
    """Where the newest groups begin that fit `budget`, and at least so many messages where they fit twice that."""
    start, tokens = len(messages), 0
    for group in reversed(index_groups(messages).groups):
        tokens += sum(estimate_message(messages[at]) for at in range(group.start, group.end))
        limit = budget if len(messages) - start >= least else budget * 2
        if tokens > limit and start < len(messages):
            break
        start = group.start
    return start


def _after_round(messages: Transcript, end: int) -> int:
    while end < len(messages) and messages[end].role == "tool":
        end += 1
    return end


def _pruned(messages: Transcript, tail: int) -> Transcript:
    calls = {call.id: call for row in messages for call in row.calls}
    seen: set[str] = set()
    rows = list(messages)
    for at in range(len(rows) - 1, -1, -1):
        row = rows[at]
        body = _body(row)
        if row.role == "tool" and len(body) >= 200:
            key = hashlib.md5(body.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:12]
            if key in seen:
                rows[at] = replace(row, content=_DUPLICATE)
            elif at < tail:
                rows[at] = replace(row, content=_one_line(calls.get(row.call_id), row))
            seen.add(key)
        elif at < tail and row.calls:
            rows[at] = _with_arguments(row, _cut_leaves)
    return tuple(rows)


def _one_line(call: Call | None, row: Message) -> str:
    body = _body(row)
    if call is None:
        return f"[result] ({len(body)} chars)"
    kind = TOOLS[call.name].kind if call.name in TOOLS else "other"
    known = row.meta.facts
    match kind:
        case "terminal" | "test":
            code = "?" if known is None or known.exit_code is None else known.exit_code
            return f"[{call.name}] ran `{_subject(call)[:80]}` -> exit {code}, {body.count(chr(10)) + 1} lines output"
        case "read":
            return f"[{call.name}] read {known.path if known else ''} from line 1 ({len(body)} chars)"
        case "write" | "patch":
            return f"[{call.name}] wrote to {known.path if known else ''} ({body.count(chr(10)) + 1} lines)"
        case "search" | "list":
            return f"[{call.name}] searched for '{_subject(call)}' -> {body.count(chr(10)) + 1} matches"
        case "agent" | "other":
            return f"[{call.name}] {_subject(call)[:60]} ({len(body)} chars result)"


def _eight_thousand(middle: Sequence[Message], earlier: Sequence[Message]) -> str:
    request = newest_request(tuple(middle))
    said = "" if request is None else _body(request)[:1_400]
    before = "\n".join(_body(row) for row in earlier)[:3_000]
    turns = "\n".join(f"{row.role}: {_shown(row)}" for row in middle if row.meta.kind != "summary")
    text = f"[Reference only: a summary made locally]\n## Active task\n{said}\n## Earlier\n{before}\n## Turns\n{turns}"
    return text[:8_000]


def _shown(row: Message) -> str:
    calls = " ".join(f"{call.name}({call.arguments})" for call in row.calls)
    return f"{_body(row)} {calls}"[:700]


def _oldest_eight(gone: Sequence[Message]) -> str:
    asked = [_body(row)[:240] for row in gone if row.role == "user" and row.meta.kind == "real"][:8]
    answered = [_body(row)[:240] for row in gone if row.role == "assistant" and _body(row)][:8]
    ran = [f"{call.name} {_subject(call)}"[:240] for row in gone for call in row.calls][:8]
    everything = "\n".join(_body(row) for row in gone)
    paths = sorted(set(re.findall(r"(?<![\w.])\.{0,2}/[\w./-]{2,200}", everything)))[:8]
    wrong = [line[:240] for line in everything.splitlines() if "error" in line.lower()][:8]
    sections = (("Pending", asked), ("Done", answered), ("Tools", ran), ("Files", paths), ("Errors", wrong))
    lines = [f"## {title}\n" + "\n".join(f"- {item}" for item in items) for title, items in sections]
    return "\n".join(("[Summary of earlier messages, generated locally, lower confidence]", *lines))[:12_288]


def _with_arguments(row: Message, cut: Callable[[str], str]) -> Message:
    return replace(row, calls=tuple(replace(call, arguments=cut(call.arguments)) for call in row.calls))


def _cut_leaves(arguments: str) -> str:
    return _rewritten(arguments, 200) if len(arguments) > 500 else arguments


def _cut_at_160(arguments: str) -> str:
    return _rewritten(arguments, 160, otherwise=arguments[:160])


def _rewritten(arguments: str, limit: int, otherwise: str | None = None) -> str:
    try:
        plain = msgspec.json.decode(arguments, type=dict[str, object])
    except msgspec.DecodeError:
        return arguments if otherwise is None else otherwise
    cut = {
        name: value[:limit] + _CUT if isinstance(value, str) and len(value) > limit else value
        for name, value in plain.items()
    }
    return msgspec.json.encode(cut).decode()


def _subject(call: Call) -> str:
    tool = TOOLS.get(call.name)
    try:
        plain = msgspec.json.decode(call.arguments, type=dict[str, object])
    except msgspec.DecodeError:
        return ""
    if tool is not None and tool.subject:
        return str(plain.get(tool.subject, ""))
    return ", ".join(f"{name}={value}"[:40] for name, value in list(plain.items())[:2])


def _body(row: Message) -> str:
    return "".join(texts_of(row))
