"""Which tools are offered besides what the configuration says, or no longer: `--tool` and `--no-tool`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from fnmatch import fnmatchcase

from jp.config.tools import Enable, ToolConfig
from jp.errors import UsageError
from jp.tool.toolbox import nearest, settings_of

OFF = "!"
"""What stands before the name of a tool that is taken away."""

_WILD = frozenset("*?[")


class Switching:
    """Switches tools on and off, one after the other.

    `settings` is `conversation.tools`, `names` are the tools that patterns match. `is_known` says whether there is a
    tool of some other name, too. `groups` has for tools that are named in a body the name that speaks for all of them.
    """

    def __init__(
        self,
        settings: Mapping[str, ToolConfig],
        names: Collection[str],
        is_known: Callable[[str], bool],
        *,
        groups: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = settings
        self._names = names
        self._is_known = is_known
        self._groups = groups or {}
        self._switched: dict[str, bool] = {}

    def switch(self, specifications: Sequence[str]) -> dict[str, bool]:
        """Which tools change, by name: whether they are offered from now on.

        A specification is a tool's name or a pattern, with `!` before it to take away. A pattern leaves alone what is
        offered by name only (`explicit`) or in any case (`always`).

        Raises:
            UsageError: a name or a pattern means no tool, or a tool that is always offered is to be taken away.
        """
        for text in specifications:
            name = text.removeprefix(OFF)
            if _WILD.isdisjoint(name):
                self._switch_one(name, on=name == text)
            else:
                self._switch_all(name, on=name == text)
        return self._switched

    def _switch_one(self, name: str, *, on: bool) -> None:
        option = _option(on=on)
        if not self._is_known(name):
            raise UsageError(f"{option} names an unknown tool {name!r}", hint=nearest(name, self._names))
        state = self._state(name)
        if not on and state == "always":
            raise UsageError(
                f"{option} cannot take {name!r} away: it is always offered",
                hint=f"the configuration says so; `--cfg conversation.tools.{name}.enable=false` overrides it",
            )
        if on is not _is_offered(state):
            self._switched[name] = on

    def _switch_all(self, pattern: str, *, on: bool) -> None:
        found = [name for name in sorted(self._names) if fnmatchcase(name, pattern)]
        if not found:
            raise UsageError(f"{_option(on=on)} {pattern!r} matches no tool", hint=nearest(pattern, self._names))
        for name in found:
            state = self._state(name)
            if state not in {"explicit", "always"} and on is not _is_offered(state):
                self._switched[name] = on

    def _state(self, name: str) -> Enable | None:
        for spoken in (name, self._groups.get(name, name)):
            if spoken in self._switched:
                return self._switched[spoken]
        return settings_of(name, self._settings).enable


def _is_offered(state: Enable | None) -> bool:
    return state is True or state == "always"


def _option(*, on: bool) -> str:
    return "--tool" if on else "--no-tool"
