"""What fills a context, as `--format json` has it. Pure."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins
from msgspec.structs import asdict

from jp.cli.compacting.measured import LastCycle
from jp.cli.conversation.context_report import ContextReport
from jp.compaction.large_items import LargeItem
from jp.context.breakdown import BucketShare, Share

Value = dict[str, Any]


def report_value(report: ContextReport) -> Value:
    """The fields of the report. Of what was said and read it holds no word; URIs and paths are in `largest`."""
    breakdown = report.breakdown
    return {
        "model": report.model,
        "window": breakdown.room.window,
        "reserved": breakdown.room.reserved,
        "threshold": breakdown.room.threshold,
        "used": breakdown.total,
        "free": breakdown.free,
        "source": breakdown.source,
        "estimated": breakdown.estimated,
        "ratio": breakdown.ratio,
        "buckets": [_bucket(bucket) for bucket in breakdown.buckets],
        "other": breakdown.other,
        "conversation": [{"kind": share.kind, **_share(share)} for share in breakdown.conversation],
        "tools": [{"name": share.name, **_share(share)} for share in breakdown.tools],
        "last_cycle": None if report.last_cycle is None else _last_cycle(report.last_cycle),
        "largest": [_item(item) for item in report.largest],
        "profiles": [to_builtins(gain) for gain in report.gains],
        "volatile": [to_builtins(found) for found in report.volatile],
    }


def _bucket(bucket: BucketShare) -> Value:
    return {
        "kind": bucket.kind,
        **_share(bucket),
        "static": bucket.is_static,
        "compressible": bucket.is_compressible,
    }


def _share(share: Share) -> Value:
    return {"tokens": share.tokens, "estimated": share.estimated, "bytes": share.size, "items": share.items}


def _last_cycle(last: LastCycle) -> Value:
    return {
        "turn": last.turn,
        "cycle": last.cycle,
        "model": last.model,
        "usage": asdict(last.usage),
        "reported": last.reported,
        "estimated": last.estimated,
        "ratio": last.ratio,
        "added": last.added,
    }


def _item(item: LargeItem) -> Value:
    return {
        "handle": item.handle,
        "kind": item.kind,
        "turn": item.turn,
        "tokens": item.tokens,
        "estimated": item.estimated,
        "bytes": item.size,
        "tool": item.tool or None,
        "source": item.source or None,
    }
