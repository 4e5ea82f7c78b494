from __future__ import annotations

from pathlib import Path

import pytest

from jp.config.files import Group, expanded, is_inside, load_group
from jp.config.layers import resolve
from jp.errors import ConfigurationError


def write(root: Path, **files: str) -> None:
    """Write `name`.toml with its text; `__` in a name stands for a directory."""
    for name, text in files.items():
        path = root / (name.replace("__", "/") + ".toml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def load(root: Path, *, foreign: bool = False, kind: str = "a") -> Group:
    group = load_group(root / f"{kind}.toml", kind="workspace", root=root, foreign=foreign)
    assert group is not None
    return group


def names(group: Group) -> list[str]:
    return [Path(layer.origin.where).stem for layer in group.layers]


def test_a_missing_file_is_no_group(tmp_path: Path) -> None:
    assert load_group(tmp_path / "a.toml", kind="user", root=None, foreign=False) is None


def test_a_file_wins_over_what_it_extends(tmp_path: Path) -> None:
    write(tmp_path, a='extends = ["b.toml"]\nuser.name = "a"\n', b='user.name = "b"\nassistant.tool_choice = "none"\n')

    group = load(tmp_path)

    assert names(group) == ["b", "a"]
    config = resolve(group.layers).config
    assert config.user.name == "a"
    assert config.assistant.tool_choice == "none"


def test_what_is_merged_after_wins(tmp_path: Path) -> None:
    write(
        tmp_path,
        a='extends = [{ path = "c.toml", strategy = "after" }, "b.toml", { path = "d.toml" }]',
        b="",
        c="",
        d="",
    )

    assert names(load(tmp_path)) == ["b", "d", "a", "c"]


def test_paths_are_relative_to_the_file_that_names_them(tmp_path: Path) -> None:
    write(tmp_path, a='extends = ["sub/b.toml"]', sub__b='extends = ["c.toml", "../d.toml"]', sub__c="", d="")

    assert names(load(tmp_path)) == ["c", "d", "b", "a"]


def test_a_pattern_names_the_toml_files_that_match_in_order(tmp_path: Path) -> None:
    write(tmp_path, a='extends = ["conf/**/*"]', conf__c="", conf__b="", conf__sub__d="", conf__x="")
    (tmp_path / "conf" / "x.toml").rename(tmp_path / "conf" / ".x.toml")
    (tmp_path / "conf" / "note.md").write_text("no", encoding="utf-8")
    (tmp_path / "conf" / "broken.toml").symlink_to(tmp_path / "missing")

    assert names(load(tmp_path)) == ["b", "c", "d", "a"]


def test_a_pattern_that_matches_nothing_or_the_file_itself_is_fine(tmp_path: Path) -> None:
    write(tmp_path, a='extends = ["*.toml", "none/*.toml"]')

    assert names(load(tmp_path)) == ["a"]


def test_a_file_that_is_reached_twice_counts_once(tmp_path: Path) -> None:
    write(
        tmp_path,
        a='extends = ["b.toml", "c.toml"]',
        b='extends = ["d.toml"]',
        c='extends = ["d.toml"]',
        d='conversation.attachments = { value = ["x"], dedup = false }',
    )

    group = load(tmp_path)

    assert names(group) == ["d", "b", "c", "a"]
    assert resolve(group.layers).config.conversation.attachments == ("x",)


def test_files_cannot_extend_themselves(tmp_path: Path) -> None:
    write(tmp_path, a='extends = ["b.toml"]', b='extends = ["a.toml"]')

    with pytest.raises(
        ConfigurationError, match=r"b\.toml', line 1, column \d+ extends 'a\.toml', so '.*a\.toml' extends itself"
    ) as caught:
        load(tmp_path)

    assert (
        caught.value.hint
        == f"remove it; the files are {tmp_path / 'a.toml'}, {tmp_path / 'b.toml'}, {tmp_path / 'a.toml'}"
    )


def test_a_file_cannot_extend_without_end(tmp_path: Path) -> None:
    write(tmp_path, a='extends = ["conf/*.toml"]', **{f"conf__f{number:03}": "" for number in range(255)})

    with pytest.raises(ConfigurationError, match="extends more than 255 files"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("extends", "message"),
    [
        ("missing.toml", "extends 'missing.toml', which does not exist"),
        ("b.txt", "extends 'b.txt', which is no configuration file"),
        ("conf", "extends 'conf', which is no configuration file"),
        ("~nobody-here/x.toml", "which does not exist"),
        ("x\\u0000.toml", "which is no path"),
        ("x**/*.toml", "extends 'x**/*.toml': '**' must be a whole name between slashes"),
    ],
)
def test_what_cannot_be_extended_is_reported(extends: str, message: str, tmp_path: Path) -> None:
    write(tmp_path, a=f'extends = ["{extends}"]')

    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path)

    assert repr(str(tmp_path / "a.toml")) in caught.value.message
    assert message in caught.value.message


