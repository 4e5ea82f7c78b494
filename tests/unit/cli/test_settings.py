"""The configuration of a command, resolved once however often it is asked for."""

from __future__ import annotations

from pathlib import Path

from jp.app.settings import Sources
from jp.config.assignment import read_partial
from jp.config.files import Places
from jp.config.layers import Layer, Origin
from jp.config.sources import flag_layer


def test_the_users_consent_is_read_once_for_the_same_layers() -> None:
    consents: list[int] = []

    def accepted() -> frozenset[str]:
        consents.append(1)
        return frozenset()

    change = read_partial({"editor": {"cmd": "evil"}})
    foreign = Layer(origin=Origin(kind="workspace", where="/w/.jp/config.toml"), change=change, foreign=True)
    sources = Sources(places=Places(cwd=Path("/w")), lower=(foreign,), cfg=(), root="/w", accepted=accepted)
    flags = [flag_layer("--model", {"assistant": {"model": {"id": "a/b"}}})]

    first = sources.resolve(flags=flags)
    sources.kept(conversation=(), flags=flags)
    without_flags = sources.resolve()

    assert sources.resolve(flags=flags) is first
    assert [len(consents), first.config.assistant.model.id] == [2, "a/b"]
    assert without_flags.config.assistant.model.id is None
