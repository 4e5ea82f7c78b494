"""`jp config explain`: exact words, JSON, trust, conversations, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

from failures import check_failure
from forked import prepare, run_jp
from running import home_beside
from stage import make_workspace


def test_every_layer_is_named_with_its_place_and_what_became_of_it(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    user = home_beside(tmp_path) / "config" / "config.toml"
    user.parent.mkdir(exist_ok=True)
    user.write_text("# mine\nassistant.model.id = 'script/mine'\n", encoding="utf-8")

    done = run_jp(
        "config", "explain", "assistant.model.id", "-c", "assistant.model.id=b", cwd=tmp_path,
        env={"JP_CFG_ASSISTANT_MODEL_ID": "a"},
    )  # fmt: skip

    lines = (
        'assistant.model.id = "b"\n'
        "a later layer replaces an earlier one\n"
        "\n"
        "  the default: nothing (replaced)\n"
        f'  the user\'s file {user}, line 2: "script/mine" (replaced)\n'
        f'  the workspace\'s file {tmp_path}/.jp/config.toml, line 2: "script/test" (replaced)\n'
        '  the environment variable JP_CFG_ASSISTANT_MODEL_ID: "a" (replaced)\n'
        '* --cfg assistant.model.id=b: "b" (in effect)\n'
    )
    assert done == (0, lines, "")


def test_elements_of_a_list_and_keys_of_a_table_are_explained(tmp_path: Path) -> None:
    make_workspace(tmp_path, settings='[conversation]\nattachments = ["file:a"]')
    file = f"the workspace's file {tmp_path}/.jp/config.toml, line 4"

    of_list = run_jp(
        "config", "explain", "conversation.attachments.1", "-c", "conversation.attachments+=b", cwd=tmp_path
    )
    set_by_hand = "conversation.deduplication.min_bytes=1"
    of_table = run_jp("config", "explain", "conversation.deduplication", "-c", set_by_hand, cwd=tmp_path)
    of_nothing = run_jp("config", "explain", "providers.llm.aliases", cwd=tmp_path)

    assert of_list.stdout == (
        'conversation.attachments.1 = "b"\n'
        "part of conversation.attachments\n"
        "\n"
        'conversation.attachments = ["file:a","b"]\n'
        "a later layer adds to an earlier one, or replaces it where it says so; a repeated element counts once\n"
        "\n"
        "  the default: [] (replaced)\n"
        f'* {file}: adds ["file:a"] (in effect)\n'
        '* --cfg conversation.attachments+=b: adds ["b"] (in effect)\n'
        "\n"
        f'  0: "file:a" from {file}\n'
        '  1: "b" from --cfg conversation.attachments+=b\n'
    )
    assert of_table.stdout == (
        "conversation.deduplication: a table is merged key by key\n"
        "\n"
        "conversation.deduplication.min_bytes = 1\n"
        "a later layer replaces an earlier one\n"
        "\n"
        "  the default: 300 (replaced)\n"
        "* --cfg conversation.deduplication.min_bytes=1: 1 (in effect)\n"
        "\n"
        "by default:\n"
        "  conversation.deduplication.enabled = true\n"
        "  conversation.deduplication.lookback_turns = 30\n"
    )
    assert of_nothing == (0, "providers.llm.aliases has no entries: nothing is configured there\n", "")


def test_what_nobody_has_accepted_and_what_is_not_read_is_said(tmp_path: Path) -> None:
    root = make_workspace(tmp_path, settings='[conversation]\nattachments = ["cmd:ls"]')
    (tmp_path / ".jp.toml").write_text('user.name = "x"\n', encoding="utf-8")

    before = run_jp("config", "explain", "conversation.attachments", cwd=root).stdout
    run_jp("workspace", "trust", "--yes", cwd=root)
    after = run_jp("config", "explain", "conversation.attachments", cwd=root).stdout
    with (root / ".jp" / "config.toml").open("r+", encoding="utf-8") as file:
        text = file.read()
        file.seek(0)
        file.write(f"inherit = false\n{text}")
    unread = run_jp("config", "explain", "user.name", cwd=root).stdout

    waiting = "part of it is ignored until trusted: see `jp workspace trust`\n"
    assert waiting in before
    assert (
        f'! the workspace\'s file {root}/.jp/config.toml, line 4: adds ["cmd:ls"] (ignored until trusted)\n' in before
    )
    assert waiting not in after
    assert f'* the workspace\'s file {root}/.jp/config.toml, line 4: adds ["cmd:ls"] (in effect)\n' in after
    assert unread.endswith(f"\nnot read, because of `inherit = false` in a file before: {root}/.jp.toml\n")


def test_a_file_outside_the_workspace_waits_as_a_whole(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work")
    (tmp_path / "out.toml").write_text('user.name = "out"\n', encoding="utf-8")
    (root / ".jp.toml").write_text('extends = ["../out.toml"]\n', encoding="utf-8")

    said = run_jp("config", "explain", "user.name", cwd=root).stdout

    assert f'! the directory\'s file {root}/../out.toml, line 1: "out" (ignored until trusted)\n' in said


def test_a_conversation_is_explained_with_what_it_keeps(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    set_later = ("query", "--id", "last", "-c", "assistant.system_prompt=Other", "two")
    prepare(("query", "--new", "one"), set_later, cwd=tmp_path)

    done = run_jp("config", "explain", "assistant.system_prompt", "-i", "last", "-F", "json", cwd=tmp_path)

    value = json.loads(done.stdout)
    layers = value["keys"][0].pop("layers")
    rule = value["keys"][0].pop("rule")
    assert value == {
        "schema": 1,
        "key": "assistant.system_prompt",
        "value": "Other",
        "keys": [
            {
                "key": "assistant.system_prompt",
                "value": "Other",
                "elements": [],
            }
        ],
        "not_read": [],
    }
    assert rule.endswith("; the default then vanishes")
    assert [(layer["kind"], layer["action"], layer["effect"]) for layer in layers] == [
        ("default", "default", "replaced"),
        ("conversation", "set", "replaced"),
        ("conversation", "set", "in effect"),
    ]
    assert layers[1]["origin"] == "the conversation's base configuration"
    assert set(layers[1]) == {"kind", "where", "origin", "line", "column", "action", "value", "effect", "trusted"}


def test_what_is_no_key_is_told_the_nearest_one(tmp_path: Path) -> None:
    check_failure(
        run_jp("config", "explain", "assistant.modle", cwd=tmp_path), 3, "the nearest known key is 'assistant.model'"
    )
    check_failure(run_jp("config", "explain", "conversation.tools.x", cwd=tmp_path), 3, "nothing is configured at")
    check_failure(run_jp("config", "explain", "user.name", "-i", "nobody", cwd=tmp_path), 2, "'nobody'")
    check_failure(run_jp("config", "explain", cwd=tmp_path), 2, "KEY")
