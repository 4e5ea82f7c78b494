from __future__ import annotations

import json

from artifacts import MemoryArtifacts
from jp.context.budget import estimate_messages
from jp.context.digest import Digester, digest_results
from jp.context.digest_lines import ToolRule
from jp.context.groups import index_groups
from jp.context.leaves import shrink_old_arguments
from jp.context.markers import Cutter, marked_handles
from jp.context.redaction import redact
from jp.context.sanitize import sanitize_pairs
from jp.context.types import Transcript, texts_of
from recorded import recorded_transcripts
from transcript_validator import complaints

NONCE = "5eed5eed"


def parse(messages: Transcript) -> list[list[object]]:
    """The shapes of all arguments, which are JSON in all of them."""
    return [[type(json.loads(call.arguments)) for call in message.calls] for message in messages]


def test_providers_take_recorded_sessions_whose_old_arguments_are_cut_and_every_cut_can_be_recalled() -> None:
    for name, messages in recorded_transcripts():
        store = MemoryArtifacts()
        sanitized = sanitize_pairs(messages, store).messages

        found = shrink_old_arguments(
            sanitized, index_groups(sanitized), Cutter(NONCE, store), between=(0, len(sanitized))
        )

        assert complaints(found.messages) == [], name
        assert parse(found.messages) == parse(sanitized), name
        assert estimate_messages(found.messages) <= estimate_messages(sanitized) <= estimate_messages(messages), name
        handles = [
            handle
            for message in found.messages
            for call in message.calls
            for handle in marked_handles(call.arguments, NONCE)
        ]
        assert None not in map(store.recall, handles), name
        assert len(handles) == sum(len({cut.handle for cut in call.cuts}) for call in found.cuts), name


def test_providers_take_digests_of_recorded_sessions_which_recall_every_byte_and_show_what_has_no_secret() -> None:
    rules = {name: ToolRule(kind="terminal", subject="command") for name in ("bash", "Bash", "run")}
    for name, messages in recorded_transcripts():
        store = MemoryArtifacts()
        sanitized = sanitize_pairs(messages, store).messages

        found = digest_results(sanitized, index_groups(sanitized), Digester(store, rules), between=(0, len(sanitized)))

        assert complaints(found.messages) == [], name
        assert estimate_messages(found.messages) == estimate_messages(sanitized) - found.reclaimed, name
        for action in found.actions:
            [text] = texts_of(found.messages[action.position])
            whole = "".join(texts_of(sanitized[action.position]))
            assert "".join(store.recall(handle) or "" for handle in action.handles) == whole, name
            without_secrets = redact(whole).text
            assert all(line in without_secrets for line in text.splitlines()[1:]), name
