"""Reading `config.yaml`: what is taken, what is refused with its line, what only warns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given as given_by
from hypothesis import strategies as st

from hermes_engine.errors import ConfigError
from hermes_engine.settings import Section, Settings
from hermes_engine.settings.reading import check_settings, known_keys, parse_settings, parse_yaml, read_yaml
from hermes_engine.toolsets import TOOLSETS, expand

CONTRACT_DEFAULTS = """
model: anthropic/claude-sonnet-4.6
base_url: https://openrouter.ai/api/v1
toolsets: [terminal, file, delegation]
delegation: {max_concurrent: 4, max_depth: 2, max_turns: 50, timeout_seconds: 900, model: null}
kanban: {max_workers: 3, failure_limit: 3, claim_ttl_seconds: 900}
approvals: {mode: ask, allow: [], deny: []}
limits: {max_turns: 90, max_cost_usd: null}
storage: {keep_days: 90}
"""


def read(tmp_path: Path, text: str | bytes) -> tuple[Settings, tuple[str, ...]]:
    path = tmp_path / "config.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    file = read_yaml(path)
    return parse_settings(file, Settings), check_settings(file)


def refused(tmp_path: Path, text: str | bytes) -> str:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    assert caught.value.exit_code == 2
    assert "\n" not in caught.value.line
    path = tmp_path / "config.yaml"
    assert path.read_bytes() == (text.encode() if isinstance(text, str) else text)
    return caught.value.line.replace(str(path), "FILE")


def test_the_defaults_are_the_contracts(tmp_path: Path) -> None:
    written, warnings = read(tmp_path, CONTRACT_DEFAULTS)
    assert warnings == ()
    assert written == Settings()
    values = Settings().model_dump(mode="json")
    for name, wanted in yaml.safe_load(CONTRACT_DEFAULTS).items():
        for key, value in wanted.items() if isinstance(wanted, dict) else ():
            assert values[name][key] == value, (name, key)
        assert isinstance(wanted, dict) or values[name] == wanted


def test_no_file_and_an_empty_one_mean_the_defaults(tmp_path: Path) -> None:
    assert parse_settings(read_yaml(tmp_path / "none.yaml"), Settings) == Settings()
    for text in ("", "\n\n", "# only a comment\n", "---\n"):
        assert read(tmp_path, text) == (Settings(), ())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("model: x\nlimits: [unclosed\n", "FILE:2: not valid YAML"),
        (
            "model: [unclosed\nlimits: {}\n",
            "FILE:2: not valid YAML: did not find expected ',' or ']' (in what begins in line 1)",
        ),
        ("model: [unclosed", "FILE:1: not valid YAML"),
        ("model: x\n\tbad: 1\n", "FILE:2: not valid YAML"),
        ("a: 1\n---\nb: 2\n", "FILE:2: not valid YAML"),
        ("a: !!python/object/apply:os.system [x]\n", "FILE:1: not valid YAML"),
        ("? [a, b]\n: 1\n", "FILE"),
        ("a: &x\n  b: 1\n  <<: *y\n", "FILE:3: not valid YAML"),
        ("model: 2026-13-45\n", "FILE: a value cannot be read"),
        (b"model: x\nother: \xff\n", "FILE:2: not UTF-8 text"),
        ("a: " + "[" * 20_000, "FILE"),
    ],
)
def test_f6_2_broken_yaml_is_refused_with_its_line(tmp_path: Path, text: str | bytes, problem: str) -> None:
    assert refused(tmp_path, text).startswith(problem)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a\n- b\n", "FILE:1: the file holds a list"),
        ("just words\n", "FILE:1: the file holds a single value"),
        ("limits:\n  max_turns: abc\n", "FILE:2: limits.max_turns: should be a whole number, not 'abc'"),
        ("terminal: {timeout_seconds: abc}\n", "FILE:1: terminal.timeout_seconds: should be a number, not 'abc'"),
        ("\n\nlimits: 5\n", "FILE:3: limits: should be a block of keys, not 5"),
        ("limits:\n- max_turns\n", "FILE:1: limits: should be a block of keys"),
        ("model: [a]\n", "FILE:1: model: should be text, not a list"),
        ("model:\n  default: a\n", "FILE:1: model: should be text, not a block of keys"),
        ("model: 5\n", "FILE:1: model: should be text, not 5"),
        ("limits: {max_turns: yes}\n", "FILE:1: limits.max_turns: a number is needed, not yes or no"),
        ("limits: {max_turns: 0}\n", "FILE:1: limits.max_turns: should be greater than or equal to 1, not 0"),
        ("limits: {max_turns: -3}\n", "FILE:1: limits.max_turns: should be greater"),
        ("limits: {max_turns: 1.5}\n", "FILE:1: limits.max_turns: should be a whole number, not 1.5"),
        ("limits: {max_cost_usd: .nan}\n", "FILE:1: limits.max_cost_usd: should be"),
        ("approvals: {mode: off}\n", "FILE:1: approvals.mode: should be 'ask', 'edits', 'plan', 'auto' or 'yolo'"),
        ("toolsets: {terminal: true}\n", "FILE:1: toolsets: should be a list"),
        ("toolsets: [terminal, webb]\n", "FILE:1: toolsets: unknown toolset 'webb'"),
        ("base_url: openrouter\n", "FILE:1: base_url: 'openrouter' is not a server's address"),
        ("model: a\nlimits: {}\nmodel: b\n", "FILE:3: model is given twice"),
        ("limits:\n  max_turns: 1\n  max_turns: 2\n", "FILE:3: limits.max_turns is given twice"),
    ],
)
def test_f6_3_wrong_types_name_file_line_and_key(tmp_path: Path, text: str, problem: str) -> None:
    assert refused(tmp_path, text).startswith(problem)


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("max_turn: 5\n", "FILE:1: unknown key max_turn; did you mean limits.max_turns?"),
        ("model: x\ndisabled_toolsets: terminal\n", "FILE:2: unknown key disabled_toolsets; did you mean toolsets?"),
        ("limits:\n  max_turn: 5\n", "FILE:2: unknown key limits.max_turn; did you mean limits.max_turns?"),
        ("keep_days: 3\n", "FILE:1: unknown key keep_days; did you mean storage.keep_days?"),
        ("zzzzqqq: 3\n", "FILE:1: unknown key zzzzqqq"),
        ("1: 3\n", "FILE:1: unknown key 1"),
        ("api_key: sk-12345678\n", "FILE:1: unknown key api_key; a key belongs into .env"),
        ("x: &a [*a]\n", "FILE:1: unknown key x"),
    ],
)
def test_f6_3_unknown_keys_warn_with_the_nearest_and_go_on(tmp_path: Path, text: str, warning: str) -> None:
    _, warnings = read(tmp_path, text)
    assert [line.replace(str(tmp_path / "config.yaml"), "FILE") for line in warnings] == [warning]


def test_f6_3_a_string_where_a_list_is_meant_is_one_element(tmp_path: Path) -> None:
    settings, warnings = read(tmp_path, "toolsets: terminal\napprovals: {allow: git status}\nterminal: {pass_env: A}\n")
    assert warnings == ()
    assert settings.toolsets == ("terminal",)
    assert settings.approvals.allow == ("git status",)
    assert settings.terminal.pass_env == ("A",)


def test_f1_5_a_byte_order_mark_and_crlf_are_accepted(tmp_path: Path) -> None:
    settings, warnings = read(tmp_path, b"\xef\xbb\xbfmodel: m\r\nlimits:\r\n  max_turns: 3\r\n\r\n")
    assert (settings.model, settings.limits.max_turns, warnings) == ("m", 3, ())


def test_empty_keys_mean_the_default_and_null_its_own_value(tmp_path: Path) -> None:
    settings, warnings = read(tmp_path, "model:\nlimits:\ndelegation:\n  max_turns:\n  model: null\ntoolsets:\n")
    assert warnings == ()
    assert settings == Settings()


def test_toolsets_spell_out_all_but_kanban(tmp_path: Path) -> None:
    for text in ("toolsets: all\n", "toolsets: ['*']\n", "toolsets: [all]\n"):
        assert set(read(tmp_path, text)[0].toolsets) == set(TOOLSETS) - {"kanban"}
    assert read(tmp_path, "toolsets: []\n")[0].toolsets == ()
    assert "kanban" in read(tmp_path, "toolsets: [all, kanban]\n")[0].toolsets
    assert read(tmp_path, "toolsets: file, terminal\n")[0].toolsets == ("terminal", "file")


def test_yes_and_no_of_yaml_are_understood_where_words_are_meant(tmp_path: Path) -> None:
    settings, _ = read(tmp_path, "ui: {mouse: off, sidebar: on, motion: no}\nprovider: {send_reasoning: off}\n")
    assert settings.provider.send_reasoning == "off"
    assert (settings.ui.mouse, settings.ui.sidebar, settings.ui.motion) == ("off", "on", False)


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        read_yaml(tmp_path / "config.yaml")


def test_every_key_has_a_docstring() -> None:
    def walk(model: type[Section]) -> None:
        for name, info in model.model_fields.items():
            assert info.description, f"{model.__name__}.{name}"
            if isinstance(info.annotation, type) and issubclass(info.annotation, Section):
                walk(info.annotation)

    walk(Settings)
    assert ("limits", "max_turns") in set(known_keys())


def test_f6_1_disabling_one_set_keeps_every_tool_of_the_others() -> None:
    for name in TOOLSETS:
        left = [other for other in TOOLSETS if other != name]
        tools = {tool for other in expand(left) for tool in TOOLSETS[other]}
        assert tools == {tool for other in left for tool in TOOLSETS[other]}


def settings_or_problem(path: Path, text: str) -> tuple[Settings | None, str]:
    try:
        file = parse_yaml(path, text)
        check_settings(file)
        return parse_settings(file, Settings), ""
    except ConfigError as error:
        return None, str(error)


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 10**6)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
keys = st.sampled_from([path[-1] for path in known_keys()]) | st.text(max_size=8)


@given_by(st.dictionaries(keys, plain | st.dictionaries(keys, plain, max_size=3), max_size=4))
def test_whatever_a_file_holds_it_is_settings_or_one_clear_line(values: dict[str, Any]) -> None:
    path = Path("config.yaml")
    text = yaml.safe_dump(values, allow_unicode=False)
    settings, problem = settings_or_problem(path, text)
    if settings is None:
        assert problem.startswith("config.yaml")
    else:
        again = parse_settings(parse_yaml(path, yaml.safe_dump(settings.model_dump(mode="json"))), Settings)
        assert again == settings


@given_by(st.text(max_size=60) | st.binary(max_size=60).map(lambda data: data.decode("latin-1")))
def test_any_text_at_all_is_values_or_one_clear_line(text: str) -> None:
    settings, problem = settings_or_problem(Path("config.yaml"), text)
    assert (settings is not None) != problem.startswith("config.yaml")
