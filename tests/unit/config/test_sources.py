from __future__ import annotations

from pathlib import Path

import pytest

from jp.cli.terminal.wording import worded
from jp.config.files import Places
from jp.config.layers import resolve
from jp.config.schema import parse_key
from jp.config.sources import cfg_layers, file_layers, flag_layer, lower_layers, unread_files
from jp.errors import ConfigurationError


@pytest.fixture
def places(tmp_path: Path) -> Places:
    for directory in ("u", "w/.jp/config", "w/sub", "s"):
        (tmp_path / directory).mkdir(parents=True)
    return Places(cwd=tmp_path / "w" / "sub", user=tmp_path / "u", root=tmp_path / "w", user_workspace=tmp_path / "s")


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def test_the_layers_lie_in_their_order(places: Places, tmp_path: Path) -> None:
    files = ["u/config.toml", "w/.jp/config.toml", "w/.jp.toml", "w/sub/.jp.toml", "s/config.toml"]
    for number, name in enumerate(files, 1):
        write(tmp_path / name, f"assistant.request.max_retries = {number}\nconversation.attachments = ['{number}']")

    layers = lower_layers(places, {"JP_CFG_CONVERSATION_ATTACHMENTS": "+6", "OTHER": "x"})
    layers += cfg_layers(["conversation.attachments+=7"], places, layers)
    layers.append(flag_layer("--attach 8", {"conversation": {"attachments": ["8"]}}))
    resolved = resolve(layers)

    assert resolved.config.conversation.attachments == ("1", "2", "3", "4", "5", "6", "7", "8")
    assert [layer.origin.kind for layer in layers] == [
        "user", "workspace", "directory", "directory", "user-workspace", "environment", "cfg", "flag",
    ]  # fmt: skip
    assert [layer.foreign for layer in layers] == [False, True, True, True, False, False, False, False]
    assert resolved.origin(parse_key("conversation.attachments")).text == "the option --attach 8"
    assert resolved.origin(parse_key("assistant.request.max_retries")).where == str(tmp_path / "s" / "config.toml")


def test_without_files_and_variables_there_is_no_layer(places: Places) -> None:
    assert lower_layers(places, {"PATH": "/bin"}) == []


def test_a_file_can_end_the_merging_of_files(places: Places, tmp_path: Path) -> None:
    write(tmp_path / "u" / "config.toml", "inherit = false\nuser.name = 'me'")
    write(tmp_path / "w" / ".jp" / "config.toml", "user.name = 'workspace'")
    write(tmp_path / "s" / "config.toml", "user.name = 'ignored'")

    assert resolve(file_layers(places)).config.user.name == "me"


def test_a_file_of_the_workspace_ends_the_merging_of_such_files_only(places: Places, tmp_path: Path) -> None:
    write(tmp_path / "w" / ".jp" / "config.toml", "inherit = false\nuser.name = 'workspace'")
    write(tmp_path / "w" / ".jp.toml", "user.name = 'not read'\nstyle.markdown.wrap_width = 1")
    write(tmp_path / "s" / "config.toml", "user.name = 'mine'")

    config = resolve(file_layers(places)).config

    assert (config.user.name, config.style.markdown.wrap_width) == ("mine", 100)
    assert unread_files(places) == [tmp_path / "w" / ".jp.toml"]
    assert resolve(lower_layers(places, {"JP_CFG_USER_NAME": "env"})).config.user.name == "env"


def test_values_of_cfg_hold_in_their_order(places: Places, tmp_path: Path) -> None:
    write(tmp_path / "w" / ".jp" / "config" / "dev.toml", "user.name = 'dev'\nassistant.tool_choice = 'none'")

    layers = cfg_layers(["user.name=first", "dev", '{"assistant": {"tool_choice": "required"}}'], places, [])
    config = resolve(layers).config

    assert config.user.name == "dev"
    assert config.assistant.tool_choice == "required"


def test_a_name_is_looked_for_where_the_layers_below_and_before_say(places: Places, tmp_path: Path) -> None:
    (tmp_path / "w" / "personas").mkdir()
    (tmp_path / "w" / "skills").mkdir()
    write(tmp_path / "w" / ".jp" / "config.toml", "config_load_paths = ['personas']")
    write(tmp_path / "w" / "personas" / "dev.toml", "user.name = 'dev'")
    write(tmp_path / "w" / "skills" / "web.toml", "assistant.tool_choice = 'none'")
    below = file_layers(places)

    config = resolve([*below, *cfg_layers(["dev", "config_load_paths+=skills", "web"], places, below)]).config

    assert config.user.name == "dev"
    assert config.assistant.tool_choice == "none"
    assert config.config_load_paths == ("personas", "skills")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("user.nmae=x", "--cfg 'user.nmae=x': unknown key 'user.nmae'; the nearest known key is 'user.name'"),
        ('{"user": {"name": 1}}', '--cfg \'{"user": {"name": 1}}\': user.name expects a text, got the number 1'),
        ("missing", "no configuration is called 'missing'"),
    ],
)
def test_a_value_of_cfg_that_is_not_accepted_is_quoted(text: str, message: str, places: Places) -> None:
    with pytest.raises(ConfigurationError) as caught:
        cfg_layers([text], places, [])

    assert worded(caught.value.message) == message


def test_an_error_in_a_fragment_says_who_asked_for_it(places: Places) -> None:
    path = places.cwd / "bad.toml"
    write(path, "user = 1 2")

    with pytest.raises(ConfigurationError) as caught:
        cfg_layers(["@bad.toml"], places, [])

    assert worded(caught.value.message).startswith(f"--cfg '@bad.toml': {str(path)!r}, line 1, column 10: ")


def test_an_option_that_is_not_accepted_is_named() -> None:
    with pytest.raises(ConfigurationError) as caught:
        flag_layer("--param max_tokens=0", {"assistant": {"model": {"parameters": {"max_tokens": 0}}}})

    assert caught.value.message == (
        "--param max_tokens=0: assistant.model.parameters.max_tokens expects a whole number of at least 1, "
        "got the number 0"
    )


def test_files_after_one_that_ends_the_merging_are_named(places: Places) -> None:
    assert places.root is not None
    ends = places.root / ".jp" / "config.toml"
    after = places.root / ".jp.toml"
    write(ends, "inherit = false")
    write(after, "user.name = 'never'")

    assert unread_files(places) == [after]
    write(ends, "")
    assert unread_files(places) == []
