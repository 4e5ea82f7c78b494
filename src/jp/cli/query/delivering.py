"""How the results of a turn's tools are delivered. Nothing of it is imported before there is one."""

from __future__ import annotations

from collections.abc import Sequence

from jp.config.model import DeduplicationConfig
from jp.conversation.entries import AnyEntry
from jp.tool.base import ConfiguredTool, Delivery, ToolOutput


def delivery_of(deduplication: DeduplicationConfig) -> Delivery:
    """The delivery of every result: bounded, and marked where it was delivered before."""

    def deliver(configured: ConfiguredTool, output: ToolOutput, entries: Sequence[AnyEntry]) -> ToolOutput:
        from jp.cli.log_addresses import LogAddresses
        from jp.tool.delivery import OrdinaryDelivery

        return OrdinaryDelivery(deduplication, LogAddresses())(configured, output, entries)

    return deliver
