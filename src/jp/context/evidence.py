"""Lines of an output that a digest keeps, and what a transcript names that cannot be guessed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

import msgspec
from msgspec.structs import replace

from jp.context.redaction import redacted
from jp.context.secret_finder import lowered_ascii
from jp.context.summary_schema import shortened

INDEX_LIMIT = 7_000
LONGEST_ERROR = 200
LONGEST_MENTION = 240

_BETWEEN_WORDS = "\"'`<>()[]{},;|\\…"
"""Characters that end a word, besides white space."""

_ENDINGS = ".:!?*"
"""Characters at the end of a word that do not belong to it: punctuation and emphasis."""

_ENDS = bytes(code for code in range(0x80) if chr(code).isspace() or chr(code) in _BETWEEN_WORDS)
_WORD_PER_LINE = bytes.maketrans(_ENDS, b"\n" * len(_ENDS))
"""Puts words on lines of their own. In UTF-8, where what ends a word and is not ASCII is still a part of it."""

_TOLD_APART = re.compile(rb"(?:[^/#0-9]*\n)?(.*+)")
"""A word with a slash, a `#` or a digit, as all words with a class have, and the lines before it; or the last line."""

_TELLING = re.compile(
    rb"^(?:[^\n/]*+/.*|(?=[^\n#0-9]*+[#0-9])[^\n\x80-\xff]*+[\x80-\xff].*"
    rb"|(?:(?:#|[A-Z][A-Z0-9]{1,9}-)[0-9]{1,7}|[0-9a-f]{7,40})[.:!?*]*)$",
    re.MULTILINE,
)
"""Of words on lines of their own, those that may have a class, and few others."""

_ISSUE = re.compile(r"#[0-9]{1,7}|[A-Z][A-Z0-9]{1,9}-[0-9]{1,7}")
_COMMIT = re.compile(r"(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,40}")
_PATH = re.compile(r"(?:~|\.{1,2})?/?[\w.@+-]+(?:/[\w.@+-]+)+/?|(?:~|\.{1,2})?/[\w.@+-]+/?")
_POSITION = re.compile(r":[0-9]+(?::[0-9]+)?$")
_URL = re.compile(r"https?://[^/]+\S*")
_ERROR = re.compile(r"(?i)(?:error|exception|\b(?:failed|failure|fatal|panic|panicked|traceback))\b")
_HINTS_OF_ERRORS = tuple(
    re.compile(hint + rb"[^\n]*+")
    for hint in (
        rb"error(?![a-z0-9_])",
        rb"x(?<=ex)ception(?![a-z0-9_])",
        rb"fa(?<![a-z0-9_]fa)(?:il(?:ed|ure)|tal)(?![a-z0-9_])",
        rb"panic(?<![a-z0-9_]panic)(?:ked)?(?![a-z0-9_])",
        rb"b(?<=traceb)(?<![a-z0-9_]traceb)ac(?:k(?![a-z0-9_])|[\x80-\xff])",
    )
)
"""Substrings in lower case; every line that reports an error contains one of them.

In ASCII text every such line is an error. In other text the next character can be a letter that does not count as one
here, as a `k` can be the sign for Kelvin.
"""

_FORMS_OF_I = ("\u0130".encode(), "\u0131".encode())
"""Letters that the pattern takes for an `i` and that are none in lower case."""


class Mentions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The most frequent of each class first."""

    issues: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()


_MOST = {"issues": 120, "commits": 120, "paths": 80, "errors": 40, "urls": 30}


def mentions_in(texts: Iterable[str], *, outputs: Iterable[str] = ()) -> Mentions:
    """Return the index of `texts` and of tools' `outputs`, all redacted; only outputs are searched for error lines."""
    printed = [_encoded(text) for text in outputs]
    errors: Counter[str] = Counter()
    for line, count in _error_lines(printed):
        errors[shortened(line.strip(), LONGEST_ERROR)] += count
    found: dict[str, Counter[str]] = {name: Counter() for name in _MOST}
    for word, count in _telling_words(chain(map(_encoded, texts), printed)):
        name, value = classified(word)
        if name:
            found[name][value] += count
    found["errors"] = errors
    return within({name: _ranked(found[name]) for name in _MOST})


def words_in(text: str) -> list[str]:
    """Return the words of `text`, without quotes, brackets and the like."""
    for separator in _BETWEEN_WORDS:
        text = text.replace(separator, " ")
    return text.split()


def classified(word: str) -> tuple[str, str]:
    """Return the class of a word and the part that counts, a path without its line; else two empty strings."""
    value = word.rstrip(_ENDINGS)
    if len(value) > LONGEST_MENTION:
        return "", ""
    if "/" in value:
        return _with_slash(value)
    if _ISSUE.fullmatch(value):
        return "issues", value
    return ("commits", value) if _COMMIT.fullmatch(value) else ("", "")


