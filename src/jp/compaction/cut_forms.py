"""Contents that a model is shown with parts cut out: which handle recalls the whole, as their markers say."""

from __future__ import annotations

import re

from jp.conversation.resource import Carrier, checksum, formatted_of

_MARKED = r"\[\[cut:[0-9A-Za-z_-]{4,64}:([0-9a-f]{8,64}):\+[0-9]+\]\]"


def cut_handle(carrier: Carrier) -> str | None:
    """The handle of the whole content of `carrier` where a model is shown parts of it; else None.

    What only looks like a marker names other content.
    """
    formatted = formatted_of(carrier)
    if formatted is None:
        return None
    marked: list[str] = re.findall(_MARKED, formatted)
    sha256 = checksum(carrier) if marked else ""
    return next((handle for handle in marked if sha256.startswith(handle)), None)
