from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import msgspec
import pytest

from jp.cli.terminal.wording import worded
from jp.errors import ExitCode
from jp.provider.classification import Origin, Reply, classify, redact
from jp.provider.errors import ErrorKind, ProviderError

ORIGIN = Origin(
    provider="anthropic",
    model="claude-opus-5.5",
    key_hint="check the key in ANTHROPIC_API_KEY",
    base_url_setting="providers.llm.anthropic.base_url",
    secrets=("secret-key-1",),
)


def classified(
    status: int | None, error: object, headers: Mapping[str, str] | None = None, *, origin: Origin = ORIGIN
) -> ProviderError:
    body = error if isinstance(error, bytes) else msgspec.json.encode(error)
    return classify(Reply(body=body, status=status, headers=headers or {}), origin, now=0.0)


def anthropic(kind: str, message: str, **details: object) -> dict[str, object]:
    return {"type": "error", "error": {"type": kind, "message": message, **details}, "request_id": "req_1"}


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, anthropic("invalid_request_error", "max_tokens: must be positive"), "invalid_request"),
        (
            500,
            {
                "error": {
                    "message": "1 validation error:\n  {'type': 'literal_error', …}",
                    "type": "internal_server_error",
                }
            },
            "invalid_request",
        ),
        (400, anthropic("invalid_request_error", "prompt is too long: 201 tokens > 200 maximum"), "context_too_long"),
        (
            400,
            anthropic("invalid_request_error", "input length and `max_tokens` exceed context limit: 1 + 2 > 2"),
            "context_too_long",
        ),
        (400, anthropic("invalid_request_error", "Your credit balance is too low to access the API"), "quota"),
        (400, anthropic("invalid_request_error", "You have reached your specified API usage limits"), "quota"),
        (
            400,
            anthropic(
                "invalid_request_error",
                "messages.1.content.0: `thinking` or `redacted_thinking` blocks cannot be modified",
            ),
            "rejected_reasoning",
        ),
        (
            400,
            anthropic("invalid_request_error", "messages.1.content.0: Invalid `signature` in `thinking` block."),
            "rejected_reasoning",
        ),
        (
            400,
            anthropic(
                "invalid_request_error",
                "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When "
                "`thinking` is enabled, a final `assistant` message must start with a thinking block.",
            ),
            "rejected_reasoning",
        ),
        (400, anthropic("invalid_request_error", "thinking.budget_tokens: must be at least 1024"), "invalid_request"),
        (401, anthropic("authentication_error", "invalid x-api-key"), "authentication"),
        (400, {"error": "the input length exceeds the context length"}, "context_too_long"),
        (400, {"error": "the prompt is longer than the context length currently available"}, "context_too_long"),
        (
            400,
            {"error": '{"error":{"code":400,"message":"too much","type":"exceed_context_size_error"}}'},
            "context_too_long",
        ),
        (400, {"error": "request (9 tokens) exceeds the available context size (8 tokens)"}, "context_too_long"),
        (400, {"error": "{broken"}, "invalid_request"),
        (404, {"error": 'model "m" not found, try pulling it first'}, "model_not_found"),
        (500, {"error": "model requires more system memory (5.6 GiB) than is available (3.1 GiB)"}, "other"),
        (402, anthropic("billing_error", "pay first"), "quota"),
        (403, anthropic("permission_error", "not yours"), "authentication"),
        (404, anthropic("not_found_error", "model: claude-opus-5.5"), "model_not_found"),
        (404, anthropic("not_found_error", "no such path"), "invalid_request"),
        (408, anthropic("timeout_error", "slow"), "transient"),
        (409, {"error": {"message": "conflict"}}, "transient"),
        (413, anthropic("request_too_large", "too many bytes"), "context_too_long"),
        (422, {"detail": "upstream connect error"}, "transient"),
        (429, anthropic("rate_limit_error", "slow down"), "rate_limit"),
        (429, anthropic("rate_limit_error", "…", details={"error_code": "contract_spend_limit_reached"}), "quota"),
        (429, {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}, "quota"),
        (429, {"error": {"status": "RESOURCE_EXHAUSTED", "message": "Quota exceeded for metric x"}}, "quota"),
        (
            429,
            [
                {
                    "error": {
                        "status": "RESOURCE_EXHAUSTED",
                        "message": "Quota exceeded",
                        "details": [{"retryDelay": "7s"}],
                    }
                }
            ],
            "rate_limit",
        ),
        (500, anthropic("api_error", "Internal server error"), "transient"),
        (503, b"", "transient"),
        (529, anthropic("overloaded_error", "Overloaded"), "transient"),
        (302, b"", "other"),
        (200, b"<html><title>Log in to the network</title></html>", "other"),
        (None, anthropic("overloaded_error", "Overloaded"), "transient"),
        (None, anthropic("rate_limit_error", "slow down"), "rate_limit"),
        (None, anthropic("invalid_request_error", "bad"), "other"),
        (None, {"error": {"code": "server_is_overloaded"}}, "transient"),
    ],
)
def test_status_type_and_words_decide_the_kind(status: int | None, error: object, kind: str) -> None:
    found = classified(status, error)

    assert found.kind == kind
    assert found.status == status


