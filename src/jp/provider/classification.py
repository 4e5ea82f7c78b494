"""Classification of failures for all vendors: from a response to a `ProviderError` and the time to wait. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import msgspec

from jp.provider.errors import RETRYABLE, ErrorKind, ProviderError
from jp.provider.models import known_names
from jp.provider.reader import UNREADABLE
from jp.remedies import Show, join, phrase
from jp.suggestions import closest_names

_LONGEST_WAIT = 365 * 86_400.0
"""Longest wait in seconds that is returned: a year."""

_SECONDS_PER_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_LIMIT_TIME = re.compile(r"(?:^|[;,\s])t=(\d+(?:\.\d+)?)")
_PROSE = re.compile(
    r"\b(?:retry[ -]after|try again in|retry in|wait)\b[ :\w]{0,12}?\s(?P<time>\d+(?:\.\d+)?)\s*(?P<unit>ms|s|m|h)?"
    r"|\"retryDelay\"\s*:\s*\"(?P<delay>\d+(?:\.\d+)?)s\"",
    re.IGNORECASE,
)


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _duration(text: str | None) -> float | None:
    """Return the seconds of `1m30s`, `250ms` or a bare number."""
    if text is None:
        return None
    found = _DURATION.findall(text)
    if not found:
        return _number(text)
    return sum(float(number) * _SECONDS_PER_UNIT[unit] for number, unit in found)


def _date(text: str | None, now: float) -> float | None:
    """Return the seconds until an HTTP date."""
    if text is None or "," not in text:
        return None
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except ValueError:
        return None


def _from_headers(headers: Mapping[str, str], now: float) -> float | None:
    """Return the wait that the most precise header asks for, in seconds."""
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    plain = headers.get("retry-after")
    if (seconds := _number(plain)) is not None or (seconds := _date(plain, now)) is not None:
        return seconds
    if (limit := _LIMIT_TIME.search(headers.get("ratelimit", ""))) is not None:
        return float(limit.group(1))
    resets = [_duration(headers.get(f"x-ratelimit-reset-{what}")) for what in ("requests", "tokens")]
    if known := [reset for reset in resets if reset is not None]:
        return max(known)
    moment = _number(headers.get("x-ratelimit-reset"))
    return None if moment is None else max(0.0, moment - now)


def _from_prose(text: str) -> float | None:
    found = _PROSE.search(text)
    if found is None:
        return None
    if found["delay"] is not None:
        return float(found["delay"])
    unit = (found["unit"] or "s").lower()
    return float(found["time"]) * _SECONDS_PER_UNIT[unit]


def retry_after(headers: Mapping[str, str], text: str, *, now: float) -> float | None:
    """Return the seconds to wait, rounded up to milliseconds, a year at most; None if nothing asks for it.

    Header names are lower case. `now` is the time in seconds since the epoch.
    """
    seconds = _from_headers(headers, now)
    if seconds is None:
        seconds = _from_prose(text)
    return None if seconds is None else math.ceil(min(seconds, _LONGEST_WAIT) * 1000) / 1000


_LONGEST_MESSAGE = 600

_QUOTA = re.compile(
    r"insufficient_quota|billing_error|credit balance is too low|out of credits?|spend(ing)?[ _]limit"
    r"|reached your specified api usage limits",
    re.IGNORECASE,
)
_MAYBE_QUOTA = re.compile(r"quota exceeded|exceeded your current quota|resource_exhausted|credits", re.IGNORECASE)
"""Also used by Google for limits that reset in a minute: a time to wait, or the name of the limit, decides."""

_SHORT_LIMIT = re.compile(r"per_?(minute|second)|resource exhausted\. please try again later", re.IGNORECASE)
_LONG_LIMIT = re.compile(r"per_?day|\blimit: 0\b", re.IGNORECASE)
"""Limits for which Google asks to wait seconds although they reset daily, or the plan lacks the model."""

_TOO_LONG = re.compile(
    r"prompt is too long|context_length_exceeded|request_too_large|exceeds? the (maximum |available )?context"
    r"|exceed context limit|maximum context length|too many (input )?tokens(?!, please wait)|input is too long"
    r"|prompt is longer than the context|exceed_context_size"
    r"|request too large for|input token count .{0,40}exceeds the maximum|payload size exceeds the limit",
    re.IGNORECASE,
)
_PERMANENT = re.compile(r"requires more system memory|requires --jinja|image input is not supported", re.IGNORECASE)
"""Words of errors that a retry cannot fix, whatever the status is."""

_BAD_KEY = re.compile(r"\bapi[ _]key (is )?(not valid|invalid|expired)|invalid api[ _]key", re.IGNORECASE)
"""Rejected keys that some providers report as any bad request (400)."""

_INVALID = re.compile(r"\b\d+ validation errors?\b", re.IGNORECASE)
"""Validation errors that FastAPI servers with a catch-all handler report as their own failure (500)."""

_REASONING = re.compile(
    r"thinking`?.*(cannot be modified|signature)|signature.*thinking|expected `?thinking|thought[ _]?signature"
    r"|type 'reasoning' was provided without|required 'reasoning' item|item with id 'rs_"
    r"|encrypted content .{0,120}could not be|invalid_encrypted_content",
    re.IGNORECASE,
)
_PASSING = re.compile(r"unreachable|upstream", re.IGNORECASE)
_MODEL = re.compile(r"model", re.IGNORECASE)
_NO_MODEL = re.compile(
    r"not a valid model|model identifier is invalid|no endpoints found for|model .{0,80}(not found|not exist)",
    re.IGNORECASE,
)
_FLAGGED = re.compile(r"requires moderation|\bflagged\b", re.IGNORECASE)
_UNKNOWN_PATH = re.compile(rb'(\{"\w+": ?"not found"\}|404 page not found|not found)?', re.IGNORECASE)
"""Text of web servers for an unknown path."""

_KEY = re.compile(r"\b(sk|pk|xai|gsk)-[\w\-]{6,}|\bAIza[\w\-]{10,}")
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")

_KINDS: dict[str, ErrorKind] = {
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "overloaded_error": "transient",
    "server_is_overloaded": "transient",
    "api_error": "transient",
    "server_error": "transient",
    "timeout_error": "transient",
    "tool_use_failed": "transient",
    "authentication_error": "authentication",
    "permission_error": "authentication",
    "billing_error": "quota",
    "insufficient_quota": "quota",
    "request_too_large": "context_too_long",
    "API_KEY_INVALID": "authentication",
    "PERMISSION_DENIED": "authentication",
    "UNAUTHENTICATED": "authentication",
    "RESOURCE_EXHAUSTED": "rate_limit",
    "ABORTED": "transient",
    "DEADLINE_EXCEEDED": "transient",
    "INTERNAL": "transient",
    "UNAVAILABLE": "transient",
    "INVALID_ARGUMENT": "invalid_request",
    "model_not_found": "model_not_found",
    "DeploymentNotFound": "model_not_found",
    "throttlingException": "rate_limit",
    "modelStreamErrorException": "transient",
    "modelTimeoutException": "transient",
    "internalServerException": "transient",
    "serviceUnavailableException": "transient",
    "validationException": "invalid_request",
}
"""Error kinds by the types and codes of providers that decide alone."""

_VAGUE: frozenset[ErrorKind] = frozenset({"invalid_request", "other"})

_SUCCESSES = range(200, 300)
_NOT_FOUND = 404
_REDIRECTS = range(300, 400)
_CLIENT_ERRORS = range(400, 500)
_SERVER_ERRORS = range(500, 600)

_STATUSES: dict[int, ErrorKind] = {
    401: "authentication",
    402: "quota",
    403: "authentication",
    408: "transient",
    409: "transient",
    413: "context_too_long",
    424: "transient",
    429: "rate_limit",
}


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The source of a reply.

    `key_hint` is the hint for a rejected key, `hints` those for other errors, by their kind. `reply_hints` are words of
    a reply, and the hint for it. `secrets` never appear in a message.
    """

    provider: str
    model: str = ""
    key_hint: str = ""
    hints: Mapping[ErrorKind, str] = {}
    reply_hints: tuple[tuple[bytes, str], ...] = ()
    base_url_setting: str = ""
    secrets: tuple[str, ...] = ()


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A failed response. `status` is None for an error inside a stream; header names are lower case."""

    body: bytes
    status: int | None = None
    headers: Mapping[str, str] = {}


class _Report(msgspec.Struct, frozen=True):
    """The error in a body. `names` are all types and codes of the error, `status` is the HTTP status."""

    text: str
    names: tuple[str, ...]
    status: int | None = None


def redact(text: str, secrets: tuple[str, ...]) -> str:
    """Return `text` without any of `secrets` and without anything that looks like a key."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[redacted]")
    return _KEY.sub("[redacted]", text)


