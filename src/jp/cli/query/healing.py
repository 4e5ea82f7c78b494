"""Content of an earlier turn that is lost, and that what is attached now brings back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from jp.conversation.entries import AnyEntry, ChatRequest
from jp.conversation.resource import Carrier, Resource, StoredContent, checksum, content_of, raw_bytes
from jp.tool.base import directory_of
from jp.turn.ports import Recorder
from jp.turn.request import Loader
from jp.workspace.blobs import BlobDamagedError, BlobMissingError
from jp.workspace.content import with_content

C = TypeVar("C", bound=Carrier)


class HealingLoader:
    """A loader for which the resources of `request` stand in where a blob with their content is lost."""

    def __init__(self, loader: Loader, request: ChatRequest) -> None:
        self._loader = loader
        self._resources = request.resources
        self._healed: dict[str, Resource] = {}

    def load(self, carrier: C, /) -> C:
        """See `Loader`."""
        try:
            return self._loader.load(carrier)
        except (BlobMissingError, BlobDamagedError):
            content = None if (found := self._at_hand(carrier)) is None else content_of(found)
            if found is None or content is None or isinstance(content, StoredContent):
                raise
            healed = with_content(carrier, raw_bytes(content))
            self._healed[found.uri] = found
            return healed

    def _at_hand(self, carrier: Carrier) -> Resource | None:
        return next((resource for resource in self._resources if checksum(resource) == carrier.sha256), None)

    def notices(self) -> list[str]:
        """What was brought back since this was asked last."""
        names = [resource.name or resource.uri for resource in self._healed.values()]
        self._healed = {}
        return [f"the earlier copy of {name!r} was lost; it is the same as what is attached now" for name in names]


class HealingRecorder:
    """A recorder of a turn: its request stores lost content anew."""

    def __init__(self, recorder: Recorder, request: ChatRequest, notice: Callable[[str], None]) -> None:
        self._recorder = recorder
        self._loader = HealingLoader(recorder, request)
        self._notice = notice

    @property
    def directory(self) -> Path | None:
        """See `jp.tool.base.OnDisk`."""
        return directory_of(self._recorder)

    @property
    def entries(self) -> Sequence[AnyEntry]:
        """See the port, `jp.turn.ports.Recorder`."""
        return self._recorder.entries

    def append(self, entry: AnyEntry) -> AnyEntry:
        """See the port."""
        recorded = self._recorder.append(entry)
        if isinstance(entry, ChatRequest):
            for sentence in self._loader.notices():
                self._notice(f"{sentence}, and stored anew")
        return recorded

    def load(self, carrier: C, /) -> C:
        """See the port."""
        return self._loader.load(carrier)
