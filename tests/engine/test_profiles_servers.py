"""What a profile decides, seen from the servers: which one is asked, with which model and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_engine.clients import make_client
from hermes_engine.messages import user
from hermes_engine.profiles import Resolved, resolve
from hermes_engine.protocols import ModelRequest
from hermes_engine.settings import Overrides
from tests.conftest import Serve
from tests.server.scripted import Seen, say


async def ask(resolved: Resolved) -> str:
    endpoint = resolved.endpoint_for()
    client = make_client(endpoint, resolved.settings.provider)
    try:
        return (await client.complete(ModelRequest(endpoint.model, [user("hi")]))).text
    finally:
        await client.close()


def seen(request: Seen) -> tuple[str, str]:
    headers = {name.lower(): value for name, value in request.headers.items()}
    return request.body["model"], headers.get("authorization", "")


def profile(home: Path, name: str, config: str, keys: str = "") -> None:
    folder = home / "profiles" / name
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(config)
    (folder / ".env").write_text(keys)


async def test_f6_5_only_the_profiles_own_server_sees_its_model_and_key(serve: Serve, isolated_home: Path) -> None:
    default, own = serve([say("default")]), serve([say("own")])
    isolated_home.mkdir()
    (isolated_home / "config.yaml").write_text(f"model: m1\nbase_url: {default.base_url}\n")
    (isolated_home / ".env").write_text("OPENAI_API_KEY=key-of-home\n")
    profile(isolated_home, "p", f"model: m2\nbase_url: {own.base_url}\n", "OPENAI_API_KEY=key-of-profile\n")
    assert await ask(resolve(Overrides(profile="p"))) == "own"
    assert [seen(request) for request in own.requests] == [("m2", "Bearer key-of-profile")]
    assert default.requests == []
    assert await ask(resolve()) == "default"
    assert [seen(request) for request in default.requests] == [("m1", "Bearer key-of-home")]


async def test_f6_4_a_run_of_one_profile_after_another_carries_no_key_over(serve: Serve, isolated_home: Path) -> None:
    server = serve([say("ok")])
    profile(isolated_home, "a", f"base_url: {server.base_url}\nmodel: m\n", "OPENAI_API_KEY=key-of-a\n")
    profile(isolated_home, "b", f"base_url: {server.base_url}\nmodel: m\n")
    first = resolve(Overrides(profile="a"))
    await ask(first)
    await ask(first.with_profile("b"))
    await ask(resolve(Overrides(profile="b")))
    authorizations = [seen(request)[1] for request in server.requests]
    assert authorizations[0] == "Bearer key-of-a"
    assert all("key-of-a" not in value for value in authorizations[1:])


async def test_f12_12_a_projects_address_never_sees_the_key(
    serve: Serve, isolated_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = serve([say("mine")]), serve([say("theirs")])
    (tmp_path / ".env").write_text(f"OPENAI_BASE_URL={theirs.base_url}\nOPENAI_API_KEY=theirs\n")
    (tmp_path / "config.yaml").write_text(f"base_url: {theirs.base_url}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", mine.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-mine")
    assert await ask(resolve(Overrides(model="m"))) == "mine"
    assert [seen(request) for request in mine.requests] == [("m", "Bearer key-of-mine")]
    assert theirs.requests == []
    assert await ask(resolve(Overrides(model="m", base_url=theirs.base_url))) == "theirs"
    assert "key-of-mine" not in seen(theirs.requests[0])[1]