def _first_object(value: object) -> dict[str, object]:
    """Return a JSON object, or the first object of an array: some servers wrap the body of an error in one."""
    try:
        return msgspec.convert(value, dict[str, object])
    except msgspec.ValidationError:
        pass
    try:
        objects = msgspec.convert(value, list[dict[str, object]])
    except msgspec.ValidationError:
        return {}
    return objects[0] if objects else {}


def _error_object(body: bytes) -> dict[str, object] | None:
    """Return the part of a JSON body that describes the error; None if the body is not JSON."""
    try:
        outer = _first_object(msgspec.json.decode(body))
    except UNREADABLE:
        return None
    inner = outer.get("error")
    if isinstance(inner, str):
        # A gateway may pass the error of another server on as text.
        within = _error_object(inner.encode()) if inner.startswith("{") else None
        return within or {"message": inner, **{key: value for key, value in outer.items() if key != "error"}}
    return _first_object(inner) or outer


def _report(reply: Reply) -> _Report:
    error = _error_object(reply.body)
    if error is None:
        return _Report(_plain_text(reply.body), ())
    details = _first_object(error.get("details"))
    message = next(filter(None, (_message_text(error.get(key)) for key in ("message", "Message", "detail"))), "")
    found = (error.get("type"), error.get("code"), details.get("error_code"), *_reasons(error), error.get("status"))
    names = tuple(name for name in found if isinstance(name, str))
    text = _with_upstream(message, _first_object(error.get("metadata")))
    statuses = (status for key in ("code", "status") if isinstance(status := error.get(key), int))
    return _Report(text or (names[0].replace("_", " ") if names else ""), names, next(statuses, None))


