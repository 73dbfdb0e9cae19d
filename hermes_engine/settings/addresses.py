"""Addresses of servers: tidied, checked, and reduced to the origin a key belongs to."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit, urlunsplit

from hermes_engine.errors import ConfigError

OPENROUTER_URL = "https://openrouter.ai/api/v1"
OPENAI_URL = "https://api.openai.com/v1"

Origin = tuple[str, str, int]
"""Scheme, host and port."""


def checked_url(url: str) -> str:
    """The address tidied: no slash and no `/chat/completions` at its end.

    Raises:
        ConfigError: not an http or https address with a host.
    """
    text = url.strip()
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or re.search(r"[\s?#]", text):
        raise ConfigError(f"{text!r} is not a server's address", hint="it looks like http://127.0.0.1:8000/v1")
    return text.rstrip("/").removesuffix("/chat/completions").rstrip("/")


def origin_of(url: str) -> Origin:
    """Scheme, host and port of a checked address: what a key belongs to."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").rstrip("."), parts.port or (443 if parts.scheme == "https" else 80)


def parted(url: str) -> tuple[str, str]:
    """A checked address without the name and password in it, and these as `name:password`, or ""."""
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=host)), unquote(user)


def shown(url: str) -> str:
    """The address as it may be shown: without the name and password in it."""
    scheme, mark, rest = url.partition("://")
    user, at, _ = rest.partition("/")[0].rpartition("@")
    return f"{scheme}{mark}…@{rest[len(user) + 1 :]}" if at else url


def password_of(url: str) -> str:
    """The password written into an address, or ""."""
    try:
        return urlsplit(url).password or ""
    except ValueError:
        return ""
