"""Finds models a person could use and keeps the one that was chosen. Knows no widget.

Looking is quick and stays on this machine: names of variables, and four well-known ports of the loopback.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hermes_engine.errors import HermesError
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_engine.profiles import Resolved

PROBE_SECONDS = 0.3
ASK_SECONDS = 5.0
SERVERS = (("Ollama", 11434), ("llama.cpp", 8080), ("vLLM", 8000), ("LM Studio", 1234))
MAX_ANSWER = 2_000_000


@dataclass(frozen=True, slots=True)
class Place:
    """A server that can be asked.

    Attributes:
        model: chosen, or "".
        key: typed by the person, "" for none or for one that is in the environment.
        models: what it lists.
        told: a word on it for the card.
    """

    id: str
    name: str
    base_url: str
    model: str = ""
    key: str = field(default="", repr=False)
    models: tuple[str, ...] = ()
    told: str = ""

    def with_model(self, model: str) -> Place:
        """The same place, this model chosen."""
        return dataclasses.replace(self, model=model, models=(model,))

    def with_models(self, models: Sequence[str]) -> Place:
        """The same place with what it lists; a single one is chosen."""
        return dataclasses.replace(self, models=tuple(models), model=models[0] if len(models) == 1 else "")


def keys_in(env: Mapping[str, str]) -> list[Place]:
    """Places whose key is in the environment."""
    found: list[Place] = []
    if env.get("OPENROUTER_API_KEY"):
        found.append(
            Place("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", told=_("OPENROUTER_API_KEY is set"))
        )
    if env.get("OPENAI_API_KEY"):
        address = env.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
        found.append(Place("openai", "OpenAI", address, told=_("OPENAI_API_KEY is set")))
    return found


def key_for(place: Place, env: Mapping[str, str]) -> str:
    """The key in the environment for a place whose models have to be asked for, else "": only OpenRouter has the
    default one.
    """
    return env.get("OPENAI_API_KEY", "") if place.id == "openai" else ""


async def find_servers(ports: Sequence[tuple[str, int]] = SERVERS) -> list[Place]:
    """Servers on this machine that list models; each is given 300 ms."""

    async def look(name: str, port: int) -> Place | None:
        address = f"http://127.0.0.1:{port}/v1"
        models, fault = await list_models(address, "", seconds=PROBE_SECONDS)
        if fault or not models:
            return None
        more = _(" and {count} more").format(count=len(models) - 1) if len(models) > 1 else ""
        label = _("{name} on this machine").format(name=name)
        return Place(f"port{port}", label, address, told=models[0] + more).with_models(models)

    found = await asyncio.gather(*(look(name, port) for name, port in ports))
    return [place for place in found if place is not None]


async def list_models(base_url: str, key: str, *, seconds: float = ASK_SECONDS) -> tuple[list[str], str]:
    """What a server lists, or a plain reason why not."""
    try:
        async with asyncio.timeout(seconds):
            status, body = await _get(base_url.rstrip("/") + "/models", key)
    except (OSError, ValueError) as error:
        return [], _("{address}: {reason}").format(address=base_url, reason=_why(error))
    if status in (401, 403):
        return [], _("{status}: the key was refused").format(status=status)
    if status != 200:
        return [], _("{address} answers {status}").format(address=base_url, status=status)
    try:
        listed = json.loads(body)["data"]
        return [str(item["id"]) for item in listed], ""
    except (ValueError, LookupError, TypeError):
        return [], _("{address} is no OpenAI-style server").format(address=base_url)


def _why(error: Exception) -> str:
    """Why a server could not be asked, in plain words."""
    match error:
        case TimeoutError():
            return _("it does not answer")
        case ConnectionRefusedError():
            return _("nothing listens there")
        case socket.gaierror():
            return _("no host of that name is known")
        case _:
            return str(error) or type(error).__name__


def spelled_out(address: str) -> str:
    """The address with a scheme: one without is on this machine or in the house, where TLS is rare."""
    return address if "://" in address else f"http://{address}"


async def found_at(place: Place) -> tuple[Place, list[str], str]:
    """The place with the address under which it lists models (`/v1` is often left out), the models, or a reason."""
    models, fault = await list_models(place.base_url, place.key)
    address = place.base_url.rstrip("/")
    if fault and not address.endswith("/v1"):
        longer = dataclasses.replace(place, base_url=f"{address}/v1", name=f"{address}/v1")
        models, second = await list_models(longer.base_url, place.key)
        if not second:
            return longer, models, ""
    return place, models, fault


async def _get(address: str, key: str) -> tuple[int, bytes]:
    """Status and body of one GET. A full HTTP client would cost a second to load here."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(_("an address begins with http:// or https://"))
    secure = ssl.create_default_context() if parts.scheme == "https" else None
    port = parts.port or (443 if secure else 80)
    reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=secure, limit=MAX_ANSWER)
    try:
        lines = [f"GET {parts.path or '/'} HTTP/1.1", f"Host: {parts.netloc}", "Accept: application/json"]
        lines += ["Connection: close", "Accept-Encoding: identity", *([f"Authorization: Bearer {key}"] if key else [])]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace"))
        await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        first = head.split(b" ", 2)
        if len(first) < 2 or not first[1].isdigit():
            raise ValueError(_("it does not speak HTTP"))
        return int(first[1]), await _body(reader, head.lower())
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise ValueError(_("it does not speak HTTP")) from error
    finally:
        writer.close()


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    """The body of an answer, by whichever of the three ways its end is told."""
    if b"transfer-encoding: chunked" in head:
        body = b""
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
            if len(body) > MAX_ANSWER:
                break
        return body
    length = head.partition(b"content-length:")[2].split(b"\r\n")[0].strip()
    if length.isdigit():
        return await reader.readexactly(min(int(length), MAX_ANSWER))
    body = b""
    while len(body) <= MAX_ANSWER and (chunk := await reader.read(65536)):
        body += chunk
    return body