def google(status: str, message: str, *details: dict[str, object]) -> dict[str, object]:
    return {"error": {"code": 400, "message": message, "status": status, "details": list(details)}}


def limits(*names: str, wait: str | None = None) -> tuple[dict[str, object], ...]:
    violations = [{"quotaMetric": "generativelanguage.googleapis.com/requests", "quotaId": name} for name in names]
    failure: dict[str, object] = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": violations}
    pause: dict[str, object] = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": wait}
    return (failure,) if wait is None else (failure, pause)


SPENT = "You exceeded your current quota, please check your plan and billing details."
PER_MINUTE = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
PER_DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
NO_KEY: dict[str, object] = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, google("INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", NO_KEY), "authentication"),
        (400, google("INVALID_ARGUMENT", "Corrupted thought signature."), "rejected_reasoning"),
        (
            400,
            google("INVALID_ARGUMENT", "Function call is missing a thought_signature in functionCall parts."),
            "rejected_reasoning",
        ),
        (
            400,
            google("INVALID_ARGUMENT", "The input token count (2000000) exceeds the maximum number of tokens (1)."),
            "context_too_long",
        ),
        (400, google("INVALID_ARGUMENT", "Request payload size exceeds the limit: 1 bytes."), "context_too_long"),
        (400, google("INVALID_ARGUMENT", "Unsupported MIME type: image/gif"), "invalid_request"),
        (403, google("PERMISSION_DENIED", "Your API key was reported as leaked."), "authentication"),
        (404, google("NOT_FOUND", "models/x is not found for API version v1beta"), "model_not_found"),
        (429, google("RESOURCE_EXHAUSTED", SPENT, *limits(PER_MINUTE, wait="34s")), "rate_limit"),
        (429, google("RESOURCE_EXHAUSTED", SPENT, *limits(PER_MINUTE)), "rate_limit"),
        (429, google("RESOURCE_EXHAUSTED", "Resource exhausted. Please try again later."), "rate_limit"),
        (429, google("RESOURCE_EXHAUSTED", SPENT), "quota"),
        (429, google("RESOURCE_EXHAUSTED", SPENT, *limits(PER_DAY, wait="34s")), "quota"),
        (429, google("RESOURCE_EXHAUSTED", f"{SPENT} Quota exceeded, limit: 0. Please retry in 20.04s."), "quota"),
        (429, {"error": {"status": "RESOURCE_EXHAUSTED", "message": SPENT, "details": [3]}}, "quota"),
        (500, google("INTERNAL", "An internal error has occurred."), "transient"),
        (503, google("UNAVAILABLE", "The model is overloaded. Please try again later."), "transient"),
        (504, google("DEADLINE_EXCEEDED", "Deadline expired before operation could complete."), "transient"),
        (None, google("UNAVAILABLE", "The model is overloaded."), "transient"),
        (None, google("INTERNAL", "An internal error has occurred."), "transient"),
        (None, google("RESOURCE_EXHAUSTED", SPENT, *limits(PER_MINUTE)), "rate_limit"),
        (None, google("INVALID_ARGUMENT", "Bad."), "invalid_request"),
        (None, google("UNAUTHENTICATED", "No key."), "authentication"),
    ],
)
def test_google_s_words_decide_the_kind(status: int | None, error: object, kind: str) -> None:
    assert classified(status, error).kind == kind


