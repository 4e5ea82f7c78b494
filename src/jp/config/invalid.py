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


def unexpected(node: Node, value: Any, path: KeyPath, *, hint: str = "") -> InvalidValueError:
    """The error of a value that `node` does not accept. Without a `hint`, an example of one that it does."""
    message = f"{key_text(path)} expects {expected(node)}, got {got(value)}"
    return InvalidValueError(message, path, hint=hint or f"Such as `{key_text(path)} = {example(node)}`.")


def unknown(path: KeyPath, table: Table, root: Table) -> InvalidValueError:
    """The error of a key that `table`, which stands above its last name, does not have."""
    if root == APP and path[0] in FILE.fields and path[0] not in APP.fields:
        message = f"{path[0]!r} has a meaning only in a file"
        return InvalidValueError(message, path, hint="Write it into one, and give that as `--cfg @FILE`.")
    level = f"in {key_text(path[:-1])!r}" if len(path) > 1 else "at the top"
    return InvalidValueError(
        f"unknown key {key_text(path)!r}; the nearest known key is {nearest_key(path, root, table.fields)!r}",
        path,
        hint=f"Known {level}: {', '.join(table.fields)}.",
    )
