"""`docs/configuration.md` names every key with its default, and nothing that does not exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from hermes_engine.settings import Section, Settings

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "configuration.md"


def defaults(model: type[Section] = Settings, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    for name, info in model.model_fields.items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, Section):
            yield from defaults(info.annotation, (*prefix, name))
        else:
            value = info.get_default(call_default_factory=True)
            yield ".".join((*prefix, name)), value if isinstance(value, str) else json.dumps(value)


def test_every_key_is_documented_with_its_default() -> None:
    text = DOCUMENT.read_text(encoding="utf-8").partition("## Keys of")[2].partition("## Servers")[0]
    documented = dict(re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", text, flags=re.MULTILINE))
    assert documented == dict(defaults())


def test_f2_7_no_key_is_without_effect() -> None:
    """What is accepted is read somewhere."""
    code = "\n".join(
        path.read_text()
        for package in ("hermes_engine", "hermes_tui")
        for path in (ROOT / package).rglob("*.py")
        if path.name != "values.py"
    )
    read = set(re.findall(r"(?:\.|\")([a-z_]+)\b", code))
    assert [name for name, _ in defaults() if name.rpartition(".")[2] not in read] == []