def within(classes: Mapping[str, Sequence[str]], limit: int = INDEX_LIMIT) -> Mentions:
    """Return an index of at most `limit` characters: each class within its number, the longest class is cut first."""
    kept = {name: list(texts[: _MOST[name]]) for name, texts in classes.items()}
    sizes = {name: sum(len(text) + 1 for text in texts) for name, texts in kept.items()}
    while sum(sizes.values()) > limit:
        longest = max(sizes, key=lambda name: sizes[name])
        sizes[longest] -= len(kept[longest].pop()) + 1
    return replace(Mentions(), **{name: tuple(texts) for name, texts in kept.items()})


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")


def _telling_words(texts: Iterable[bytes]) -> Iterator[tuple[str, int]]:
    """Yield the words of all `texts` that can have a class, with their counts; some more than once."""
    counts = Counter[bytes](_TOLD_APART.findall(b"\n".join(texts).translate(_WORD_PER_LINE)))
    for word in _TELLING.findall(b"\n".join(counts)):
        whole = _decoded(word)
        for part in (whole,) if whole.isascii() else whole.replace("…", " ").split():
            yield part, counts[word]


def _error_lines(texts: Iterable[bytes]) -> Iterator[tuple[str, int]]:
    """Yield the lines of all `texts` that report errors, with their counts; some more than once.

    The pattern is slow, so it only reads lines for which the hints are not enough.
    """
    counts = Counter(chain.from_iterable(map(_lines_with_hints, texts)))
    for raw, count in counts.items():
        whole = _decoded(raw)
        lines = whole.splitlines()
        for line in lines:
            if (len(lines) == 1 and whole.isascii()) or _ERROR.search(line):
                yield line, count


def _lines_with_hints(text: bytes) -> Iterable[bytes]:
    if not text.isascii() and any(letter in text for letter in _FORMS_OF_I):
        return [line for line in text.split(b"\n") if not line.isascii() or _has_hint(line)]
    lowered = text.lower()
    found: dict[int, bytes] = {}
    for hint in _HINTS_OF_ERRORS:
        for match in hint.finditer(lowered):
            start = text.rfind(b"\n", 0, match.start()) + 1
            found[start] = text[start : match.end()]
    return found.values()


def _has_hint(line: bytes) -> bool:
    lowered = line.lower()
    return any(hint.search(lowered) for hint in _HINTS_OF_ERRORS)


def _with_slash(value: str) -> tuple[str, str]:
    if value.startswith("http") and _URL.fullmatch(value):
        return "urls", value
    path = _POSITION.sub("", value) if ":" in value else value
    return ("paths", path) if _is_path(path) else ("", "")


def _is_path(text: str) -> bool:
    """Return whether `text` reads as a path; two words with a slash between them are not one."""
    return _PATH.fullmatch(text) is not None and ("." in text or text[0] in "/~" or text.count("/") > 1)


def _ranked(counts: Counter[str]) -> tuple[str, ...]:
    return tuple(text for _, text in sorted((-count, text) for text, count in counts.items() if text))


LONGEST_LINE = 200
MOST_LINES = 5

_WRONG = (
    "error:",
    "error[",
    " error ",
    "error -",
    "failed",
    "failure",
    "fatal",
    "panic",
    "exception",
    "traceback",
    "denied",
    "not found",
    "no such",
    "cannot ",
)
"""Words in lines that name a failure. They only decide which lines are shown."""

_FAILED_TEST = re.compile(
    r"^(?:FAILED |[ \t]*--- FAIL: |not ok |[ \t]*[✕✗\u00d7] |test [^\n]{1,200} \.\.\. FAILED|[ \t]*FAIL[:! \t])[^\n]*",
    re.MULTILINE,
)
_BEGINS_WITH_ERROR = re.compile(
    r"^[ \t]*(?:E {1,6}|[\w./-]{1,200}:[0-9]{1,9}(?::[0-9]{1,9})?:? )?"
    r"(?:[Ee]rror|ERROR|fatal|panic|[A-Z]\w{0,60}(?:Error|Exception))"
    r"[:\[ ]",
    re.MULTILINE,
)
_MOST_ERROR_LINES = 20
_HINTS_OF_FAILED_TESTS = ("FAIL", "not ok", "✕", "✗", "\u00d7")
_MOST_FAILED_TESTS = 3

_MATCH = re.compile(r"^([^\s:][^\n:]{0,250}):([0-9]{1,9})[:-]", re.MULTILINE)
_ARMOUR = re.compile(r"(?=[^0-9]*[0-9])[A-Za-z0-9+/=]{40,200}")
MOST_EVIDENCE = 400
"""Characters of evidence that is stored with a result."""

