"""The text of a message for a pipe.

Control sequences are taken out here too: what a pipe carries is shown somewhere in the end, and `--format json` has the
text as it came.
"""

from __future__ import annotations

from jp.render.sanitise import Sanitiser


class PlainText(Sanitiser):
    """The text without control sequences, at once."""

    def preview(self) -> str:
        """Nothing: the text is shown at once."""
        return ""

    def settle(self) -> str:
        """Nothing: only what may be part of a control sequence is held back."""
        return ""
