"""Of when a catalogue is, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jp.provider.catalogue.listed import Catalogue


def age_secs(catalogue: Catalogue) -> int | None:
    """How old a catalogue is; None where it says no moment."""
    from time import time

    from jp.cli.conversation.facts import seconds_of

    written = seconds_of(catalogue.at)
    return None if written is None else max(0, int(time() - written))


def catalogue_date(catalogue: Catalogue) -> str:
    """The day of a catalogue, and its age."""
    from jp.cli.moments import ago

    age = age_secs(catalogue)
    return "an unknown date" if age is None else f"{catalogue.at[:10]} ({ago(age)} ago)"
