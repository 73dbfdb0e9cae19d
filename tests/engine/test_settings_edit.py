"""Editing `config.yaml`: comments, order and unknown keys stay; broken files and lost changes do not happen."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from hermes_engine.errors import ConfigError, StateError, UnknownName, UsageError
from hermes_engine.settings.reading import known_keys, read_yaml
from hermes_engine.settings_edit import change_toolsets, edit_config, edited_text, locked, set_value

COMMENTED = """\
# My settings.
model: x   # the cheap one

toolsets:
- terminal
- web   # for research
- file
delegation:
    max_depth: 1     # no grandchildren
other:
  - a
  - b    # second
unknown: {a: 1, b: [1, 2]}
answer: yes
number: 1_000
base: &base
    k: 'v'
merged:
    <<: *base
    z: 1
# the end
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(COMMENTED)
    return path


def comments(text: str) -> list[str]:
    return [line[line.index("#") :] for line in text.split("\n") if "#" in line]


def test_f12_5_comments_order_and_unknown_keys_stay(config: Path) -> None:
    before = yaml.safe_load(COMMENTED)
    change = change_toolsets(config, (), disable=["web"])
    assert change.changed
    after = yaml.safe_load(config.read_text())
    assert list(after) == list(before)
    assert after == before | {"toolsets": ["terminal", "file"]}
    assert set(comments(COMMENTED)) - set(comments(config.read_text())) == {"# for research"}
    same = [line for line in COMMENTED.split("\n") if "web" not in line]
    assert [line for line in config.read_text().split("\n") if line] == [line for line in same if line]


LISTED = """\
toolsets:{beside}
{above}{indent}- terminal   # commands
{indent}# and files
{indent}- file   # text
{below}limits:
  max_turns: 20
# the end
"""


@pytest.mark.parametrize("indent", ["", "  ", "    "])
@pytest.mark.parametrize("beside", ["", " # what it may do"])
@pytest.mark.parametrize("above", ["", "  # least first\n", "\n"])
@pytest.mark.parametrize("below", ["", "\n", "# how long\n", "\n# how long\n\n# a turn is\n"])
@pytest.mark.parametrize("wanted", [[], ["web"], ["terminal"], ["file"], ["terminal", "file", "web"]])
def test_f12_5_a_list_changes_and_the_comments_around_it_stay(
    config: Path, indent: str, beside: str, above: str, below: str, wanted: list[str]
) -> None:
    text = LISTED.format(indent=indent, beside=beside, above=above, below=below)
    config.write_text(text)
    assert set_value(config, "toolsets", str(wanted))
    after = config.read_text()
    assert yaml.safe_load(after) == {"toolsets": wanted, "limits": {"max_turns": 20}}
    assert after.endswith(f"{below}limits:\n  max_turns: 20\n# the end\n")
    head = after.splitlines()[0]
    assert head.startswith("toolsets:")
    assert head.endswith(beside.strip())
    assert after.splitlines(keepends=True)[1 : 1 + above.count("\n")] == above.splitlines(keepends=True)
    stays = {"# commands"} if "terminal" in wanted else set()
    assert stays | ({"# text"} if "file" in wanted else set()) <= set(comments(after))


@pytest.mark.parametrize(
    ("text", "key", "value", "expected"),
    [
        ("a: |\n  # text\n\nmodel: x\n", "model", "y", "a: |\n  # text\n\nmodel: y\n"),
        (
            "ui:\n  motion: no\n  # mouse: off\nx: 1\n",
            "ui.theme",
            "dark",
            "ui:\n  motion: no\n  theme: dark\n  # mouse: off\nx: 1\n",
        ),
        ("ui:\r\n  motion: no\r\n\r\n# c", "model", "y", "ui:\r\n  motion: no\r\n\r\n# c\r\nmodel: y\r\n"),
    ],
)
def test_lines_that_only_look_like_comments_and_ends_of_files(
    config: Path, text: str, key: str, value: str, expected: str
) -> None:
    config.write_bytes(text.encode())
    assert set_value(config, key, value)
    assert config.read_bytes() == expected.encode()