_LONGEST_PATHS = 150
"""Characters of this that paths may take, of files that were changed or named."""

_READ_AT_MOST = 64 * 1024
"""Of a longer output so many characters are read, half of them at its end: redacting costs time."""

_EXIT = re.compile(
    r"(?i)\b(?:exit(?:ed)?(?:\s+with)?[ _-]?(?:code|status)|return[ _]?code|exited with)"
    r"[\"'>]?\s*(?:of|was|is|[:=])?\s*[\"']?(-?[0-9]{1,3})\b"
)
_NEAR_AN_END = 400
_HIGHEST_EXIT_CODE = 255

_ADDRESS = re.compile(r"http[s:][^\s\"'`<>()\[\]{}\\|,]{6,120}")
_ISSUE_EVIDENCE = re.compile(r"#(?<![\w&/]#)[0-9]{1,6}\b")
_TICKET = re.compile(r"-(?<=[A-Z]-)[0-9]{1,6}\b")
_PROJECT = re.compile(r"\b[A-Z][A-Z0-9]{1,8}$")
_HASH = re.compile(rb" (?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,40}(?= )")
_APART = bytes(
    code if chr(code) in "0123456789abcdef" else ord("_" if chr(code).isalnum() or not chr(code).isascii() else " ")
    for code in range(0x100)
)
"""Leaves of text in UTF-8 the digits of hashes; whatever else is of a word is `_`, and all else a space."""

MOST_IDENTIFIERS = 5
_SAYS_NOTHING = " \t\r\n`~-=_*#+|<>/(){}[],;"


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that an output contains: an exit code at its beginning or end, and lines of evidence."""

    exit_code: int | None = None
    lines: tuple[str, ...] = ()


def observe(text: str, *, kind: str = "", is_error: bool = False) -> Observed:
    """Extract what a digest of an output shows: deterministic, without secrets, in at most `MOST_EVIDENCE` characters.

    Args:
        text: The whole output.
        kind: What sort of tool it is of (`jp.context.digest_lines.ToolKind`); unknown kinds are told by their lines.
        is_error: Whether the call failed.
    """
    text = _readable(text)
    if kind in {"read", "list", "json", "patch", "write"}:
        lines = outcome_lines(text) if is_error else ()
    elif kind == "search":
        lines = outcome_lines(text) if is_error else matches(text, LONGEST_LINE)
    elif kind in {"terminal", "test"} or is_error or _has_failure(text):
        lines = outcome_lines(text)
    else:
        lines = first_and_last(text)
    if kind not in {"read", "list", "json", "search"}:
        lines = (*lines, *_paths_line(text, lines))
        lines = (*lines, *_lines_like_errors(text, lines))
    exit_code = exit_status(text) if kind in {"", "other", "terminal", "test"} else None
    return Observed(exit_code=exit_code, lines=_within(lines, MOST_EVIDENCE))


def _readable(text: str) -> str:
    """Return what is read of an output, without secrets."""
    if len(text) > _READ_AT_MOST:
        text = f"{text[: _READ_AT_MOST // 2]}\n{text[-(_READ_AT_MOST // 2) :]}"
    return redacted(text, {})


def _lines_like_errors(text: str, lines: Iterable[str]) -> Iterator[str]:
    """Return the first lines that begin with the word of an error and are not among `lines`."""
    known = set(lines)
    for found in islice(_BEGINS_WITH_ERROR.finditer(text), _MOST_ERROR_LINES):
        line = _line_at(text, found.start())
        if line and line not in known and not _is_armour(line):
            known.add(line)
            yield line


def _paths_line(text: str, lines: Iterable[str]) -> tuple[str, ...]:
    """Return a line with the files that `text` names most often, and no line of evidence does; none where none is."""
    said = "\n".join(lines)
    found = [path for path in mentions_in((text,)).paths if "." in path.rpartition("/")[2] and path not in said]
    paths: list[str] = []
    left = _LONGEST_PATHS
    for path in found:
        left -= len(path) + 2
        if left < 0:
            break
        paths.append(path)
    return (f"paths: {', '.join(paths)}",) if paths else ()


def identifiers(text: str) -> tuple[str, ...]:
    """Return what in `text` cannot be guessed: addresses, issues (`#12`, `ABC-12`), hashes; each once."""
    found = dict.fromkeys(address.rstrip(".,:;!?*") for address in _ADDRESS.findall(text))
    found |= dict.fromkeys(_ISSUE_EVIDENCE.findall(text))
    for ticket in _TICKET.finditer(text):
        project = _PROJECT.search(text, max(ticket.start() - 10, 0), ticket.start())
        found |= {} if project is None else {project[0] + ticket[0]: None}
    spaced = b" %s " % text.encode("utf-8", "surrogatepass").translate(_APART)
    return tuple(found | dict.fromkeys(word.decode().strip() for word in _HASH.findall(spaced)))


def with_identifiers(lines: Sequence[str], names: Sequence[str], text: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return `lines` of evidence about `text` with those of `names` for which there is room, and which they name."""
    room = MOST_EVIDENCE - sum(len(line) + 1 for line in lines)
    clean, known = _readable(text), "\n".join(lines)
    shown = frozenset(name for name in names if name in known)
    line, named = "", set[str]()
    for name in (name for name in names if name not in shown):
        longer = f"{line}, {name}" if line else f"identifiers: {name}"
        if len(longer) < room and len(named) < MOST_IDENTIFIERS and name in clean:
            line = longer
            named.add(name)
    return ((*lines, line) if line else tuple(lines)), shown | named


