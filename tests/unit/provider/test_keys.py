from __future__ import annotations

from pathlib import Path

import pytest

from jp.cli.terminal.wording import worded
from jp.errors import ConfigurationError
from jp.provider.key_storage import KeyFile, KeyRing, KeyRingError, KeyStorage
from jp.provider.keys import FoundKey, find_key, hint_for_rejected

KEY = "sk-0123456789-abcdef"


class Stored:
    """Has one key, and counts how often it is asked."""

    def __init__(self, key: str | None = KEY) -> None:
        self.asked = 0
        self._key = key

    def find(self, provider: str) -> FoundKey | None:
        self.asked += 1
        return None if self._key is None else FoundKey(self._key, "file", f"/{provider}")

    def may_have(self, provider: str) -> bool:
        return self._key is not None


class Ring:
    """A keyring: `locked`, it neither tells nor takes; `full`, it does not take; `forgetful`, it keeps nothing."""

    priority = 1.0

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self.locked = False
        self.full = False
        self.forgetful = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise OSError(KEY)
        return self.kept.get(f"{service} {username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.locked or self.full:
            raise OSError(password)
        if not self.forgetful:
            self.kept[f"{service} {username}"] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.full:
            raise OSError(KEY)
        del self.kept[f"{service} {username}"]


def test_the_first_variable_that_is_set_has_the_key_and_nothing_else_is_asked() -> None:
    stored = Stored()
    environ = {"A": " ", "B": f" {KEY}\n", "C": "sk-other"}

    found = find_key("x", ("A", "B", "B", "C"), environ=environ, stored=stored)

    assert found == FoundKey(KEY, "environment", "B")
    assert stored.asked == 0


def test_where_no_variable_is_set_the_stored_key_counts() -> None:
    assert find_key("x", ("A",), environ={}, stored=Stored()) == FoundKey(KEY, "file", "/x")
    assert find_key("x", ("A",), environ={}, stored=Stored(None)) is None
    assert find_key("x", ("A",), environ={}, stored=None) is None


@pytest.mark.parametrize("key", ["sk-ä", "sk-a b", "sk-a\x00", "sk-a\nb"])
def test_a_stored_key_that_no_header_can_carry_is_not_shown(key: str) -> None:
    with pytest.raises(
        ConfigurationError, match="the key in '/x' has characters that are not valid in a key"
    ) as caught:
        find_key("x", (), environ={}, stored=Stored(key))

    assert worded(caught.value.hint) == "store it again: `jp keys set x`"


@pytest.mark.parametrize(("key", "ending"), [(KEY, "…cdef"), ("0123456789abcde", "")])
def test_a_key_never_shows_more_than_its_end(key: str, ending: str) -> None:
    found = FoundKey(key, "keyring")

    assert found.ending == ending
    assert key not in repr(found)
    assert [FoundKey(key, "environment", "A").place, found.place, FoundKey(key, "file", "/f").place] == [
        "A",
        "the keyring",
        "'/f'",
    ]
    assert worded(hint_for_rejected("x", found)) == "replace the key in the keyring: `jp keys set x`"
    in_environment = hint_for_rejected("x", FoundKey(key, "environment", "A"))
    assert worded(in_environment) == "check the key in A, or unset it and store one with `jp keys set x`"


def test_a_keyring_does_what_it_says_or_an_error_without_the_key() -> None:
    ring = Ring()
    keys = KeyRing(ring)

    keys.set("x", KEY)
    assert (keys.get("x"), keys.get("y"), keys.remove("y")) == (KEY, None, False)
    ring.full = True
    for action in (lambda: keys.set("x", "sk-new"), lambda: keys.remove("x")):
        with pytest.raises(KeyRingError, match="cannot write the keyring: OSError") as caught:
            action()
        assert "sk-" not in caught.value.message + caught.value.hint
    ring.full = False
    assert keys.remove("x")
    assert keys.get("x") is None


def test_a_keyring_that_keeps_nothing_is_noticed() -> None:
    ring = Ring()
    ring.forgetful = True

    with pytest.raises(KeyRingError, match="did not store the key"):
        KeyRing(ring).set("x", KEY)


def test_a_keyring_that_holds_an_old_key_and_takes_no_new_one_is_an_error(tmp_path: Path) -> None:
    ring = Ring()
    storage = KeyStorage(KeyFile(tmp_path / "keys.json"), lambda: KeyRing(ring))
    storage.store("x", KEY)
    ring.full = True

    with pytest.raises(KeyRingError):
        storage.store("x", "sk-new")
    assert storage.store("y", "sk-new").source == "file"
    ring.locked = True
    assert storage.store("x", "sk-new").source == "file"


def test_a_keyring_is_looked_for_once(tmp_path: Path) -> None:
    opened: list[int] = []

    def none() -> None:
        opened.append(1)

    storage = KeyStorage(KeyFile(tmp_path / "keys.json"), none)

    assert [storage.find("x"), storage.find("y"), storage.remove("x")] == [None, None, []]
    assert len(opened) == 1


def test_a_key_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not a file"):
        KeyFile(tmp_path).get("x")


def test_that_a_key_is_in_the_keyring_is_known_without_asking_it(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "keys.json")
    ring = Ring()
    KeyStorage(file, lambda: KeyRing(ring)).store("x", KEY)

    def never() -> None:
        pytest.fail("the keyring was asked")

    storage = KeyStorage(file, never)
    assert (storage.may_have("x"), storage.may_have("y")) == (True, False)
    assert KEY not in file.path.read_text(encoding="utf-8")
    assert KeyStorage(file, lambda: KeyRing(ring)).remove("x") == ["the keyring"]
    assert not storage.may_have("x")
