"""What a layer says and cannot."""

from __future__ import annotations

from typing import Any

from jp.config.keys import KeyPath, key_text
from jp.config.schema import APP, FILE, Node, Table, example, expected, got, nearest_key
from jp.errors import ConfigurationError


class InvalidValueError(ConfigurationError):
    """A key is unknown, or holds what it cannot hold. `path` is the key."""

    def __init__(self, message: str, path: KeyPath, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.path = path

    def within(self, where: str) -> InvalidValueError:
        """The same error, with the place that the value came from in front."""
        return InvalidValueError(f"{where}: {self.message}", self.path, hint=self.hint)

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
        super().__init__(f"unknown key {key_text(path)!r}", path, hint=hint)
        self._table = table
        self._root = root

    def explained(self) -> InvalidValueError:
        """The same error, with the nearest known key."""
        nearest = nearest_key(self.path, self._root, self._table.fields)
        return InvalidValueError(f"{self.message}; the nearest known key is {nearest!r}", self.path, hint=self.hint)


def unexpected(node: Node, value: Any, path: KeyPath, *, hint: str = "") -> InvalidValueError:
    """The error of a value that `node` does not accept. Without a `hint`, an example of one that it does."""
    message = f"{key_text(path)} expects {expected(node)}, got {got(value)}"
    return InvalidValueError(message, path, hint=hint or f"Such as `{key_text(path)} = {example(node)}`.")


def unknown(path: KeyPath, table: Table, root: Table) -> InvalidValueError:
    """The error of a key that `table`, which stands above its last name, does not have; see `explained`."""
    if root == APP and path[0] in FILE.fields and path[0] not in APP.fields:
        message = f"{path[0]!r} has a meaning only in a file"
        return InvalidValueError(message, path, hint="Write it into one, and give that as `--cfg @FILE`.")
    return UnknownKeyError(path, table, root)