def exit_status(text: str) -> int | None:
    """Return the exit code that a tool wrote at the end or the beginning of its output; None where there is none."""
    for part in (text[-_NEAR_AN_END:], text[:_NEAR_AN_END]):
        codes = [int(code) for code in _EXIT.findall(part) if abs(int(code)) <= _HIGHEST_EXIT_CODE]
        if codes:
            return codes[-1]
    return None


def _has_failure(text: str) -> bool:
    lowered = lowered_ascii(text)
    return any(word in lowered for word in _WRONG)


def _within(lines: Iterable[str], limit: int) -> tuple[str, ...]:
    kept: list[str] = []
    for line in lines:
        if limit <= 1:
            break
        kept.append(line if len(line) <= limit else f"{line[: limit - 1]}…")
        limit -= len(kept[-1]) + 1
    return tuple(kept)


def outcome_lines(text: str) -> tuple[str, ...]:
    """Return lines of a command's output: the first and the last error, failed tests, and the last line; in order."""
    lowered = lowered_ascii(text)
    found = [(lowered.find(word), word) for word in _WRONG]
    firsts = [at for at, _ in found if at >= 0]
    lasts = [lowered.rfind(word, at) for at, word in found if at >= 0]
    places = [*([min(firsts), max(lasts)] if firsts else []), *_failed_tests(text), _last_place(text)]
    return _lines_at(text, places)


def first_error(text: str) -> str:
    """Return the first line that names a failure; empty if there is none."""
    lowered = lowered_ascii(text)
    places = [at for at in (lowered.find(word) for word in _WRONG) if at >= 0]
    return "".join(_lines_at(text, [min(places)])) if places else ""


def first_and_last(text: str) -> tuple[str, ...]:
    """Return the first and the last line of `text` that are not empty of content."""
    return _lines_at(text, [len(text) - len(text.lstrip()), _last_place(text)])


def matches(text: str, limit: int, most: int = 3) -> tuple[str, ...]:
    """Return the first lines of the form `path:line`, each of at most `limit` characters."""
    found: list[str] = []
    for match in _MATCH.finditer(text):
        line = _line_at(text, match.start())
        found += [] if _is_armour(line) else [line[:limit]]
        if len(found) == most:
            break
    return tuple(found)


def _failed_tests(text: str) -> list[int]:
    if not any(hint in text for hint in _HINTS_OF_FAILED_TESTS):
        return []
    found: list[int] = []
    for match in _FAILED_TEST.finditer(text):
        found.append(match.start() + len(match[0]) - len(match[0].lstrip()))
        if len(found) == _MOST_FAILED_TESTS:
            break
    return found


def _last_place(text: str) -> int:
    return max(len(text.rstrip(_SAYS_NOTHING)) - 1, 0)


def _lines_at(text: str, places: Iterable[int]) -> tuple[str, ...]:
    """Return the lines at these places, each once, in order, without lines that have no content."""
    starts = sorted({text.rfind("\n", 0, place) + 1 for place in places})
    lines = (_line_at(text, start) for start in starts)
    return tuple(dict.fromkeys(line for line in lines if line and not _is_armour(line)))[:MOST_LINES]


def _is_armour(line: str) -> bool:
    """Return whether `line` ends like a line in the middle of a key, which nothing around it reveals."""
    word = line.rpartition(" ")[2].rpartition(":")[2]
    return _ARMOUR.fullmatch(word) is not None and not word.islower() and not word.isupper()


def _line_at(text: str, start: int) -> str:
    end = text.find("\n", start, start + 2 * LONGEST_LINE)
    return text[start : start + LONGEST_LINE if end < 0 else end].strip()[:LONGEST_LINE]
