"""Toolset distributions: how likely a row has each set of tools. The shipped ones, and those of the home.

Odds are independent draws in percent, at least one set a row; the draw itself is the job's. A set that the person
has switched off in the configuration is never drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_engine.batch.job import Draws
from hermes_engine.errors import ConfigError, UnknownName, UsageError
from hermes_engine.paths import Home
from hermes_engine.settings import Settings
from hermes_engine.settings.reading import read_yaml
from hermes_engine.toolsets import BY_NAME_ONLY, PERSONAL, TOOLSETS, expand

FILE = "distributions.yaml"


@dataclass(frozen=True, slots=True)
class Distribution:
    """A named table of odds.

    Attributes:
        odds: toolset → percent, 0 to 100.
        where_enabled: only sets that the profile's toolsets list are meant.
        source: "shipped" or the file it stands in.
    """

    name: str
    odds: Mapping[str, float]
    description: str = ""
    where_enabled: bool = False
    source: str = "shipped"


SHIPPED: Mapping[str, Distribution] = {
    item.name: item
    for item in (
        Distribution(
            "default",
            {"terminal": 100, "file": 100, "web": 100, "todo": 100},
            "what the profile has enabled of these",
            where_enabled=True,
        ),
        Distribution("terminal_only", {"terminal": 100}, "a shell and nothing else"),
        Distribution("terminal_file", {"terminal": 100, "file": 100}, "a shell and file tools"),
        Distribution("web_only", {"web": 100}, "reading the web and nothing else"),
        Distribution("research", {"web": 95, "file": 60, "terminal": 30, "todo": 30}, "mostly reading"),
        Distribution("development", {"terminal": 95, "file": 95, "todo": 40, "web": 30}, "mostly code"),
        Distribution("balanced", {"terminal": 50, "file": 50, "web": 50, "todo": 50}, "even odds"),
    )
}


def available(home: Home) -> dict[str, Distribution]:
    """All distributions by name; one of the home wins over a shipped one of its name.

    Raises:
        ConfigError: the home's file is wrong; names file and key.
    """
    path = home.root / FILE
    own = {name: _read(path, name, value) for name, value in read_yaml(path).values.items()}
    return {**SHIPPED, **own}


def chosen(home: Home, name: str) -> Distribution:
    """The distribution of that name. Raises UnknownName with the valid ones."""
    table = available(home)
    if name not in table:
        raise UnknownName("distribution", name, table)
    return table[name]


def draws(distribution: Distribution, settings: Settings) -> tuple[Draws, tuple[str, ...]]:
    """The odds in effect.

    Returns:
        The draws, and the sets left out because they are not enabled. No draws where the profile has no toolset.

    Raises:
        UsageError: no set is left.
    """
    if distribution.where_enabled and "toolsets" in settings.model_fields_set and not expand(settings.toolsets):
        return (), ()  # the profile says: no tools
    possible = {name: odds for name, odds in distribution.odds.items() if odds > 0}
    usable = [name for name in possible if not refusal(name, settings, by_default=not distribution.where_enabled)]
    left_out = tuple(name for name in possible if name not in usable)
    if not usable:
        why = "; ".join(f"{name} {refusal(name, settings, by_default=False)}" for name in left_out)
        why = f": {why}" if why else ""
        able = [name for name in left_out if name not in BY_NAME_ONLY | PERSONAL]
        hint = f"hermes tools enable {able[0]}" if able else "name a set that rows can have, with more than 0"
        raise UsageError(f"the distribution {distribution.name} has no toolset that can be drawn{why}", hint=hint)
    return tuple((name, possible[name] / 100) for name in TOOLSETS if name in usable), left_out


def refusal(toolset: str, settings: Settings, *, by_default: bool = True) -> str:
    """Why rows may not have this set, or "".

    Args:
        toolset: its name.
        settings: of the profile; a `toolsets` list that a person wrote is binding.
        by_default: whether a set counts as enabled where no person wrote a list.
    """
    if toolset in BY_NAME_ONLY:
        return "is for agents of a board, and rows have none"
    if toolset in PERSONAL:
        return "looks into a person's own chats, which rows never see"
    unwritten = "toolsets" not in settings.model_fields_set
    if toolset in expand(settings.toolsets) or (by_default and unwritten):
        return ""
    return "is not enabled in the profile"


def _read(path: Path, name: str, value: Any) -> Distribution:
    description = ""
    odds = value
    if isinstance(value, dict) and isinstance(value.get("toolsets"), dict):
        odds, description = value["toolsets"], str(value.get("description") or "")
    if not isinstance(odds, dict) or not odds:
        raise ConfigError(f"{path}: {name} is not a table of toolset: percent")
    for toolset, percent in odds.items():
        if toolset not in TOOLSETS:
            raise ConfigError(f"{path}: {name}: {UnknownName('toolset', str(toolset), TOOLSETS)}")
        if isinstance(percent, bool) or not isinstance(percent, int | float) or not 0 <= percent <= 100:
            raise ConfigError(f"{path}: {name}.{toolset}: {percent!r} is not a percentage from 0 to 100")
    return Distribution(name, {str(key): float(number) for key, number in odds.items()}, description, source=str(path))
