"""Reads `.env` files of the home and of a profile into a mapping. Never touches the process environment.

Only `NAME=value` lines count, with `export` before, quotes and comments as shells write them; nothing is
expanded or run. A project's `.env` is never read: callers pass paths under the home.
"""

from __future__ import annotations

import re
from pathlib import Path

from hermes_engine.errors import ConfigError

_LINE = re.compile(r"\s*(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*=\s*(?P<value>.*)\Z")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "$": "$", "`": "`"}


def parse_dotenv(text: str) -> dict[str, str]:
    """The variables of a `.env` text; the last of equal names wins. Lines of another form are passed over."""
    values: dict[str, str] = {}
    for line in text.removeprefix("\ufeff").split("\n"):
        match = _LINE.match(line.rstrip("\r"))
        if match:
            values[match["name"]] = _value(match["value"].strip())
    return values


def _value(text: str) -> str:
    if text[:1] == "'":
        end = text.find("'", 1)
        return text[1:end] if end > 0 else text
    if text[:1] == '"':
        match = re.match(r'"((?:[^"\\]|\\.)*)"', text)
        if match:
            return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), match[1])
        return text
    return re.split(r"(?:^|\s)#", text, maxsplit=1)[0].rstrip()


def read_dotenv(path: Path) -> dict[str, str]:
    """The variables of a file; {} when there is none. Raises ConfigError when it cannot be read."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    return parse_dotenv(data.decode("utf-8", errors="replace"))