def test_google_says_in_a_detail_how_long_to_wait() -> None:
    assert classified(429, google("RESOURCE_EXHAUSTED", SPENT, *limits(PER_MINUTE, wait="34s"))).retry_after == 34.0


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"error": {"message": "one\ntwo\x1b[31m"}}, "one two [31m"),
        ({"error": "plain words"}, "plain words"),
        ({"message": "outer"}, "outer"),
        ({"detail": "not here"}, "not here"),
        ([{"error": {"message": "in an array"}}], "in an array"),
        ({"error": {"type": "overloaded_error"}}, "overloaded error"),
        (b"<html><head><title>502 Bad\nGateway</title></head><body>x</body></html>", "502 Bad Gateway"),
        (b"<style>p {}</style><p>Access <b>denied</b></p>", "Access denied"),
        (b"just text", "just text"),
        (b"\xff", "\ufffd"),
    ],
)
def test_the_message_is_a_sentence_never_a_raw_body(body: object, text: str) -> None:
    assert classified(500, body).message == f"anthropic answered 500: {text}"


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"3", b"[3]", {"error": {}}, {"error": {"trace": {"a": 1}}}])
def test_a_body_without_words_leaves_the_status(body: object) -> None:
    assert classified(500, body).message == "anthropic answered 500"


def test_a_long_message_is_cut() -> None:
    message = classified(500, {"error": {"message": "x" * 5000}}).message

    assert len(message) < 700
    assert message.endswith("…")


def test_no_key_appears_in_a_message() -> None:
    error = {"error": {"message": "bad key secret-key-1, not sk-ant-abc123def nor AIzaSyD0123456789"}}
    location = {"location": "https://elsewhere.example/secret-key-1?key=secret-key-1"}

    assert classified(401, error).message == "anthropic answered 401: bad key [redacted], not [redacted] nor [redacted]"
    assert "secret-key-1" not in classified(302, b"", location).message


def test_nothing_is_redacted_where_there_is_no_secret() -> None:
    assert redact("a b", ("",)) == "a b"


def test_only_what_can_be_retried_says_when() -> None:
    assert classified(429, anthropic("rate_limit_error", "…"), {"retry-after": "7"}).retry_after == 7.0
    assert classified(429, anthropic("rate_limit_error", "try again in 2s")).retry_after == 2.0
    assert classified(401, anthropic("authentication_error", "…"), {"retry-after": "7"}).retry_after is None


def test_an_error_that_asks_for_patience_is_worth_a_retry() -> None:
    assert classified(418, {"error": {"message": "busy"}}, {"retry-after": "7"}).kind == "transient"


@pytest.mark.parametrize(
    ("status", "should_retry", "kind"),
    [
        (400, "true", "transient"),
        (429, "true", "rate_limit"),
        (429, "false", "quota"),
        (500, "false", "other"),
        (400, "false", "invalid_request"),
        (500, "maybe", "transient"),
    ],
)
def test_a_server_may_say_itself_whether_to_retry(status: int, should_retry: str, kind: str) -> None:
    assert classified(status, {"error": {"message": "…"}}, {"x-should-retry": should_retry}).kind == kind


def test_hints_say_what_mends_it() -> None:
    assert classified(401, b"").hint == "check the key in ANTHROPIC_API_KEY"
    assert classified(401, b"", origin=Origin(provider="p")).hint.startswith("check the provider's key")
    assert classified(404, anthropic("not_found_error", "model: x")).hint.startswith(
        "near: 'anthropic/claude-opus-5-5'"
    )
    assert worded(classified(404, {"error": {"message": "model"}}, origin=Origin(provider="p")).hint) == (
        "name another model with `--model`; `jp model ls` lists them"
    )
    known = Origin(provider="anthropic", model="claude-opus-5-5", base_url_setting="providers.llm.anthropic.base_url")
    refused = worded(classified(404, anthropic("not_found_error", "model: claude-opus-5-5"), origin=known).hint)
    assert "'anthropic/claude-opus-5-5'" not in refused
    assert refused.endswith("; `jp model ls anthropic --refresh` lists what it has")
    own = Origin(provider="mine", model="x", base_url_setting="providers.llm.mine.base_url")
    assert worded(classified(404, {"error": {"message": "no model"}}, origin=own).hint) == (
        "`jp model ls mine --refresh` lists what it has"
    )
    assert "jp query --new" in worded(classified(413, b"").hint)
    assert "`--model`" in worded(classified(400, anthropic("x", "thinking signature invalid")).hint)
    assert "providers.llm.anthropic.base_url" in classified(302, b"").hint


UNPAIRED = "Item 'rs_1' of type 'reasoning' was provided without its required following item."
UNVERIFIED = "Your organization must be verified to generate reasoning summaries. Please go to: https://example.org"