class _Problem(msgspec.Struct):
    """A validation error of one field of a request."""

    loc: list[str | int] = []
    msg: str = ""


def _message_text(value: object) -> str:
    """Return a message: its text, or those of all validation errors."""
    if isinstance(value, str):
        return value
    found = _first_object(value).get("detail", value)
    try:
        problems = msgspec.convert(found, list[_Problem])
    except msgspec.ValidationError:
        return ""
    told = (f"{'.'.join(map(str, problem.loc))}: {problem.msg}" for problem in problems if problem.msg)
    return "; ".join(text.removeprefix(": ") for text in told)


def _with_upstream(message: str, metadata: Mapping[str, object]) -> str:
    """Return a message with the one of the upstream server."""
    name, raw = metadata.get("provider_name"), metadata.get("raw")
    if not isinstance(raw, str) or not raw.strip():
        return message
    within = _error_object(raw.encode()) or {}
    text = within.get("message")
    return f"{message} ({name or 'upstream'}: {text if isinstance(text, str) else raw})"


class _Violation(msgspec.Struct, rename="camel"):
    quota_id: str = ""
    quota_metric: str = ""


class _Detail(msgspec.Struct):
    """One of the details of a Google error; each kind has some of the fields."""

    reason: str = ""
    violations: list[_Violation] = []


def _reasons(error: Mapping[str, object]) -> list[str]:
    """Return the reason and the exceeded limits that the details of an error name."""
    try:
        details = msgspec.convert(error.get("details"), list[_Detail])
    except msgspec.ValidationError:
        return []
    names = [detail.reason for detail in details]
    for detail in details:
        names += [name for limit in detail.violations for name in (limit.quota_id, limit.quota_metric)]
    return list(filter(None, names))


def _plain_text(body: bytes) -> str:
    """Return the visible text of a body that is not JSON, such as a proxy's HTML page."""
    text = body.decode(errors="replace")
    title = _TITLE.search(text)
    return _TAG.sub(" ", title[1] if title else text).strip()


def _one_line(text: str, secrets: tuple[str, ...]) -> str:
    line = redact(" ".join(_CONTROL.sub(" ", text).split()), secrets)
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[:_LONGEST_MESSAGE]}…"


def _kind_by_text(report: _Report, *, waits: bool) -> ErrorKind | None:
    """Return the kind that the words decide, whatever the status is."""
    words = " ".join((report.text, *report.names))
    passes = (waits or _SHORT_LIMIT.search(words)) and not _LONG_LIMIT.search(words)
    if _QUOTA.search(words) or (_MAYBE_QUOTA.search(words) and not passes):
        return "quota"
    if _TOO_LONG.search(words):
        return "context_too_long"
    if _BAD_KEY.search(report.text):
        return "authentication"
    if _PERMANENT.search(words):
        return "other"
    if _REASONING.search(words):
        return "rejected_reasoning"
    return "invalid_request" if _INVALID.search(words) else None


def _kind_by_status(status: int, report: _Report) -> ErrorKind:
    if status in _CLIENT_ERRORS and _FLAGGED.search(report.text):
        return "other"
    if status in _STATUSES:
        return _STATUSES[status]
    if status in _SERVER_ERRORS:
        return "transient"
    if (status == _NOT_FOUND and _MODEL.search(report.text)) or _NO_MODEL.search(report.text):
        return "model_not_found"
    return "invalid_request" if status in _CLIENT_ERRORS else "other"


