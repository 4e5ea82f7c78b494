"""What a layer says and cannot."""

from __future__ import annotations

from typing import Any

from jp.config.keys import KeyPath, key_text
from jp.config.schema import APP, FILE, Node, Table, example, expected, got, nearest_choice, nearest_key
from jp.errors import ConfigurationError


class InvalidValueError(ConfigurationError):
    """A key is unknown, or holds what it cannot hold. `path` is the key; `of_key`: it should not be there at all."""

    def __init__(self, message: str, path: KeyPath, *, hint: str = "", of_key: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.of_key = of_key

    def within(self, where: str) -> InvalidValueError:
        """The same error, with the place that the value came from in front."""
        return InvalidValueError(f"{where}: {self.message}", self.path, hint=self.hint, of_key=self.of_key)

    def explained(self) -> InvalidValueError:
        """The same error, with all that can be said to who made it."""
        return self


class UnknownKeyError(InvalidValueError):
    """A key that `table`, which stands above its last name, does not have.

    What it was meant to be is only looked for where it is said: a log may hold hundreds of keys of other versions.
    """

    def __init__(self, path: KeyPath, table: Table, root: Table) -> None:
        level = f"in {key_text(path[:-1])!r}" if len(path) > 1 else "at the top"
        hint = f"Known {level}: {', '.join(table.fields)}."
        super().__init__(f"unknown key {key_text(path)!r}", path, hint=hint, of_key=True)
        self._table = table
        self._root = root

    def explained(self) -> InvalidValueError:
        """The same error, with the nearest known key."""
        from jp.config.original import is_only_originals

        nearest = nearest_key(self.path, self._root, self._table.fields)
        is_originals = is_only_originals(self.path)
        known = ", which the original JP has and jp has not" if is_originals else ""
        message = f"{self.message}{known}; the nearest known key is {nearest!r}"
        hint = f"Take it out. {self.hint}" if is_originals else self.hint
        return InvalidValueError(message, self.path, hint=hint, of_key=True)


def unexpected(node: Node, value: Any, path: KeyPath, *, hint: str = "") -> InvalidValueError:
    """The error of a value that `node` does not accept. Its hint is the nearest one, `hint` or an example."""
    message = f"{key_text(path)} expects {expected(node)}, got {got(value)}"
    near = nearest_choice(node, value)
    if near:
        hint = f"Did you mean {near!r}?"
    return InvalidValueError(message, path, hint=hint or f"Such as `{key_text(path)} = {example(node)}`.")


def unknown(path: KeyPath, table: Table, root: Table) -> InvalidValueError:
    """The error of a key that `table`, which stands above its last name, does not have; see `explained`."""
    if root == APP and path[0] in FILE.fields and path[0] not in APP.fields:
        message = f"{path[0]!r} has a meaning only in a file"
        return InvalidValueError(message, path, hint="Write it into one, and give that as `--cfg @FILE`.")
    return UnknownKeyError(path, table, root)
