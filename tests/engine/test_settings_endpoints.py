"""Which address and which key: every row of the table in `settings.endpoints`, on real files and variables."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_engine.errors import ConfigError, NotConfigured
from hermes_engine.profiles import resolve
from hermes_engine.settings import OPENAI_URL, OPENROUTER_URL, Endpoint, EndpointSources, Overrides, Place, endpoint_for
from hermes_engine.settings.addresses import checked_url, origin_of
from hermes_engine.settings.endpoints import openrouter_name
from hermes_engine.settings.local_model import LocalModel

X, Y = "http://127.0.0.1:8001/v1", "http://127.0.0.1:8002/v1"
OPENROUTER_KEY, OPENAI_KEY = "sk-or-aaaaaaaa", "sk-oa-bbbbbbbb"
KEY_A, KEY_B, FLAG_KEY = "sk-home-aaaaaa", "sk-prof-bbbbbb", "sk-flag-cccccc"


@dataclass
class Case:
    """What is given, and what must come out: address and key, or None for NotConfigured."""

    name: str
    out: tuple[str, str | None] | None
    env: dict[str, str] = field(default_factory=dict)
    flags: Overrides = field(default_factory=Overrides)
    home: tuple[str, str] = ("", "")
    """config.yaml and .env of the home."""
    profile: tuple[str, str] | None = None
    """config.yaml and .env of profile `p`, which is then used."""


def flags(base_url: str | None = None, api_key: str | None = None) -> Overrides:
    return Overrides(base_url=base_url, api_key=api_key, model="m")


OR, OA = f"OPENROUTER_API_KEY={OPENROUTER_KEY}", f"OPENAI_API_KEY={OPENAI_KEY}"
ENV_OR, ENV_OA = {"OPENROUTER_API_KEY": OPENROUTER_KEY}, {"OPENAI_API_KEY": OPENAI_KEY}
M = Overrides(model="m")

TABLE = [
    Case("nothing", None),
    Case("OpenRouter's key", (OPENROUTER_URL, OPENROUTER_KEY), ENV_OR),
    Case("both keys", (OPENROUTER_URL, OPENROUTER_KEY), ENV_OR | ENV_OA),
    Case("only OpenAI's key", (OPENAI_URL, OPENAI_KEY), ENV_OA, M),
    Case("address and OpenAI's key", (X, OPENAI_KEY), ENV_OA | {"OPENAI_BASE_URL": X}),
    Case("address and both keys", (X, OPENAI_KEY), ENV_OA | ENV_OR | {"OPENAI_BASE_URL": X}),
    Case("address and OpenRouter's key", (X, None), ENV_OR | {"OPENAI_BASE_URL": X}),
    Case("address OpenRouter, OpenAI's key", (OPENROUTER_URL, OPENAI_KEY),
         ENV_OA | {"OPENAI_BASE_URL": OPENROUTER_URL}),
    Case("flags name both", (X, FLAG_KEY), ENV_OA | ENV_OR, flags(X, FLAG_KEY)),
    Case("flag names the environment's address", (X, OPENAI_KEY), ENV_OA | {"OPENAI_BASE_URL": X}, flags(X)),
    Case("… spelled a little differently", (X, OPENAI_KEY), ENV_OA | {"OPENAI_BASE_URL": X}, flags(X + "/")),
    Case("flag names another port", (Y, None), ENV_OA | {"OPENAI_BASE_URL": X}, flags(Y)),
    Case("flag names another host", ("https://h/v1", None), ENV_OA | ENV_OR, flags("https://h/v1")),
    Case("flag names another scheme", ("http://h/v1", None), ENV_OA | {"OPENAI_BASE_URL": "https://h/v1"}, flags("http://h/v1")),
    Case("a host that only begins alike", ("https://openrouter.ai.evil.example/api/v1", None), ENV_OR,
         flags("https://openrouter.ai.evil.example/api/v1")),
    Case("a host in the user part", ("https://openrouter.ai@evil.example/api/v1", None), ENV_OR,
         flags("https://openrouter.ai@evil.example/api/v1")),
    Case("OpenRouter without TLS", ("http://openrouter.ai/api/v1", None), ENV_OR, flags("http://openrouter.ai/api/v1")),
    Case("flag OpenRouter, only OpenAI's key", None, ENV_OA, flags(OPENROUTER_URL)),
    Case("flag OpenAI, only OpenRouter's key", None, ENV_OR, flags(OPENAI_URL)),
    Case("flag OpenAI and its key", (OPENAI_URL, OPENAI_KEY), ENV_OA, flags(OPENAI_URL)),
    Case("flag key alone", (OPENROUTER_URL, FLAG_KEY), {}, flags(None, FLAG_KEY)),
    Case("flag key over the environment's", (OPENROUTER_URL, FLAG_KEY), ENV_OR, flags(None, FLAG_KEY)),
    Case("flag key, environment's address", (X, FLAG_KEY), {"OPENAI_BASE_URL": X}, flags(None, FLAG_KEY)),
    Case("flag address of this machine, no key", (X, None), {}, flags(X)),
    Case("config address, no key", (X, None), home=(f"base_url: {X}", "")),
    Case("config address, key in .env", (X, KEY_A), home=(f"base_url: {X}", f"OPENAI_API_KEY={KEY_A}")),
    Case("config address, key of the environment", (X, None), ENV_OA, home=(f"base_url: {X}", "")),
    Case("config address, both", (X, KEY_A), ENV_OA, home=(f"base_url: {X}", f"OPENAI_API_KEY={KEY_A}")),
    Case("config OpenRouter, only OpenAI's key", None, ENV_OA, home=(f"base_url: {OPENROUTER_URL}", "")),
    Case("config OpenRouter, OpenAI's key in .env", None, home=(f"base_url: {OPENROUTER_URL}", OA)),
    Case("config OpenRouter, its key in .env", (OPENROUTER_URL, OPENROUTER_KEY),
         home=(f"base_url: {OPENROUTER_URL}", OR)),
    Case("address in .env over config", (Y, KEY_A),
         home=(f"base_url: {X}", f"OPENAI_BASE_URL={Y}\nOPENAI_API_KEY={KEY_A}")),
    Case("environment's address over config", (Y, OPENAI_KEY), ENV_OA | {"OPENAI_BASE_URL": Y},
         home=(f"base_url: {X}", "")),
    Case("home's key does not follow the environment's address", (Y, None), {"OPENAI_BASE_URL": Y},
         home=(f"base_url: {X}", f"OPENAI_API_KEY={KEY_A}")),
    Case("environment's key over .env's for OpenRouter", (OPENROUTER_URL, OPENROUTER_KEY), ENV_OR,
         home=("", "OPENROUTER_API_KEY=sk-or-other")),
    Case("profile with address and key", (Y, KEY_B), home=(f"base_url: {X}", f"OPENAI_API_KEY={KEY_A}"),
         profile=(f"base_url: {Y}", f"OPENAI_API_KEY={KEY_B}")),
    Case("… and a key in the environment", (Y, KEY_B), ENV_OA, home=(f"base_url: {X}", f"OPENAI_API_KEY={KEY_A}"),
         profile=(f"base_url: {Y}", f"OPENAI_API_KEY={KEY_B}")),
    Case("profile with address, no key", (Y, None), home=(f"base_url: {X}", f"OPENAI_API_KEY={KEY_A}"),
         profile=(f"base_url: {Y}", "")),
    Case("profile with key, no address", (X, KEY_B), home=(f"base_url: {X}", f"OPENAI_API_KEY={KEY_A}"),
         profile=("", f"OPENAI_API_KEY={KEY_B}")),
    Case("profile with nothing", (X, KEY_A), home=(f"base_url: {X}", f"OPENAI_API_KEY={KEY_A}"), profile=("", "")),
    Case("profile's address in .env", (Y, KEY_B), home=(f"base_url: {X}", ""),
         profile=("", f"OPENAI_BASE_URL={Y}\nOPENAI_API_KEY={KEY_B}")),
    Case("profile with OpenRouter's key", (OPENROUTER_URL, OPENROUTER_KEY), profile=("", OR)),
    Case("profile back on OpenRouter", (OPENROUTER_URL, OPENROUTER_KEY), home=(f"base_url: {X}", OR),
         profile=(f"base_url: {OPENROUTER_URL}", "")),
    Case("empty variables are none", None, {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": " ", "OPENROUTER_API_KEY": ""}),
]  # fmt: skip


def lay_out(root: Path, case: Case) -> None:
    root.mkdir()
    (root / "config.yaml").write_text(case.home[0])
    (root / ".env").write_text(case.home[1])
    if case.profile is not None:
        folder = root / "profiles" / "p"
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text(case.profile[0])
        (folder / ".env").write_text(case.profile[1])


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.name)
def test_the_table(case: Case, tmp_path: Path) -> None:
    lay_out(tmp_path / "home", case)
    given_flags = case.flags if case.profile is None else Overrides(profile="p")
    resolved = resolve(given_flags, {"HERMES_HOME": str(tmp_path / "home")} | case.env)
    if case.out is None:
        with pytest.raises(NotConfigured) as caught:
            resolved.endpoint_for()
        for name in ("OPENROUTER_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "--base-url", "--model demo"):
            assert name in caught.value.line
        assert caught.value.exit_code == 2
    else:
        endpoint = resolved.endpoint_for()
        assert (endpoint.base_url, endpoint.api_key) == case.out
    assert resolved.endpoint_for("demo") == Endpoint("demo", model="demo", typed_model="demo")


urls = st.sampled_from(["", X, Y, OPENROUTER_URL, OPENAI_URL, "https://h/v1", "http://h/v1"])
keys = st.sampled_from(["", "key-1", "key-2", "key-3"])
places = st.builds(Place, st.just("place"), urls, urls, keys, keys)


@given(st.builds(EndpointSources, places, places, places, urls, st.just(""), st.just("m"), st.just(True)))
def test_no_key_ever_reaches_an_origin_that_its_place_does_not_name(sources: EndpointSources) -> None:
    try:
        endpoint = endpoint_for(sources)
    except NotConfigured:
        return
    if endpoint.api_key is None:
        return
    origin = origin_of(endpoint.base_url)
    allowed = False
    for place in sources.places:
        if place.openrouter_key == endpoint.api_key:
            allowed |= origin == origin_of(OPENROUTER_URL)
        if place.openai_key == endpoint.api_key:
            if place is sources.environment:
                named = [place.env_url or OPENAI_URL]
            elif place is sources.profile:
                named = [place.env_url, place.config_url, sources.home.env_url, sources.home.config_url, OPENAI_URL]
            else:
                named = [place.env_url, place.config_url, OPENAI_URL]
            allowed |= origin in {origin_of(url) for url in named if url}
    assert allowed


def test_a_key_kept_back_is_explained(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(f"base_url: {X}")
    endpoint = resolve(env={"HERMES_HOME": str(tmp_path), **ENV_OA}).endpoint_for()
    assert endpoint.api_key is None
    assert "api.openai.com" in endpoint.note
    assert "--api-key" in endpoint.note
    assert OPENAI_KEY not in repr(endpoint) + endpoint.note


def test_keys_never_show_in_a_repr() -> None:
    env = {"HERMES_HOME": "/nowhere", **ENV_OR, **ENV_OA}
    resolved = resolve(flags(X, FLAG_KEY), env)
    for key in (OPENROUTER_KEY, OPENAI_KEY, FLAG_KEY):
        assert key not in repr(resolved)
        assert key not in repr(resolved.endpoint_for())
        assert key in resolved.secrets


@pytest.mark.parametrize(
    ("typed", "wire"),
    [
        ("anthropic/claude-sonnet-4.6", "anthropic/claude-sonnet-4.6"),
        ("claude-sonnet-4.6", "anthropic/claude-sonnet-4.6"),
        ("anthropic/claude-sonnet-4-6", "anthropic/claude-sonnet-4.6"),
        ("claude-sonnet-4-6", "anthropic/claude-sonnet-4.6"),
        ("claude-opus-4-1:thinking", "anthropic/claude-opus-4.1:thinking"),
        ("claude-3-5-sonnet", "anthropic/claude-3.5-sonnet"),
        ("claude-sonnet-4-20250514", "anthropic/claude-sonnet-4-20250514"),
        ("claude-sonnet-4", "anthropic/claude-sonnet-4"),
        ("gpt-5.1", "openai/gpt-5.1"),
        ("o3-mini", "openai/o3-mini"),
        ("gemini-3-pro", "google/gemini-3-pro"),
        ("deepseek-r1", "deepseek/deepseek-r1"),
        ("meta-llama/llama-4-8b", "meta-llama/llama-4-8b"),
        ("some-model-4-6", "some-model-4-6"),
        ("openrouter/auto", "openrouter/auto"),
    ],
)
def test_model_names_are_translated_for_openrouter_only(typed: str, wire: str) -> None:
    assert openrouter_name(typed) == wire
    at_openrouter = resolve(Overrides(model=typed), {"HERMES_HOME": "/nowhere", **ENV_OR}).endpoint_for()
    assert (at_openrouter.model, at_openrouter.typed_model) == (wire, typed)
    elsewhere = resolve(Overrides(model=typed, base_url=X), {"HERMES_HOME": "/nowhere", **ENV_OR}).endpoint_for()
    assert (elsewhere.model, elsewhere.typed_model) == (typed, typed)


def test_the_default_model_is_not_asked_of_openais_own_server() -> None:
    resolved = resolve(env={"HERMES_HOME": "/nowhere", **ENV_OA})
    with pytest.raises(NotConfigured, match="does not have the default model"):
        resolved.endpoint_for()
    assert resolved.endpoint_for("gpt-5.1").base_url == OPENAI_URL


def test_the_local_model_says_how_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes_engine.settings.endpoints.installed", lambda: None)
    with pytest.raises(NotConfigured, match="not installed") as caught:
        resolve(Overrides(model="local"), {"HERMES_HOME": "/nowhere"}).endpoint_for()
    assert "hermes local install" in caught.value.hint


def test_the_local_model_needs_no_key_and_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes_engine.settings.endpoints.installed", lambda: LocalModel(Path("m.gguf"), {}))
    endpoint = resolve(Overrides(model="local"), {"HERMES_HOME": "/nowhere", **ENV_OR}).endpoint_for()
    assert (endpoint.kind, endpoint.base_url, endpoint.api_key, endpoint.model) == ("local", "", None, "local")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x",
        "ftp://h/v1",
        "http://",
        "http:///v1",
        "http://h:99999/v1",
        "http://h/a b",
        "[::1",
        "http://h/v1?x=1",
        "http://h/v1#x",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="is not a server's address"):
        checked_url(url)


@pytest.mark.parametrize(
    ("url", "tidy"),
    [
        (" http://h/v1/ ", "http://h/v1"),
        ("https://h:8000/v1/chat/completions", "https://h:8000/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
    ],
)
def test_addresses_are_tidied(url: str, tidy: str) -> None:
    assert checked_url(url) == tidy


def test_a_key_with_a_line_end_in_it_is_refused_without_being_shown() -> None:
    resolved = resolve(flags(X, "sk-part-one\nsk-part-two"), {"HERMES_HOME": "/nowhere"})
    with pytest.raises(ConfigError) as caught:
        resolved.endpoint_for()
    assert "sk-part" not in caught.value.line


def test_a_malformed_address_of_the_environment_is_reported_when_it_matters() -> None:
    resolved = resolve(env={"HERMES_HOME": "/nowhere", "OPENAI_BASE_URL": "nonsense"})
    assert resolved.endpoint_for("demo").kind == "demo"
    with pytest.raises(ConfigError, match="nonsense"):
        resolved.endpoint_for()