@pytest.mark.parametrize(
    ("key", "typed", "value"),
    [
        ("model", "y", "y"),
        ("model", "1_000", "1_000"),
        ("model", "yes", "yes"),
        ("model", "a: b", "a: b"),
        ("limits.max_turns", "5", 5),
        ("limits.max_cost_usd", "1.5", 1.5),
        ("limits.max_cost_usd", "null", None),
        ("delegation.max_depth", "0", 0),
        ("delegation.model", "m", "m"),
        ("approvals.allow", "git status", ["git status"]),
        ("approvals.allow", "[git status, git log]", ["git status", "git log"]),
        ("approvals.deny", "[]", []),
        ("toolsets", "web, file", ["web", "file"]),
        ("toolsets", "all", ["all"]),
        ("toolsets", "[]", []),
        ("provider.stream_usage", "no", False),
        ("provider.extra_body", '{"a": {"b": [1, true]}}', {"a": {"b": [1, True]}}),
        ("provider.prices.anthropic/claude-sonnet-4.6", "{input: 3, output: 15}", {"input": 3, "output": 15}),
        ("ui.mouse", "off", "off"),
        ("base_url", "http://127.0.0.1:1/v1/", "http://127.0.0.1:1/v1"),
        ("storage.keep_days", 3, 3),
    ],
)
def test_one_key_is_set_and_everything_else_stays(config: Path, key: str, typed: Any, value: Any) -> None:
    assert set_value(config, key, typed)
    section, _, rest = key.partition(".")
    before, after = yaml.safe_load(COMMENTED), yaml.safe_load(config.read_text())
    changed = after.pop(section)
    for name in [part for part in (rest.split(".", 1) if section == "provider" else [rest]) if part]:
        changed = changed[name]
    assert changed == value
    before.pop(section, None)
    assert after == before
    if section != "toolsets":
        assert comments(config.read_text()) == comments(COMMENTED)
    assert not set_value(config, key, typed), "a second time changes nothing"


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("max_turn", "5", "there is no setting 'max_turn' — did you mean limits.max_turns?"),
        ("limits.max_turns.x", "5", "there is no setting"),
        ("api_key", "sk-1", "there is no setting 'api_key' — a key belongs into .env"),
        ("", "5", "there is no setting"),
        ("limits.max_turns", "abc", "limits.max_turns: should be a whole number, not 'abc'"),
        ("limits.max_turns", "true", "limits.max_turns: a number is needed"),
        ("limits", "5", "limits: should be a block of keys"),
        ("toolsets", "terminal,webb", "toolsets: unknown toolset 'webb'; valid: "),
        ("toolsets", "[terminal, webb]", "toolsets: unknown toolset 'webb'; valid: "),
        ("approvals.mode", "maybe", "approvals.mode: should be 'ask'"),
    ],
)
def test_what_cannot_be_set_changes_nothing(config: Path, key: str, value: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        set_value(config, key, value)
    assert caught.value.line.startswith(words)
    assert config.read_text() == COMMENTED


@pytest.mark.parametrize("key", ["model", "limits.max_turns", "base_url", "ui.theme", "approvals.allow"])
def test_nothing_typed_leaves_a_key_to_its_default(config: Path, key: str) -> None:
    assert set_value(config, key, "")
    section, _, rest = key.partition(".")
    found = yaml.safe_load(config.read_text())[section]
    assert (found[rest] if rest else found) is None


@pytest.mark.parametrize("broken", ["model: [unclosed", "- a\n", "a: 1\na: 2\n", "model: x\n\tb: 1\n", "x: \udcff"])
def test_f6_2_a_file_that_does_not_parse_keeps_its_bytes(config: Path, broken: str) -> None:
    data = broken.encode("utf-8", "surrogateescape")
    config.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        set_value(config, "model", "x")
    assert caught.value.exit_code == 2
    assert str(config) in str(caught.value)
    with pytest.raises(ConfigError):
        change_toolsets(config, ("web",), disable=["web"])
    assert config.read_bytes() == data
    assert sorted(item.name for item in config.parent.iterdir()) == [".config.yaml.lock", "config.yaml"]


def test_a_wrong_value_elsewhere_is_named_and_can_be_mended(config: Path) -> None:
    config.write_text("model: x\nlimits:\n  max_turns: abc\n")
    with pytest.raises(ConfigError, match=r":3: limits\.max_turns"):
        set_value(config, "model", "y")
    assert set_value(config, "limits.max_turns", "5")
    assert yaml.safe_load(config.read_text()) == {"model": "x", "limits": {"max_turns": 5}}


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "# no line end", "---\n"])
def test_an_empty_file_is_added_to(config: Path, text: str) -> None:
    config.write_text(text)
    set_value(config, "limits.max_turns", "5")
    assert yaml.safe_load(config.read_text()) == {"limits": {"max_turns": 5}}
    assert comments(config.read_text()) == comments(text)


def test_line_ends_and_mark(config: Path) -> None:
    config.write_bytes(b"\xef\xbb\xbf# c\r\nmodel: x\r\n")
    set_value(config, "model", "y")
    assert config.read_bytes() == b"# c\r\nmodel: y\r\n"