def openai(code: str | None, message: str, kind: str = "invalid_request_error") -> dict[str, object]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, openai(None, UNPAIRED), "rejected_reasoning"),
        (
            400,
            openai(None, "Item 'msg_1' of type 'message' was provided without its required 'reasoning' item: 'rs_1'."),
            "rejected_reasoning",
        ),
        (404, openai(None, "Item with id 'rs_1' not found. Items are not persisted."), "rejected_reasoning"),
        (
            400,
            openai("invalid_encrypted_content", "The encrypted content for item rs_1 could not be verified."),
            "rejected_reasoning",
        ),
        (400, openai("context_length_exceeded", "Your input exceeds the context window"), "context_too_long"),
        (
            429,
            openai("rate_limit_exceeded", "Request too large for gpt-6-luna on tokens per min (TPM)", "tokens"),
            "context_too_long",
        ),
        (429, openai("insufficient_quota", "You exceeded your current quota", "insufficient_quota"), "quota"),
        (429, openai("rate_limit_exceeded", "Rate limit reached. Try again in 2.398s.", "requests"), "rate_limit"),
        (404, openai("model_not_found", "The model `gpt-9` does not exist"), "model_not_found"),
        (None, {"error": {"code": "server_error", "message": "An error occurred"}}, "transient"),
        (400, openai("unsupported_value", UNVERIFIED), "invalid_request"),
    ],
)
def test_openai_s_words_decide_the_kind(status: int | None, error: object, kind: str) -> None:
    assert classified(status, error, origin=Origin(provider="openai", model="gpt-9")).kind == kind


@pytest.mark.parametrize("status", [200, 204, 404])
@pytest.mark.parametrize("title", ["login", "Your quota exceeded: no such model upstream"])
def test_a_page_in_place_of_an_answer_leads_to_the_address(status: int, title: str) -> None:
    page = f"<html><title>{title}</title></html>".encode()
    html = {"content-type": "text/html; charset=utf-8"}

    found = classified(status, page, html)

    assert (found.message, found.kind) == (f"anthropic answered {status}: {title}", "other")
    assert found.hint == (
        "the response is not from the API: check `providers.llm.anthropic.base_url`, "
        "and look for a proxy or a login page of the network"
    )
    assert "check the provider's address, and" in classified(status, page, html, origin=Origin(provider="p")).hint


@pytest.mark.parametrize(("status", "content_type"), [(502, "text/html"), (200, "application/json"), (404, "")])
def test_other_errors_say_nothing_of_the_address(status: int, content_type: str) -> None:
    assert "base_url" not in classified(status, b"<title>x</title>", {"content-type": content_type}).hint


def test_every_kind_of_error_has_a_hint() -> None:
    assert [kind for kind in get_args(ErrorKind) if not ProviderError("…", kind=kind).hint] == []
    assert ProviderError("…", kind="other", hint="do this").hint == "do this"


def test_a_redirect_names_its_target_without_the_query() -> None:
    found = classified(307, b"", {"location": "https://example.org/v1?token=1"})

    assert found.message == "anthropic answered 307, a redirect to 'https://example.org/v1'"
    assert not found.is_retryable


def test_an_error_inside_a_stream_is_called_so() -> None:
    assert classified(None, anthropic("overloaded_error", "Overloaded")).message == (
        "anthropic reported an error: Overloaded"
    )


def test_kinds_have_the_exit_codes_of_the_table() -> None:
    assert classified(429, anthropic("rate_limit_error", "…")).exit_code is ExitCode.QUOTA
    assert classified(401, b"").exit_code is ExitCode.AUTHENTICATION
    assert classified(413, b"").exit_code is ExitCode.CONTEXT_TOO_LONG
    assert ProviderError("…", kind="unsupported").exit_code is ExitCode.ATTACHMENT
    assert classified(500, b"").exit_code is ExitCode.PROVIDER
    assert classified(404, anthropic("not_found_error", "model: x")).exit_code is ExitCode.CONFIGURATION


def test_what_the_caller_knows_of_a_kind_is_the_hint() -> None:
    origin = Origin(provider="ollama", model="m", hints={"model_not_found": "`ollama pull m` gets it"})

    assert classified(404, {"error": "model 'm' not found"}, origin=origin).hint == "`ollama pull m` gets it"
    assert classified(402, {"error": "pay first"}, origin=origin).hint != ""


