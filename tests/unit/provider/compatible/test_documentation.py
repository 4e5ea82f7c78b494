from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from jp.config.assignment import read_partial
from jp.config.entries import ServerConfig
from jp.config.layers import config_of
from jp.provider.chat.messages import Quirks
from jp.provider.chat.request import create

PAGE = Path(__file__, "../../../../../docs/providers.md").resolve()
SECTION = PAGE.read_text(encoding="utf-8").partition("\n## Any other server\n")[2].partition("\n## ")[0]
EXAMPLES = re.findall(r"```toml\n(.*?)```", SECTION, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_declares_a_server_that_can_be_asked(example: str) -> None:
    servers = config_of(read_partial(tomllib.loads(example))).providers.llm.servers

    ((name, settings),) = servers.items()
    assert settings.base_url is not None
    assert create(settings, name).id == name


def test_settings_are_explained_with_their_defaults() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (\S+)", SECTION, re.MULTILINE))
    shown = {None: "none", True: "`true`", False: "`false`"}
    defaults = {name: getattr(ServerConfig(), name) for name in rows}

    assert rows == {name: "none" if value == {} else shown.get(value, f"`{value}`") for name, value in defaults.items()}
    assert set(Quirks.__struct_fields__).intersection(ServerConfig.__struct_fields__) <= rows.keys()