def test_f10_4_modes_are_private_at_creation_and_kept_after(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        path = tmp_path / "new" / "config.yaml"
        set_value(path, "model", "x")
        assert {stat.S_IMODE(item.stat().st_mode) for item in path.parent.iterdir()} == {0o600}
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        path.chmod(0o640)
        set_value(path, "model", "y")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    finally:
        os.umask(old)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "hermes.yaml"
    real.parent.mkdir()
    real.write_text("model: x\n")
    link = tmp_path / "config.yaml"
    link.symlink_to(real)
    set_value(link, "model", "y")
    assert link.is_symlink()
    assert real.read_text() == "model: y\n"


def test_toolsets_by_command(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    inherited = ("terminal", "file", "delegation")
    change = change_toolsets(path, inherited, enable=["kanban"])
    assert (change.before, change.after) == (inherited, (*inherited, "kanban"))
    assert path.read_text() == "toolsets: [terminal, file, delegation, kanban]\n"
    assert not change_toolsets(path, inherited, enable=["kanban"]).changed
    path.write_text("toolsets: all\n")
    everything = change_toolsets(path, inherited, disable=["web", "todo"])
    assert "web" not in everything.after
    assert "kanban" not in everything.after
    assert set(everything.before) - set(everything.after) == {"web", "todo"}
    path.write_text("toolsets: [all]\n")
    assert "kanban" in change_toolsets(path, inherited, enable=["kanban"]).after
    assert yaml.safe_load(path.read_text()) == {"toolsets": ["all", "kanban"]}
    assert change_toolsets(path, inherited, enable=["all"]).changed is False
    path.write_text("toolsets: []\n")
    assert change_toolsets(path, inherited, enable=["*"]).after == everything.before


def test_f6_1_a_bundle_is_not_disabled_as_a_whole(config: Path) -> None:
    with pytest.raises(UsageError, match="`all` is not disabled as a whole"):
        change_toolsets(config, (), disable=["all"])
    with pytest.raises(UnknownName, match="unknown toolset 'webb'"):
        change_toolsets(config, (), disable=["webb"])
    assert config.read_text() == COMMENTED


WRITER = """
import sys
from pathlib import Path
from hermes_engine.settings_edit import change_toolsets
path, name, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for _ in range(rounds):
    change_toolsets(path, (), disable=[name])
    change_toolsets(path, (), enable=[name])
change_toolsets(path, (), disable=[name])
"""


def test_f12_6_two_writers_lose_no_change(config: Path) -> None:
    for _ in range(2):
        config.write_text("# kept\ntoolsets: [terminal, file, web, todo]\n")
        writers = [
            subprocess.Popen([sys.executable, "-c", WRITER, str(config), name, "20"], stderr=subprocess.PIPE)
            for name in ("web", "file")
        ]
        for writer in writers:
            _, complaint = writer.communicate(timeout=100)
            assert writer.returncode == 0, complaint.decode()
        assert sorted(yaml.safe_load(config.read_text())["toolsets"]) == ["terminal", "todo"]
        assert config.read_text().startswith("# kept\n")


def test_a_reader_never_sees_half_a_file(config: Path) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(config), "web", "20"])
    while writer.poll() is None:
        assert read_yaml(config).values["unknown"] == {"a": 1, "b": [1, 2]}
    assert writer.returncode == 0


def test_a_lock_that_is_not_given_back_is_reported(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes_engine.settings_edit.file._LOCK_SECONDS", 0.1)
    with locked(config), pytest.raises(StateError, match="is being changed by another program"):
        set_value(config, "model", "y")
    assert set_value(config, "model", "y")


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-99, 99)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=10)
)
trees = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abcdef", min_size=1, max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text("uvwxyz", min_size=1, max_size=5), trees, max_size=4),
    st.text(max_size=12),
    st.sampled_from([None, True, False]),
)
@example({"u": None}, "?0", None)
@example({"u": [None]}, "a: b", True)
def test_setting_a_value_changes_that_value_alone(values: dict[str, Any], model: str, flow: bool | None) -> None:
    text = yaml.safe_dump(values, allow_unicode=True, default_flow_style=flow) if values else "# nothing yet\n"

    def change(mapping: MutableMapping[str, Any]) -> None:
        mapping["model"] = model

    after = edited_text(Path("config.yaml"), text, change)
    assert yaml.safe_load(after) == values | {"model": model}


@given(st.sampled_from([".".join(path) for path in known_keys()]), scalars | st.floats())
@example("limits.max_cost_usd", 1e-05)
@example("toolsets", "")
def test_a_typed_value_is_set_or_refused_in_words(key: str, value: Any) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text("# mine\nother: 1\n")
        try:
            set_value(path, key, value if value is None else str(value))
        except UsageError:
            assert path.read_text() == "# mine\nother: 1\n"
        else:
            assert read_yaml(path).values["other"] == 1


def test_an_edit_that_removes_a_key(config: Path) -> None:
    def change(values: MutableMapping[str, Any]) -> None:
        values.pop("unknown", None)

    assert edit_config(config, change)
    assert "unknown" not in config.read_text()
    assert not edit_config(config, change)
