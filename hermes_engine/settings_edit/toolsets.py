"""Puts toolsets on the list of a settings file, or takes them off."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_engine.errors import UsageError
from hermes_engine.settings_edit.file import edit_config
from hermes_engine.settings_edit.keys import put
from hermes_engine.toolsets import EVERYTHING, expand


@dataclass(frozen=True, slots=True)
class ToolsetChange:
    """What became of a list of toolsets.

    Attributes:
        path: the file.
        before, after: names in effect, `all` spelled out.
    """

    path: Path
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Whether anything did."""
        return self.before != self.after


def change_toolsets(
    path: Path, inherited: Sequence[str], *, enable: Iterable[str] = (), disable: Iterable[str] = ()
) -> ToolsetChange:
    """Puts toolsets on or takes them off a file's list.

    Args:
        path: a `config.yaml`.
        inherited: what is in effect when the file has no list of its own.
        enable: sets to add; `all` is every one but kanban.
        disable: sets to remove, by their own names.

    Raises:
        UnknownName: no such toolset.
        UsageError: `all` cannot be disabled as a whole.
        ConfigError, StateError: see `edit_config`.
    """
    adding, removing = tuple(enable), tuple(disable)
    expand([*adding, *removing])
    if any(name in EVERYTHING for name in removing):
        raise UsageError(
            "`all` is not disabled as a whole", hint="name the toolsets, or: hermes config set toolsets '[]'"
        )
    seen: list[tuple[str, ...]] = []

    def change(values: MutableMapping[str, Any]) -> None:
        written = values.get("toolsets")
        listed = [part.strip() for part in written.split(",")] if isinstance(written, str) else written
        names = list(inherited if listed is None else listed)
        seen.append(expand(names))
        wanted = _changed_names(names, adding, removing)
        seen.append(expand(wanted))
        if wanted != names:
            put(values, ("toolsets",), wanted)

    edit_config(path, change)
    return ToolsetChange(path, seen[0], seen[-1])


def _changed_names(names: Sequence[str], adding: Sequence[str], removing: Sequence[str]) -> list[str]:
    wanted = [*names]
    for name in adding:
        if set(expand([name])) - set(expand(wanted)):
            wanted.append(name)
    if set(removing) & set(expand(wanted)):
        if any(name in EVERYTHING for name in wanted):
            wanted = [*expand(wanted)]
        wanted = [name for name in wanted if name not in removing]
    return wanted
