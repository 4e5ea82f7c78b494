"""How what is left out of a view of a log is named: joined from what compactions know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jp.compaction.fact_lines import nonce_of
from jp.compaction.log_contents import handles_of
from jp.conversation.entries import AnyEntry


class LogAddresses:
    """The same names as in stand-ins. See `jp.tool.delivery.Addresses`."""

    def nonce(self, entries: Sequence[AnyEntry]) -> str:
        """See the port."""
        return nonce_of(entries)

    def handles(self, entries: Iterable[AnyEntry]) -> Mapping[str, str]:
        """See the port."""
        return handles_of(entries)
