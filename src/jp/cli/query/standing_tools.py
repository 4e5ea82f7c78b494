"""The tools that a query offers by itself, with what they need of its conversation. Imported when they are made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from jp.config.model import AppConfig
from jp.conversation.entries import AnyEntry
from jp.provider.models import find_model
from jp.provider.registry import ModelId, built_in, kind_of
from jp.tool.toolbox import standing_names

if TYPE_CHECKING:
    from jp.attachment.base import Declaration
    from jp.cli.query.attachments import Schemes
    from jp.cli.query.conversation import Held
    from jp.tool.base import Tool

Making = Callable[[], "Tool"]


class Standing:
    """What decides which of them a request offers, besides the other tools that it offers.

    `held` is the conversation so far, `typed` is what is attached now; `is_structured`: the answer has to fit a schema.
    """

    def __init__(
        self,
        schemes: Schemes,
        config: AppConfig,
        held: Held | None,
        typed: Sequence[Declaration],
        *,
        is_structured: bool,
    ) -> None:
        self._schemes = schemes
        self._config = config
        self._entries: Sequence[AnyEntry] = () if held is None else held.entries
        self._typed = typed
        self._is_structured = is_structured

    @property
    def servers(self) -> Mapping[str, Tool]:
        """The tools of MCP servers by their names."""
        return self._schemes.servers.tools

    def spelled_out(self, names: Collection[str]) -> frozenset[str]:
        """The names of tools, where a name may stand for every tool of an MCP server."""
        return self._schemes.servers.spelled_out(names)

    def makers(self, model: ModelId, others: Collection[str]) -> Mapping[str, Making]:
        """How those are made that are of use beside tools with the names `others`."""
        if not (others or self._may_call(model)):
            return {}
        declared = any(not text.startswith("!") for text in self._config.conversation.attachments)
        attaches = declared or any(not declaration.exclude for declaration in self._typed)
        names = standing_names(self._entries, has_tools=bool(others), attaches=attaches)
        making: Mapping[str, Making] = {
            "ask_user": _ask_user,
            "recall": _recall,
            "search_history": _search_history,
            "refresh_resource": self._refresh_resource,
        }
        return {name: make for name, make in making.items() if name in names}

    def _may_call(self, model: ModelId) -> bool:
        """Whether tools that nobody has asked for do no harm: many a model of one's own refuses every request."""
        found = find_model(kind_of(self._config.providers.llm, model.provider), model.name)
        vendor = built_in(model.provider)
        is_expected = vendor is not None and vendor.calls_tools
        may_call = found.abilities.tools and (found.known or is_expected)
        return may_call and (found.abilities.structured_with_tools or not self._is_structured)

    def _refresh_resource(self) -> Tool:
        from jp.cli.query.attached_sources import AttachedSources
        from jp.tool.refresh_resource import RefreshResource

        return RefreshResource(AttachedSources(self._schemes, self._config.conversation, self._typed))


def _ask_user() -> Tool:
    from jp.tool.inquiries import AskUser

    return AskUser()


def _recall() -> Tool:
    from jp.cli.recalled import RecalledContents
    from jp.tool.recall import Recall

    return Recall(RecalledContents())


def _search_history() -> Tool:
    from jp.cli.recalled import IndexedHistory
    from jp.tool.search_history import SearchHistory

    return SearchHistory(IndexedHistory())
