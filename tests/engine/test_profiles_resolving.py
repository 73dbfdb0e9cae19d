"""What is in effect: flag > environment > profile's config > `config.yaml` > default, and nothing from the folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_engine.errors import ConfigError, UnknownName
from hermes_engine.profiles import Resolved, resolve
from hermes_engine.settings import DEFAULT_MODEL, OPENAI_URL, Overrides

X, Y = "http://127.0.0.1:8001/v1", "http://127.0.0.1:8002/v1"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    root = tmp_path / "home"
    root.mkdir()
    return root


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def at(home: Path, flags: Overrides | None = None, **env: str) -> Resolved:
    return resolve(flags, {"HERMES_HOME": str(home), **env})


def test_each_source_wins_over_the_next(home: Path) -> None:
    assert at(home).settings.model == DEFAULT_MODEL
    write(home / "config.yaml", "model: from-config\nlimits: {max_turns: 7, max_cost_usd: 2}\nprofile: p\n")
    write(home / "profiles/p/profile.yaml", "description: d\n")
    assert at(home).settings.model == "from-config"
    write(home / "profiles/p/config.yaml", "model: from-profile\nlimits: {max_turns: 8}\n")
    resolved = at(home)
    assert resolved.profile == "p"
    assert resolved.settings.model == "from-profile"
    assert (resolved.settings.limits.max_turns, resolved.settings.limits.max_cost_usd) == (8, 2)
    flags = Overrides(model="from-flag", max_turns=9, toolsets=("web",), mode="plan", reasoning_effort="high")
    settings = at(home, flags).settings
    assert (settings.model, settings.limits.max_turns, settings.toolsets) == ("from-flag", 9, ("web",))
    assert (settings.approvals.mode, settings.provider.reasoning_effort) == ("plan", "high")


def test_the_environment_stands_over_files_and_under_flags(home: Path) -> None:
    write(home / "config.yaml", f"base_url: {X}\nprofile: a\n")
    write(home / "profiles/a/config.yaml", f"base_url: {X}\n")
    write(home / "profiles/b/config.yaml", f"base_url: {X}\n")
    assert at(home, OPENAI_BASE_URL=Y).endpoint_for("m").base_url == Y
    assert (
        at(home, Overrides(base_url=OPENAI_URL, api_key="k" * 8), OPENAI_BASE_URL=Y).endpoint_for("m").base_url
        == OPENAI_URL
    )
    assert at(home).profile == "a"
    assert at(home, HERMES_PROFILE="b").profile == "b"
    assert at(home, Overrides(profile="default"), HERMES_PROFILE="b").profile == "default"


def test_the_home_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / ".hermes/config.yaml", "model: in-home\n")
    monkeypatch.delenv("HERMES_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve().settings.model == "in-home"
    write(tmp_path / "elsewhere/config.yaml", "model: elsewhere\n")
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "elsewhere"))
    assert resolve().settings.model == "elsewhere"


def test_an_empty_block_or_key_of_a_profile_leaves_the_homes_value(home: Path) -> None:
    write(home / "config.yaml", "model: m\nlimits: {max_turns: 7}\n")
    write(home / "profiles/p/config.yaml", "model:\nlimits:\ndelegation:\n  model: null\n")
    settings = at(home, Overrides(profile="p")).settings
    assert (settings.model, settings.limits.max_turns) == ("m", 7)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (Overrides(profile="nope"), "unknown profile 'nope'; valid: default, orchestrator, reviewer"),
        (Overrides(toolsets=("terminal", "nope")), "unknown toolset 'nope'; valid: "),
        (Overrides(mode="nope"), "unknown mode 'nope'; valid: ask, auto, edits, plan, yolo"),
        (Overrides(reasoning_effort="nope"), "unknown reasoning effort 'nope'"),
    ],
)
def test_unknown_names_list_the_valid_ones(home: Path, flags: Overrides, words: str) -> None:
    with pytest.raises(UnknownName) as caught:
        at(home, flags)
    assert str(caught.value).startswith(words)
    assert caught.value.exit_code == 2


def test_a_number_out_of_range_on_the_command_line_is_refused(home: Path) -> None:
    with pytest.raises(ConfigError, match=r"command line: limits\.max_turns: should be greater"):
        at(home, Overrides(max_turns=0))


def test_mode_is_ask_where_a_person_is_and_auto_elsewhere_unless_named(home: Path) -> None:
    resolved = at(home)
    assert (resolved.mode_for(True), resolved.mode_for(False)) == ("ask", "auto")
    write(home / "config.yaml", "approvals: {mode: ask}\n")
    assert at(home).mode_for(False) == "ask"
    write(home / "profiles/p/config.yaml", "approvals: {mode: plan}\n")
    assert at(home, Overrides(profile="p")).mode_for(True) == "plan"
    assert at(home, Overrides(profile="p", mode="yolo")).mode_for(False) == "yolo"
    write(home / "config.yaml", "approvals: {allow: [git status]}\n")
    assert at(home).mode_for(False) == "auto"


def test_f12_12_nothing_of_the_project_folder_counts(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    write(project / ".env", f"OPENAI_BASE_URL={Y}\nOPENAI_API_KEY=theirs-12345\nHERMES_HOME={project}\n")
    write(project / "config.yaml", f"base_url: {Y}\nmodel: theirs\n")
    write(project / ".hermes/config.yaml", f"base_url: {Y}\nmodel: theirs\n")
    write(project / "profiles/p/config.yaml", f"base_url: {Y}\n")
    write(project / "SOUL.md", "theirs")
    monkeypatch.chdir(project)
    resolved = at(home, OPENROUTER_API_KEY="sk-or-mine")
    assert resolved.settings.model == DEFAULT_MODEL
    assert resolved.endpoint_for().base_url == "https://openrouter.ai/api/v1"
    assert "theirs" not in resolved.soul
    assert "theirs-12345" not in resolved.secrets
    with pytest.raises(UnknownName):
        at(home, Overrides(profile="p"))


def test_f6_4_keys_of_one_profile_reach_no_other(home: Path) -> None:
    write(home / "config.yaml", f"base_url: {X}\n")
    write(home / "profiles/a/.env", "OPENAI_API_KEY=key-of-profile-a\nOTHER_TOKEN=token-of-profile-a\n")
    write(home / "profiles/b/profile.yaml", "extends: a\n")
    before = dict(os.environ)
    first = at(home, Overrides(profile="a"))
    assert first.endpoint_for().api_key == "key-of-profile-a"
    second = first.with_profile("b")
    for resolved in (second, at(home, Overrides(profile="b")), at(home)):
        assert resolved.endpoint_for().api_key is None
        assert resolved.secrets == ()
    assert dict(os.environ) == before
    assert set(first.secrets) == {"key-of-profile-a", "token-of-profile-a"}


def test_f6_5_a_profiles_own_address_model_and_key_are_used(home: Path) -> None:
    write(home / "config.yaml", f"base_url: {X}\nmodel: m1\n")
    write(home / ".env", "OPENAI_API_KEY=key-of-home\n")
    write(home / "profiles/p/config.yaml", f"base_url: {Y}\nmodel: m2\n")
    write(home / "profiles/p/.env", "OPENAI_API_KEY=key-of-profile\n")
    endpoint = at(home, Overrides(profile="p")).endpoint_for()
    assert (endpoint.base_url, endpoint.model, endpoint.api_key) == (Y, "m2", "key-of-profile")
    endpoint = at(home).endpoint_for()
    assert (endpoint.base_url, endpoint.model, endpoint.api_key) == (X, "m1", "key-of-home")


def test_flags_of_one_agent_do_not_pass_to_another_profile_but_its_address_does(home: Path) -> None:
    write(home / "profiles/plain/config.yaml", "model: m2\n")
    write(home / "profiles/far/config.yaml", f"base_url: {Y}\n")
    resolved = at(home, Overrides(model="m1", base_url=X, api_key="flag-key-1", mode="yolo", toolsets=()))
    endpoint = resolved.with_profile("plain").endpoint_for()
    assert (endpoint.base_url, endpoint.model, endpoint.api_key) == (X, "m2", "flag-key-1")
    assert resolved.with_profile("plain").mode_for(True) == "ask"
    assert resolved.with_profile("plain").settings.toolsets == ("terminal", "file", "delegation")
    endpoint = resolved.with_profile("far").endpoint_for()
    assert (endpoint.base_url, endpoint.api_key) == (Y, None)
    assert endpoint.model != "m1", "its own address does not have the flag's model"
    write(home / "config.yaml", "model: m0\n")
    silent = resolved.with_profile("reviewer")
    assert (silent.endpoint_for().model, silent.profile_model) == ("m1", None), "the flag's address has its model"
    assert resolved.with_profile("plain").profile_model == "m2"


def test_flags_of_the_program_speak_of_a_boards_workers_below_what_their_profile_says(home: Path) -> None:
    write(home / "config.yaml", "model: m0\nlimits: {max_turns: 5}\n")
    write(home / "profiles/plain/profile.yaml", "description: says nothing\n")
    write(home / "profiles/own/config.yaml", "model: m2\napprovals: {mode: plan}\nlimits: {max_turns: 7}\n")
    write(home / "profiles/far/config.yaml", f"base_url: {Y}\n")
    flags = Overrides(model="m1", base_url=X, api_key="flag-key-1", mode="yolo", max_turns=3, toolsets=())
    resolved = at(home, flags)

    def told(name: str) -> tuple[str, str, str, int]:
        other = resolved.with_profile(name, worker=True)
        endpoint = other.endpoint_for()
        return endpoint.base_url, endpoint.model, other.mode_for(False), other.settings.limits.max_turns

    assert told("plain") == (X, "m1", "yolo", 3)
    assert told("own") == (X, "m2", "plan", 7)
    assert told("far") == (Y, "m0", "yolo", 3), "its own address does not have the flag's model"
    assert resolved.with_profile("far", worker=True).endpoint_for().api_key is None
    assert resolved.with_profile("plain", worker=True).settings.toolsets == ("terminal", "file", "delegation")


def test_extends_hands_down_settings_and_instructions(home: Path) -> None:
    write(home / "config.yaml", "model: m0\nlimits: {max_turns: 5}\n")
    write(home / "SOUL.md", "soul of the home")
    write(home / "profiles/base/config.yaml", "model: m1\ntoolsets: [file]\n")
    write(home / "profiles/base/SOUL.md", "soul of base\n")
    write(home / "profiles/mid/profile.yaml", "extends: base\n")
    write(home / "profiles/mid/SOUL.md", "  \n")
    write(home / "profiles/top/profile.yaml", "extends: mid\ndescription: t\n")
    write(home / "profiles/top/config.yaml", "model: m3\n")
    top = at(home, Overrides(profile="top"))
    assert (top.settings.model, top.settings.toolsets, top.settings.limits.max_turns) == ("m3", ("file",), 5)
    assert top.soul == "soul of base"
    assert at(home).soul == "soul of the home"
    write(home / "profiles/rev/profile.yaml", "extends: reviewer\n")
    assert "reviewer" in at(home, Overrides(profile="rev")).soul


def test_extends_in_a_circle_or_to_nowhere_is_refused(home: Path) -> None:
    write(home / "profiles/a/profile.yaml", "extends: b\n")
    write(home / "profiles/b/profile.yaml", "extends: a\n")
    with pytest.raises(ConfigError, match="circle: a → b → a"):
        at(home, Overrides(profile="a"))
    write(home / "profiles/c/profile.yaml", "extends: nope\n")
    with pytest.raises(ConfigError, match="extends: unknown profile 'nope'"):
        at(home, Overrides(profile="c"))


def test_a_wrong_file_of_the_profile_is_named(home: Path) -> None:
    path = write(home / "profiles/p/config.yaml", "model: x\nlimits: {max_turns: abc}\n")
    with pytest.raises(ConfigError, match=f"{path}:2: limits.max_turns"):
        at(home, Overrides(profile="p"))
    write(path, "modle: x\n")
    assert at(home, Overrides(profile="p")).warnings == (f"{path}:1: unknown key modle; did you mean model?",)


def test_shipped_profiles_work_without_a_copy_and_an_own_one_hides_its_namesake(home: Path) -> None:
    shipped = at(home, Overrides(profile="orchestrator"))
    assert shipped.warnings == ()
    assert "kanban" in shipped.settings.toolsets
    write(home / "profiles/orchestrator/config.yaml", "toolsets: [web]\n")
    own = at(home, Overrides(profile="orchestrator"))
    assert own.settings.toolsets == ("web",)
    assert "orchestrator" not in own.soul
    assert at(home).soul.startswith("You are Hermes")


def test_secrets_hold_every_key_value_known_longest_first(home: Path) -> None:
    write(
        home / ".env", "OPENAI_API_KEY=home-key-12\nSERPER_API_KEY=serper-key-123\nPLAIN=not-a-secret\nMY_TOKEN=short\n"
    )
    resolved = at(
        home, Overrides(api_key="flag-key-1"), GITHUB_TOKEN="ghp_1234567890", PATH="/usr/bin:/bin:/usr/local/bin"
    )
    assert resolved.secrets == ("ghp_1234567890", "serper-key-123", "home-key-12", "flag-key-1")
    assert "pass-word-1" in at(home, Overrides(base_url="http://user:pass-word-1@h/v1")).secrets


def test_paths_and_plain_words_are_no_secrets(home: Path) -> None:
    key_file = write(home / "key.json", "{}")
    letters = "abcdefghijklmnopqrstuvwxyz"
    resolved = at(home, GOOGLE_CREDENTIALS=str(key_file), FEATURE_TOKEN="disabled", LONG_SECRET=letters)
    assert resolved.secrets == (letters,)


def test_the_address_in_effect_is_among_the_settings(home: Path) -> None:
    assert at(home, OPENAI_BASE_URL=Y + "/").settings.base_url == Y
    write(home / "config.yaml", f"base_url: {X}\n")
    assert at(home).settings.base_url == X
    assert at(home, Overrides(base_url=Y)).settings.base_url == Y
    assert at(home, OPENAI_BASE_URL="nonsense").settings.base_url == X


def test_resolving_writes_nothing(home: Path) -> None:
    root = home / "not-there"
    at(root)
    assert not root.exists()
