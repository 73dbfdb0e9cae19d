"""Decides which server a model is asked at, and which key goes there. Reads neither files nor variables; for the
model `local` it looks whether its packages are installed.

The address, strongest first: `--base-url`; `OPENAI_BASE_URL` of the environment; the profile's `.env`, then its
`config.yaml`; the home's `.env`, then its `config.yaml`. Named nowhere, it is OpenRouter's when an
`OPENROUTER_API_KEY` is there, else OpenAI's own when an `OPENAI_API_KEY` for it is there, else OpenRouter's when
`--api-key` is given.

A key belongs to one origin (scheme, host and port) and is sent nowhere else:

| key                                      | belongs to                                                       |
|------------------------------------------|------------------------------------------------------------------|
| `--api-key`                              | the address of this call, whichever it is                        |
| `OPENROUTER_API_KEY`, anywhere           | https://openrouter.ai                                            |
| `OPENAI_API_KEY` of the environment      | `OPENAI_BASE_URL` of the environment, else https://api.openai.com |
| `OPENAI_API_KEY` of a profile's `.env`   | `OPENAI_BASE_URL` there; else `base_url` of the profile; else the |
|                                          | address of the home's files; else https://api.openai.com         |
| `OPENAI_API_KEY` of the home's `.env`    | `OPENAI_BASE_URL` there; else `base_url` of the home's            |
|                                          | `config.yaml`; else https://api.openai.com                       |

A `base_url` of OpenRouter in a config file takes no `OPENAI_API_KEY`. Of several keys for one origin the
environment's wins, then the profile's. So it comes out:

| given                                                        | address        | key                         |
|--------------------------------------------------------------|----------------|-----------------------------|
| nothing                                                      | NotConfigured  |                             |
| OPENROUTER_API_KEY (with or without OPENAI_API_KEY)          | OpenRouter     | OPENROUTER_API_KEY          |
| only OPENAI_API_KEY                                          | OpenAI         | OPENAI_API_KEY              |
| OPENAI_BASE_URL=X, OPENAI_API_KEY (with or without the other) | X             | OPENAI_API_KEY              |
| OPENAI_BASE_URL=X, only OPENROUTER_API_KEY                   | X              | none                        |
| OPENAI_BASE_URL=OpenRouter, only OPENAI_API_KEY              | OpenRouter     | OPENAI_API_KEY              |
| --base-url X --api-key K                                     | X              | K                           |
| --base-url X, OPENAI_BASE_URL=X, OPENAI_API_KEY              | X              | OPENAI_API_KEY              |
| --base-url X, any keys of other origins                      | X              | none                        |
| --base-url OpenRouter, only OPENAI_API_KEY                   | NotConfigured  |                             |
| --api-key K and nothing else                                 | OpenRouter     | K                           |
| --api-key K, any address                                     | that address   | K                           |
| config.yaml base_url X, no key                               | X              | none                        |
| config.yaml base_url X, OPENAI_API_KEY in the home's .env    | X              | that one                    |
| config.yaml base_url X, OPENAI_API_KEY in the environment    | X              | none (it is OpenAI's own)   |
| config.yaml base_url OpenRouter, only OPENAI_API_KEY         | NotConfigured  |                             |
| profile: base_url Y and key B; home: base_url X and key A    | Y              | B                           |
| profile: base_url Y, no key; home: key A                     | Y              | none                        |
| profile: key B, no base_url; home: base_url X and key A      | X              | B                           |

An address with no key is used without one (a server on this machine or in the house needs none), but for
OpenRouter and OpenAI, which always want one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from hermes_engine.errors import ConfigError, NotConfigured
from hermes_engine.settings.addresses import OPENAI_URL, OPENROUTER_URL, Origin, checked_url, origin_of
from hermes_engine.settings.local_model import installed
from hermes_engine.settings.values import DEFAULT_MODEL

_OPENROUTER = origin_of(OPENROUTER_URL)
_OPENAI = origin_of(OPENAI_URL)
DEMO = "demo"
LOCAL = "local"
SET_UP_HINT = (
    "set OPENROUTER_API_KEY, or OPENAI_API_KEY, or name a server by OPENAI_BASE_URL or --base-url; "
    "--model demo needs none of them, nor does --model local (hermes local install)"
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and as what a model is asked.

    Attributes:
        kind: "openai" for any compatible server, "demo" for the embedded model, "local" for the small real one.
        base_url: address without a slash at its end; "" for demo and local.
        api_key: the key for this address alone; None when it has none.
        model: name as the endpoint wants it.
        typed_model: name as the person typed it.
        note: why a key that exists is not sent here, or ""; worth showing when the server refuses.
    """

    kind: Literal["openai", "demo", "local"]
    base_url: str = ""
    api_key: str | None = field(default=None, repr=False)
    model: str = ""
    typed_model: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """One place that can name an address and hold keys: the environment, a profile or the home.

    Attributes:
        name: of the place, for messages.
        env_url: its `OPENAI_BASE_URL`, or "".
        config_url: `base_url` of its `config.yaml`, or "" when not given there.
        openai_key, openrouter_key: its keys, or "".
    """

    name: str
    env_url: str = ""
    config_url: str = ""
    openai_key: str = field(default="", repr=False)
    openrouter_key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class EndpointSources:
    """Everything that decides about endpoints.

    Attributes:
        environment, profile, home: the places, strongest first.
        flag_url, flag_key: `--base-url` and `--api-key`, or "".
        model: the model in effect.
        model_named: whether a person named it (flag or file), or it is the default.
    """

    environment: Place = field(default_factory=lambda: Place("the environment"))
    profile: Place = field(default_factory=lambda: Place("the profile"))
    home: Place = field(default_factory=lambda: Place("the home"))
    flag_url: str = ""
    flag_key: str = field(default="", repr=False)
    model: str = DEFAULT_MODEL
    model_named: bool = False

    @property
    def places(self) -> tuple[Place, Place, Place]:
        """The three places, strongest first."""
        return self.environment, self.profile, self.home

    def named_urls(self) -> Iterator[str]:
        """Addresses that someone named, strongest first."""
        yield self.flag_url
        for place in self.places:
            yield place.env_url
            yield place.config_url