def at_place(resolved: Resolved, place: Place) -> Resolved:
    """The settings with this address, key and model in effect. Blocks; raises HermesError."""
    from hermes_engine.profiles import resolve

    overrides = dataclasses.replace(
        resolved.overrides, base_url=place.base_url, api_key=place.key or None, model=place.model or None
    )
    return resolve(overrides, resolved.env)


async def try_place(resolved: Resolved, place: Place) -> str:
    """Asks the model for one word; "" when it answers, else a plain reason. For a thread with no loop of its own."""
    from hermes_engine.clients import make_client
    from hermes_engine.messages import user
    from hermes_engine.protocols import ModelRequest

    try:
        tried = at_place(resolved, place)
        endpoint = tried.endpoint_for()
        client = make_client(endpoint, tried.settings.provider)
        try:
            await client.complete(ModelRequest(endpoint.model, [user("Say ok.")], sampling={"max_tokens": 16}))
        finally:
            await client.close()
    except HermesError as error:
        return error.line
    return ""


def keep_model(resolved: Resolved, model: str) -> None:
    """Writes the model into the home's settings. Blocks."""
    from hermes_engine.settings_edit import set_value

    resolved.home.ensure()
    set_value(resolved.home.config, "model", model)


def keep_place(resolved: Resolved, place: Place) -> None:
    """Writes address, model and key where the next start finds them; the key into `.env`, 0600. Blocks."""
    from hermes_engine.settings_edit import set_value

    home = resolved.home.ensure()
    set_value(home.config, "base_url", place.base_url)
    if place.model:
        set_value(home.config, "model", place.model)
    if place.key:
        keep_key(home.dotenv.parent, "OPENAI_API_KEY", place.key)


def keep_key(folder: object, name: str, value: str) -> None:
    """Puts one variable into the folder's `.env`; other lines stay."""
    from pathlib import Path

    from hermes_engine.paths import write_atomic
    from hermes_engine.settings_edit import locked

    path = Path(str(folder)) / ".env"
    with locked(path):
        old = path.read_text("utf-8") if path.exists() else ""
        lines = [line for line in old.splitlines() if line.partition("=")[0].replace("export", "").strip() != name]
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        write_atomic(path, "\n".join([*lines, f'{name}="{quoted}"']) + "\n")