def routed(code: int, message: str, **metadata: object) -> dict[str, object]:
    return {"error": {"code": code, "message": message, "metadata": metadata}, "user_id": "user_1"}


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (None, routed(429, "Rate limit exceeded"), "rate_limit"),
        (None, routed(502, "Provider disconnected"), "transient"),
        (200, routed(402, "Insufficient credits"), "quota"),
        (None, routed(402, "This request requires more credits, or fewer max_tokens"), "quota"),
        (None, routed(7, "what is that"), "other"),
        (403, routed(403, "Your input was flagged", reasons=["violence"]), "other"),
        (403, routed(403, "The key is disabled"), "authentication"),
        (404, routed(404, "No endpoints found for acme/one."), "model_not_found"),
        (404, routed(404, "No endpoints found that support tool use."), "invalid_request"),
        (400, routed(400, "acme/one is not a valid model ID"), "model_not_found"),
        (400, {"error": {"message": "The model `one` does not exist", "code": "model_not_found"}}, "model_not_found"),
        (
            400,
            routed(400, "Provider returned error", raw='{"error":{"message":"prompt is too long"}}'),
            "context_too_long",
        ),
    ],
)
def test_a_router_says_in_the_body_what_went_wrong_behind_it(status: int | None, error: object, kind: str) -> None:
    assert classified(status, error).kind == kind


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ({"provider_name": "Acme", "raw": '{"error":{"message":"no"}}'}, "Provider returned error (Acme: no)"),
        ({"raw": "overloaded"}, "Provider returned error (upstream: overloaded)"),
        ({"raw": " "}, "Provider returned error"),
        ({"raw": '{"x":1}'}, 'Provider returned error (upstream: {"x":1})'),
        ({"raw": 3}, "Provider returned error"),
    ],
)
def test_the_words_of_the_server_behind_a_router_are_told(metadata: dict[str, object], text: str) -> None:
    assert (
        classified(500, routed(500, "Provider returned error", **metadata)).message == f"anthropic answered 500: {text}"
    )


PROBLEM = {"type": "extra_forbidden", "loc": ["body", "messages", 1], "msg": "Extra inputs are not permitted"}


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ({"detail": [PROBLEM, {"msg": "too long"}]}, "body.messages.1: Extra inputs are not permitted; too long"),
        ({"object": "error", "message": {"detail": [PROBLEM]}}, "body.messages.1: Extra inputs are not permitted"),
        ({"detail": "Not Found"}, "Not Found"),
        ({"message": "", "detail": "Not Found"}, "Not Found"),
    ],
)
def test_problems_of_a_request_that_was_checked_are_told(error: object, text: str) -> None:
    found = classified(422, error)

    assert (found.message, found.kind) == (f"anthropic answered 422: {text}", "invalid_request")


@pytest.mark.parametrize("error", [{"detail": [{"loc": ["body"]}]}, {"detail": 3}, {"message": {"detail": [3]}}])
def test_problems_without_words_are_none(error: object) -> None:
    assert classified(422, error).message == "anthropic answered 422"


@pytest.mark.parametrize("body", [b'{"detail":"Not Found"}', b'{"error": "Not Found"}\n', b"404 page not found", b""])
def test_an_address_where_nothing_is_has_a_hint(body: bytes) -> None:
    assert classified(404, body).hint == (
        "check `providers.llm.anthropic.base_url`; its server does not have this endpoint"
    )
    assert "base_url" not in classified(404, body, origin=Origin(provider="p")).hint
    assert "base_url" not in classified(400, body).hint


@pytest.mark.parametrize("body", [b"", b" ", b'{"ok": true}', b"[]"])
def test_a_success_that_is_no_answer_is_told_as_such(body: bytes) -> None:
    origin = Origin(provider="mine", base_url_setting="providers.llm.mine.base_url")
    error = classified(200, body, {"content-type": "application/json; charset=utf-8"}, origin=origin)

    what = "application/json" if body.strip() else "nothing"
    assert error.message == f"mine answered 200: expected a stream, got {what}"
    assert error.hint == ("check `providers.llm.mine.base_url`; the server there does not stream answers")


@pytest.mark.parametrize("words", ["API key not valid. Please pass a valid API key.", "Invalid API key provided"])
def test_a_key_may_be_refused_as_a_bad_request(words: str) -> None:
    error = classified(400, {"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}})

    assert (error.kind, error.hint) == ("authentication", "check the key in ANTHROPIC_API_KEY")
