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


def odd_lines(text: str) -> list[int]:
    """Numbers (from 1) of lines that are no `NAME=value`, no comment and not blank, or leave a quote open."""
    odd = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        match = _LINE.match(line.rstrip("\r"))
        value = match["value"].strip() if match else ""
        unclosed = value[:1] in ("'", '"') and _value(value) == value and value != "''"
        if unclosed or (match is None and line.strip() and not line.lstrip().startswith("#")):
            odd.append(number)
    return odd


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


def read_dotenv(path: Path, warnings: list[str] | None = None) -> dict[str, str]:
    """The variables of a file; {} when there is none. Raises ConfigError when it cannot be read.

    Args:
        path: the file.
        warnings: gets a line for each odd one; never what stands in it.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    text = data.decode("utf-8", errors="replace")
    if warnings is not None:
        warnings += [f"{path}:{number}: no NAME=value as a shell reads it" for number in odd_lines(text)]
    return parse_dotenv(text)