def endpoint_for(sources: EndpointSources, model: str | None = None) -> Endpoint:
    """The endpoint of a model (None: the one in effect).

    Raises:
        NotConfigured: no server, or one that wants a key and has none; `local`, and it is not installed.
        ConfigError: an address that is none.
    """
    typed = (model or sources.model).strip()
    if typed == DEMO:
        return Endpoint("demo", model=DEMO, typed_model=DEMO)
    if typed == LOCAL:
        if installed() is None:
            raise NotConfigured("the model `local` is not installed", hint="`hermes local install` fetches it (200 MB)")
        return Endpoint("local", model=LOCAL, typed_model=LOCAL)
    keys = tuple(_keys(sources))
    url = next((checked_url(url) for url in sources.named_urls() if url), "") or _unnamed_url(sources, keys)
    origin = origin_of(url)
    key = sources.flag_key or next((key for key, belongs in keys if belongs == origin), "")
    if not key and origin in (_OPENROUTER, _OPENAI):
        variable = "OPENROUTER_API_KEY" if origin == _OPENROUTER else "OPENAI_API_KEY"
        raise NotConfigured(f"{origin[1]} wants a key and {variable} is not set", hint=SET_UP_HINT)
    if origin == _OPENAI and not model and not sources.model_named:
        raise NotConfigured(
            f"OpenAI's own server does not have the default model {DEFAULT_MODEL}",
            hint="name one: --model, or `hermes config set model NAME`",
        )
    wire = openrouter_name(typed) if origin == _OPENROUTER else typed
    note = "" if key else _held_back(origin, keys)
    return Endpoint("openai", url, _checked_key(key) if key else None, wire, typed, note)


def _unnamed_url(sources: EndpointSources, keys: Sequence[tuple[str, Origin]]) -> str:
    if any(place.openrouter_key for place in sources.places):
        return OPENROUTER_URL
    if any(origin == _OPENAI for _, origin in keys):
        return OPENAI_URL
    if sources.flag_key:
        return OPENROUTER_URL
    raise NotConfigured("no model is set up: there is no key and no server", hint=SET_UP_HINT)


def _keys(sources: EndpointSources) -> Iterator[tuple[str, Origin]]:
    """Every known key with the origin it belongs to, strongest place first; see the table above."""
    for place in sources.places:
        if place.openrouter_key:
            yield place.openrouter_key, _OPENROUTER
    environment, profile, home = sources.places
    if environment.openai_key:
        yield environment.openai_key, origin_of(checked_url(environment.env_url or OPENAI_URL))
    home_url = home.env_url or _not_openrouter(home.config_url)
    if profile.openai_key:
        url = profile.env_url or _not_openrouter(profile.config_url) or home_url or OPENAI_URL
        yield profile.openai_key, origin_of(checked_url(url))
    if home.openai_key:
        yield home.openai_key, origin_of(checked_url(home_url or OPENAI_URL))


def _not_openrouter(url: str) -> str:
    return "" if url and origin_of(checked_url(url)) == _OPENROUTER else url


def _held_back(origin: Origin, keys: Sequence[tuple[str, Origin]]) -> str:
    others = sorted({other[1] for _, other in keys if other != origin})
    if not others:
        return ""
    return f"no key was sent: the keys there are belong to {', '.join(others)}; --api-key names one for {origin[1]}"


def _checked_key(key: str) -> str:
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError("the API key holds characters that no key has", hint="copy it again, without line ends")
    return key


_VENDORS = (
    (re.compile(r"claude"), "anthropic"),
    (re.compile(r"gpt-|chatgpt-|o\d"), "openai"),
    (re.compile(r"gemini|gemma"), "google"),
    (re.compile(r"deepseek"), "deepseek"),
    (re.compile(r"grok"), "x-ai"),
    (re.compile(r"mistral|mixtral|codestral|devstral|ministral"), "mistralai"),
    (re.compile(r"qwen|qwq"), "qwen"),
    (re.compile(r"kimi"), "moonshotai"),
    (re.compile(r"glm"), "z-ai"),
    (re.compile(r"llama"), "meta-llama"),
    (re.compile(r"hermes"), "nousresearch"),
)


def openrouter_name(typed: str) -> str:
    """The name OpenRouter has for a model: vendor put before a short one, `4-6` of a Claude made `4.6`."""
    vendor, slash, name = typed.rpartition("/")
    if not slash:
        vendor = next((vendor for pattern, vendor in _VENDORS if pattern.match(name)), "")
    if vendor == "anthropic":
        name = re.sub(r"(?<=-)(\d{1,2})-(\d{1,2})(?!\d)", r"\1.\2", name)
    return f"{vendor}/{name}" if vendor else name


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the command line says; None (or "") where it says nothing.

    Attributes:
        profile: `-p`.
        model: `-m`.
        base_url: `--base-url`.
        api_key: `--api-key`.
        toolsets: `-t`, names unchecked; () means no tools.
        max_turns: `--max-turns`.
        reasoning_effort: `--reasoning-effort`.
        mode: `--mode`.
        max_cost_usd: `--max-cost-usd`.
    """

    profile: str | None = None
    model: str | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    toolsets: tuple[str, ...] | None = None
    max_turns: int | None = None
    reasoning_effort: str | None = None
    mode: str | None = None
    max_cost_usd: float | None = None
