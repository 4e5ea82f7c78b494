"""What a summary knows, typed: the model's account, and beside it what was computed and not asked for."""

from __future__ import annotations

import msgspec

from jp.context.ledger import Ledger
from jp.context.mentions import Mentions
from jp.context.spoken import Spoken
from jp.context.summary_schema import NOTHING_SAID, StructuredSummary

RULE = "summary"
VERSION = 1
"""What `meta.digested` has on a summary's message. A summary of another version is recognised and not read."""


class Recallable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Something left out, and the handle that recalls it."""

    handle: str
    what: str


class Provenance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where a summary comes from.

    `is_local` says that at least a part of it was made without a model. `unsupported` counts what a model claimed and
    nothing bears out, over all `updates`.
    """

    is_local: bool = False
    unsupported: int = 0
    updates: int = 0


class SummaryState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """All of a summary; its text is rendered from this and reads back to it.

    `answers` are the newest visible ones of the model, where no model accounted for them. `inherited` is the text of an
    earlier summary that could not be read. `older_requirements` recalls those for which there is no room, and
    `whole_request` the request being worked on, where there is room for its beginning and end alone.
    """

    account: StructuredSummary = NOTHING_SAID
    spoken: Spoken = Spoken()
    ledger: Ledger = Ledger()
    mentions: Mentions = Mentions()
    answers: tuple[str, ...] = ()
    inherited: str = ""
    older_requirements: str = ""
    whole_request: str = ""
    recallable: tuple[Recallable, ...] = ()
    provenance: Provenance = Provenance()