def _kind(reply: Reply, report: _Report, *, waits: bool) -> ErrorKind:
    if _is_page(reply):
        return "other"
    if (worded := _kind_by_text(report, waits=waits)) is not None:
        return worded
    named: list[ErrorKind] = [_KINDS[name] for name in report.names if name in _KINDS]
    # An error inside a stream, or in a success, has its status in the body.
    status = report.status if reply.status is None or reply.status in _SUCCESSES else reply.status
    kind: ErrorKind = "other" if status is None else _kind_by_status(status, report)
    if kind not in _VAGUE:
        return kind
    if named:
        return named[0]
    return "transient" if waits or _PASSING.search(report.text) else kind


def _overruled(kind: ErrorKind, should_retry: str | None) -> ErrorKind:
    if should_retry == "true" and kind not in RETRYABLE:
        return "transient"
    if should_retry == "false" and kind in RETRYABLE:
        return "quota" if kind == "rate_limit" else "other"
    return kind


def _hint(kind: ErrorKind, origin: Origin, reply: Reply) -> str:
    """Return the hint for an error of which more than its kind is known."""
    if kind == "authentication":
        return origin.key_hint
    if hint := _hint_of(reply, origin):
        return hint
    if kind in origin.hints:
        return origin.hints[kind]
    return _other_models(origin) if kind == "model_not_found" else ""


def _other_models(origin: Origin) -> str:
    """Return a hint with models of the provider that exist."""
    others = (name for name in known_names(origin.provider) if name != origin.model)
    near = ", ".join(repr(f"{origin.provider}/{name}") for name in closest_names(origin.model, others, most=3))
    listing = phrase("`", Show("models", origin.provider, refreshed=True), "` lists what it has")
    # A cloud has no such setting and lists its models only on its web pages.
    listing = listing if origin.base_url_setting.endswith(".base_url") else ""
    return join("; ", (f"near: {near}" if near else "", listing))


def _hint_of(reply: Reply, origin: Origin) -> str:
    """Return the hint that the reply alone decides."""
    for words, hint in origin.reply_hints:
        if words in reply.body:
            return hint
    setting = origin.base_url_setting
    if reply.status in _REDIRECTS and setting:
        return f"redirects are not followed, because they could leak the key: set `{setting}`"
    if reply.status == _NOT_FOUND and setting and _UNKNOWN_PATH.fullmatch(reply.body.strip()):
        return f"check `{setting}`; its server does not have this endpoint"
    if _is_page(reply):
        address = f"check `{setting}`" if setting else "check the provider's address"
        return f"the response is not from the API: {address}, and look for a proxy or a login page of the network"
    if reply.status in _SUCCESSES and setting and not _report(reply).text:
        return f"check `{setting}`; the server there does not stream answers"
    return ""


def _is_page(reply: Reply) -> bool:
    """Return whether the reply is a page of another server, which only a wrong URL explains."""
    is_misplaced = reply.status in _SUCCESSES or reply.status == _NOT_FOUND
    return is_misplaced and reply.headers.get("content-type", "").startswith("text/html")


def _subject(reply: Reply, origin: Origin) -> str:
    if reply.status is None:
        return f"{origin.provider} reported an error"
    location = reply.headers.get("location", "").partition("?")[0]
    target = f", a redirect to {location!r}" if location else ""
    return f"{origin.provider} answered {reply.status}{target}"


def _message_of(reply: Reply, report: _Report) -> str:
    """Return the message of the body; for a success without an error, the reason why it is not an answer."""
    if report.text or reply.status not in _SUCCESSES:
        return report.text
    kind = reply.headers.get("content-type", "").partition(";")[0] or "nothing"
    return f"expected a stream, got {kind if reply.body.strip() else 'nothing'}"


def classify(reply: Reply, origin: Origin, *, now: float) -> ProviderError:
    """Return the error of a reply.

    Args:
        reply: the response with an error, or an event that reports one.
        origin: the server, with hints about it and secrets to redact.
        now: seconds since the epoch, for headers with a date.
    """
    report = _report(reply)
    wait = retry_after(reply.headers, reply.body.decode(errors="replace"), now=now)
    kind = _overruled(_kind(reply, report, waits=wait is not None), reply.headers.get("x-should-retry"))
    subject = redact(_subject(reply, origin), origin.secrets)
    text = _one_line(_message_of(reply, report), origin.secrets)
    return ProviderError(
        f"{subject}: {text}" if text else subject,
        kind=kind,
        hint=_hint(kind, origin, reply),
        retry_after=wait if kind in RETRYABLE else None,
        status=reply.status,
    )
