"""First run: what is found, what is tried, what is kept, and nothing sent before a choice."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hermes_engine.paths import Home
from hermes_engine.profiles import Resolved, resolve
from hermes_engine.settings import Overrides
from hermes_engine.settings.local_model import LocalModel
from hermes_tui.screens.overlays import first_run, setup
from tests.conftest import Serve
from tests.server.scripted import ScriptedServer, plain_json, say, status
from tests.tui.live import Live, live, settings


def nothing(env: Mapping[str, str] | None = None) -> Callable[[], Resolved]:
    """Settings of a fresh home."""
    return lambda: resolve(Overrides(), env)


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server of this machine is found unless the test starts one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setattr(setup, "SERVERS", (("Ollama", port),))
    monkeypatch.setattr(setup.find_servers, "__defaults__", ((("Ollama", port),),))


def machine_with(monkeypatch: pytest.MonkeyPatch, server: ScriptedServer) -> None:
    monkeypatch.setattr(setup.find_servers, "__defaults__", ((("Ollama", server.port),),))


async def card(app: Live) -> None:
    await app.shows("No model is set up yet")


async def test_the_demo_model_is_two_keys_away(tmp_path: Path) -> None:
    async with live(nothing(), tmp_path) as app:
        await card(app)
        assert "Nothing is sent anywhere until you choose." in app.screen
        await app.pilot.press("down", "enter")
        await app.ready()
        await app.shows("what is in this folder?")
        assert app.desk.model == "demo"
        assert "model: demo" in Home.from_env().config.read_text()


async def test_ctrl_c_closes_the_card_and_again_leaves(tmp_path: Path) -> None:
    async with live(nothing(), tmp_path) as app:
        await card(app)
        await app.pilot.press("ctrl+c")
        await app.shows("Ctrl+C again to quit")
        await app.shows("No model is set up. Send something to choose one")
        assert "No model is set up yet" not in app.screen
        await app.pilot.press("ctrl+c")
        await app.until(lambda: app.app.return_code == 0)


async def test_ctrl_d_leaves_from_the_card(tmp_path: Path) -> None:
    async with live(nothing(), tmp_path) as app:
        await card(app)
        await app.pilot.press("ctrl+d")
        await app.until(lambda: app.app.return_code == 0)


async def test_the_local_model_is_offered_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_run, "installed", lambda: LocalModel(tmp_path / "m.gguf", {}))
    async with live(nothing(), tmp_path) as app:
        await card(app)
        assert "small but real" in app.screen
        await app.pilot.press("3")
        await app.ready()
        assert "model: local" in Home.from_env().config.read_text()


async def test_the_local_model_is_not_offered_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_run, "installed", lambda: None)
    async with live(nothing(), tmp_path) as app:
        await card(app)
        assert "Local model" not in app.screen


async def test_a_server_on_this_machine_is_found_and_kept(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve([say("ok"), say("a real answer")], models={"qwen3:8b": {}})
    machine_with(monkeypatch, server)
    async with live(nothing(), tmp_path) as app:
        await card(app)
        await app.shows("Ollama on this machine")
        assert "qwen3:8b" in app.screen
        assert server.requests == []
        await app.pilot.press("1")
        await app.ready()
        assert len(server.requests) == 1
        await app.say("hello")
        await app.shows("a real answer")
    assert server.requests[1].body["model"] == "qwen3:8b"
    kept = resolve(Overrides()).endpoint_for()
    assert (kept.base_url, kept.model) == (server.base_url, "qwen3:8b")


async def test_of_several_models_one_is_asked_for(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve([say("ok")], models={"small": {}, "large": {}, "huge": {}})
    machine_with(monkeypatch, server)
    async with live(nothing(), tmp_path) as app:
        await card(app)
        await app.shows("and 2 more")
        await app.pilot.press("1")
        await app.shows("Which model?")
        await app.pilot.press(*"lar", "enter")
        await app.ready()
    assert server.requests[0].body["model"] == "large"


def openai_at(monkeypatch: pytest.MonkeyPatch, server: ScriptedServer) -> None:
    """The server stands where OpenAI's own is."""
    monkeypatch.setattr(setup, "keys_in", lambda env: [setup.Place("openai", "OpenAI", server.base_url)])