def test_an_error_in_an_extended_file_names_that_file(tmp_path: Path) -> None:
    write(tmp_path, a='extends = ["b.toml"]', b="user.name = 1")

    with pytest.raises(ConfigurationError, match=r"b\.toml', line 1, column 13: user\.name expects a text"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("c", "message"),
    [
        ("user.name = 1", "/c.toml', line 1, column 13: user.name expects a text, got the number 1"),
        ("user.name = ", "/c.toml', line 1, column 13: invalid value before the file's end: 'user.name ='"),
        ('extends = ["x.toml"]', "/c.toml', line 1, column 12 extends 'x.toml', which does not exist"),
        ('extends = ["x"]', "/c.toml', line 1, column 12 extends 'x', which is no configuration file"),
    ],
)
def test_an_error_names_the_files_by_way_of_which_it_was_reached(c: str, message: str, tmp_path: Path) -> None:
    write(tmp_path, a='extends = ["b.toml"]', b='extends = ["c.toml"]', c=c)

    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path)

    chain = f" (extended by '{tmp_path}/b.toml', which is extended by '{tmp_path}/a.toml')"
    assert caught.value.message == f"'{tmp_path}{message}{chain}"


@pytest.mark.parametrize(
    ("a", "b", "inherit"), [("", "", True), ("inherit = false\n", "", False), ("", "inherit = false", False)]
)
def test_a_group_says_whether_later_files_count(a: str, b: str, *, inherit: bool, tmp_path: Path) -> None:
    write(tmp_path, a=f'{a}extends = ["b.toml"]', b=b)

    assert load(tmp_path).inherit is inherit


def test_the_home_directory_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path, b="")
    write(tmp_path / "w", a='extends = ["~/b.toml"]')

    assert names(load(tmp_path / "w")) == ["b", "a"]
    assert expanded("~nobody-here/x") == Path("~nobody-here/x")


def test_what_a_foreign_file_reaches_outside_the_workspace_is_kept(tmp_path: Path) -> None:
    root = tmp_path / "w"
    write(tmp_path, out="", linked="")
    write(root, a='extends = ["../out.toml", "b.toml", "link.toml"]', b="")
    (root / "link.toml").symlink_to(tmp_path / "linked.toml")

    group = load(root, foreign=True)

    assert [layer.foreign for layer in group.layers] == [True] * 4
    assert group.layers[-1].reaches == (str(tmp_path / "out.toml"), str(tmp_path / "linked.toml"))
    assert load(root).layers[-1].reaches == ()


def test_a_foreign_pattern_may_not_leave_the_workspace(tmp_path: Path) -> None:
    root = tmp_path / "w"
    write(root, a='extends = ["../*.toml"]')

    with pytest.raises(ConfigurationError, match="a pattern may not leave the workspace"):
        load(root, foreign=True)
    assert names(load(root)) == ["a"]


def test_a_link_out_of_a_directory_is_not_inside_it(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "link").symlink_to(tmp_path)

    assert is_inside(tmp_path / "w", tmp_path / "w")
    assert is_inside(tmp_path / "w" / "x", tmp_path / "w")
    assert not is_inside(tmp_path / "w" / "link" / "x", tmp_path / "w")
    assert not is_inside(tmp_path / "w2", tmp_path / "w")