async def test_a_key_of_the_environment_is_asked_for_its_models(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve([say("ok"), say("it works")], models={"small": {}, "large": {}})
    openai_at(monkeypatch, server)
    async with live(nothing({"OPENAI_API_KEY": "sk-env-42"}), tmp_path) as app:
        await card(app)
        await app.pilot.press("1")
        await app.shows("Which model?")
        await app.pilot.press(*"lar", "enter")
        await app.ready()
        await app.say("hello")
        await app.shows("it works")
    assert server.others[0].headers["authorization"] == "Bearer sk-env-42"
    assert [seen.body["model"] for seen in server.requests] == ["large", "large"]
    assert not Home.from_env().dotenv.exists()


async def test_a_refused_key_of_the_environment_is_said_in_the_card(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve([say("never")], others={"/v1/models": status(401)})
    openai_at(monkeypatch, server)
    async with live(nothing({"OPENAI_API_KEY": "sk-old"}), tmp_path) as app:
        await card(app)
        await app.pilot.press("1")
        await app.shows("✗ 401: the key was refused")
        assert "No model is set up yet" in app.screen
    assert not server.requests


async def test_a_refused_key_is_said_plainly_and_nothing_is_kept(serve: Serve, tmp_path: Path) -> None:
    server = serve([status(401, {"error": {"message": "no such key"}})])
    async with live(nothing(), tmp_path) as app:
        await card(app)
        await app.pilot.press("1")
        await app.shows("Another OpenAI-style server")
        await app.pilot.press(*server.base_url, "enter", *"sk-wrong-key-123", "enter", *"scripted", "enter")
        await app.shows("401", 20)
        assert "sk-wrong" not in app.screen
        assert not Home.from_env().config.exists()
        assert not Home.from_env().dotenv.exists()
        await app.pilot.press("escape")
        await app.shows("No model is set up yet")
        await app.shows("Nothing is sent anywhere until you choose")
        await app.pilot.press("escape")
        await app.shows("Send something to choose one")


async def test_a_refused_key_is_mended_without_the_rest_typed_again(serve: Serve, tmp_path: Path) -> None:
    server = serve([status(401, {"error": {"message": "no such key"}}), say("ok")])
    async with live(nothing(), tmp_path) as app:
        await card(app)
        await app.pilot.press("1")
        await app.shows("Another OpenAI-style server")
        await app.pilot.press(*server.base_url, "enter", *"sk-wrong", "enter", "enter")
        await app.shows("401", 20)
        assert server.base_url in app.screen
        await app.pilot.press("enter", "ctrl+a", "ctrl+k", *"sk-right", "enter", "enter")
        await app.ready()
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer sk-wrong", "Bearer sk-right"]
    assert 'OPENAI_API_KEY="sk-right"' in Home.from_env().dotenv.read_text()


async def test_another_address_and_its_key_are_kept_privately(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("ok"), say("it works")])
    async with live(nothing(), tmp_path) as app:
        await card(app)
        await app.pilot.press("1")
        await app.shows("Key, empty for none")
        await app.pilot.press(*server.base_url, "enter", *"sk-secret-42", "enter", "enter")
        await app.ready()
        await app.say("hello")
        await app.shows("it works")
    assert server.requests[0].headers["authorization"] == "Bearer sk-secret-42"
    assert server.requests[1].headers["authorization"] == "Bearer sk-secret-42"
    home = Home.from_env()
    assert home.dotenv.stat().st_mode & 0o777 == 0o600
    assert 'OPENAI_API_KEY="sk-secret-42"' in home.dotenv.read_text()
    assert "sk-secret" not in home.config.read_text()


async def test_an_address_is_mended_where_it_can_be_and_kept_in_the_form_where_not(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve([say("ok")])
    short = server.base_url.removeprefix("http://").removesuffix("/v1")
    async with live(nothing(), tmp_path) as app:
        await card(app)
        await app.pilot.press("1")
        await app.shows("Key, empty for none")
        await app.pilot.press(*"127.0.0.1:9/nosuch", "enter", "enter", "enter")
        await app.shows("http://127.0.0.1:9/nosuch: nothing listens there", 20)
        assert "Key, empty for none" in app.screen
        await app.pilot.press("ctrl+a", "ctrl+k", *short, "enter", "enter", "enter")
        await app.ready()
    assert f"base_url: {server.base_url}" in Home.from_env().config.read_text()


async def test_another_server_can_be_chosen_later_and_the_chat_goes_on_there(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("ok"), say("from the server")])
    async with live(settings(), tmp_path) as app:
        await app.ready()
        await app.say("first words")
        await app.shows("demo model: scripted")
        await app.idle()
        session = app.desk.session
        await app.say("/model")
        await app.shows("another server…")
        await app.pilot.press(*"another", "enter")
        await app.shows("Key, empty for none")
        await app.pilot.press(*server.base_url, "enter", *"sk-secret-42", "enter", "enter")
        await app.shows(f"Model scripted at {server.base_url} from now on")
        assert app.desk.session == session
        assert [block.copy_text() for block in app.chat.transcript.blocks][:1] == ["first words"]
        await app.say("second words")
        await app.shows("from the server")
    said = [item["content"] for item in server.requests[1].body["messages"] if item["role"] == "user"]
    assert said == ["first words", "second words"]
    assert server.requests[1].headers["authorization"] == "Bearer sk-secret-42"
    assert f"base_url: {server.base_url}" in Home.from_env().config.read_text()


async def test_another_server_that_refuses_changes_nothing(serve: Serve, tmp_path: Path) -> None:
    server = serve([status(401, {"error": {"message": "no such key"}})])
    async with live(settings(), tmp_path) as app:
        await app.ready()
        await app.say("/model")
        await app.shows("another server…")
        await app.pilot.press(*"another", "enter")
        await app.shows("Key, empty for none")
        await app.pilot.press(*server.base_url, "enter", "enter", *"scripted", "enter")
        await app.shows("HTTP 401", 20)
        assert server.base_url in app.screen
        await app.pilot.press("escape")
        await app.until(lambda: "HTTP 401" not in app.screen)
        assert app.desk.model == "demo"
        assert not Home.from_env().config.exists()


async def test_a_message_without_a_model_asks_for_one_and_stays(tmp_path: Path) -> None:
    async with live(nothing(), tmp_path) as app:
        await card(app)
        await app.pilot.press("escape")
        await app.shows("Send something to choose one")
        await app.say("my first words")
        await card(app)
        await app.pilot.press("2")
        await app.ready()
        assert app.chat.prompt.text == "my first words"
        await app.pilot.press("enter")
        await app.shows("demo model: scripted")


def test_keys_in_the_environment_are_found() -> None:
    found = setup.keys_in({"OPENAI_API_KEY": "x", "OPENROUTER_API_KEY": "y", "OPENAI_BASE_URL": "http://h/v1"})
    assert [(place.id, place.base_url) for place in found] == [
        ("openrouter", "https://openrouter.ai/api/v1"),
        ("openai", "http://h/v1"),
    ]
    assert setup.keys_in({}) == []


async def test_servers_that_are_none_are_told_apart(serve: Serve) -> None:
    server = serve(
        [say("x")], others={"/v1/models": status(500, {"error": "x"}), "/plain/models": plain_json({"data": "no"})}
    )
    root = server.base_url.removesuffix("/v1")
    for address, words in (
        (f"{root}/v1", "answers 500"),
        (f"{root}/plain", "no OpenAI-style server"),
        ("ftp://x", "begins with http"),
        ("http://127.0.0.1:1/v1", "127.0.0.1"),
    ):
        models, fault = await setup.list_models(address, "")
        assert models == []
        assert words in fault


def test_a_key_is_put_beside_others(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\nexport OPENAI_API_KEY=old\n# note\n")
    setup.keep_key(tmp_path, "OPENAI_API_KEY", 'new"key')
    assert (tmp_path / ".env").read_text() == 'A=1\n# note\nOPENAI_API_KEY="new\\"key"\n'
