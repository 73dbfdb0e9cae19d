"""An agent's place: the folder it started in, the one it is in, what it has seen, changed and planned.

Each agent has its own; the chat's folder never moves because a child's did.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hermes_engine.errors import ToolFault
from hermes_engine.paths import Home, user_home
from hermes_engine.protocols import Box
from hermes_engine.tools.ledger import LEDGER, Look
from hermes_engine.tools.pinned import held, held_parent
from hermes_engine.tools.protected import Protected, against_kind
from hermes_engine.tools.search_match import Walls, lets


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the agent's plan."""

    text: str
    state: Literal["open", "active", "done"] = "open"


class Workspace:
    """Where an agent works.

    Args:
        cwd: folder it starts in.
        home: the program's home.
        outputs: folder for full texts of long results.
        protected: which files are out of reach; from the homes by default.
        env: extra environment of its commands (a row's HOME, …).
        box: what its commands are closed in; files outside are then out of reach for its other tools too.
    """

    def __init__(
        self,
        cwd: Path,
        home: Home,
        *,
        outputs: Path,
        protected: Protected | None = None,
        env: Mapping[str, str] | None = None,
        box: Box | None = None,
    ) -> None:
        self.start = Path(os.path.abspath(cwd))  # noqa: PTH100 - keeps links as the person sees them
        self.home, self.outputs, self.env, self.box = home, outputs, dict(env or {}), box
        self.user_home = Path(self.env.get("HOME") or user_home())
        self.protected = protected or Protected(home, self.user_home, user_home())
        self.plan: tuple[Step, ...] = ()
        self._cwd = self.start
        self._seen: dict[Path, Look] = {}
        self._changed: dict[Path, None] = {}

    @property
    def cwd(self) -> Path:
        """The folder the agent is in; may have vanished, see `place`."""
        return self._cwd

    def move(self, folder: Path) -> None:
        """The agent is in another folder now."""
        self._cwd = folder

    @property
    def here(self) -> Path:
        """The folder the next command will run in."""
        return self._cwd if self.is_folder(self._cwd) else self.start

    def is_folder(self, path: Path) -> bool:
        """Whether a command can run there, as far as can be seen: what a box has of its own is not looked into."""
        return os.path.isdir(path) if self.against_walls(path) is None else True  # noqa: PTH112 - at each command

    def place(self) -> tuple[Path, str]:
        """An existing folder to run in, and a note when the agent's own has vanished and it fell back."""
        if self.is_folder(self._cwd):
            return self._cwd, ""
        lost, self._cwd = self._cwd, self.start
        if lost == self.start:  # nowhere to fall back to: the command's own failure says it
            return self.start, ""
        return self.start, f"[the folder {lost} no longer exists; back in {self.start}]"

    def resolve(self, path: str) -> Path:
        """A path as given, made absolute, links and `..` resolved. Raises ToolFault for an unusable one."""
        if not path.strip():
            raise ToolFault("the path is empty")
        if "\0" in path:
            raise ToolFault("the path holds a NUL character")
        given = Path(path)
        if path == "~" or path.startswith("~/"):
            given = self.user_home / path[2:]
        try:
            return Path(os.path.realpath(self._cwd / given))
        except OSError as error:
            raise ToolFault(f"cannot use the path {path}: {error.strerror or error}") from error

    def readable(self, path: str) -> Path:
        """The resolved path of an ordinary, unprotected file. Raises ToolFault."""
        target = self.resolve(path)
        if reason := self.against_reading(target) or against_kind(target):
            hint = "; search_files or terminal can list it" if reason == "it is a folder" else ""
            raise ToolFault(f"{path} cannot be read: {reason}{hint}")
        return target

    def against_reading(self, path: Path) -> str | None:
        """Why a resolved path is never read, or None."""
        return self.against_walls(path) or self.protected.against_reading(path)

    def against_walls(self, path: Path) -> str | None:
        """Why a resolved path is out of reach whatever stands there, or None."""
        if self.box is None or lets(self.walls, str(path)):
            return None
        return "it lies outside of the folders that are open here"

    @property
    def walls(self) -> Walls:
        """What is open when not all of this machine is, else ()."""
        if self.box is None:
            return ()
        parts = (self.box.folders[0], self.box.outputs), self.box.folders[1:], self.box.hidden
        return tuple(tuple(f"{folder}/" for folder in part) for part in parts)

    def held(self, target: Path) -> AbstractContextManager[Path]:
        """A path to read a resolved file by, which no command can make another. Raises OSError on entering."""
        return held(target, self.walls) if self.box else nullcontext(target)

    def held_parent(self, target: Path) -> AbstractContextManager[Path]:
        """A path to write a resolved file by, whose folder no command can make another. Raises OSError on entering."""
        return held_parent(target, self.walls) if self.box else nullcontext(target)

    def writable(self, path: str) -> Path:
        """The resolved path of a file that may be written as far as its kind goes. Raises ToolFault."""
        target = self.resolve(path)
        if reason := self.against_walls(target) or self.protected.against_writing(target) or against_kind(target):
            raise ToolFault(f"{path} cannot be written: {reason}")
        return target

    def shown(self, path: Path) -> str:
        """A path as people and models read it: relative to the start folder when inside."""
        start = Path(os.path.realpath(self.start))
        return str(path.relative_to(start)) if path.is_relative_to(start) else str(path)

    def inside(self, path: Path) -> bool:
        """Whether a resolved path lies in the folder the agent started in."""
        return path.is_relative_to(os.path.realpath(self.start))

    def saw(self, path: Path, content: bytes | None) -> None:
        """Notes how a file looks, now that the agent has read it (None: too large to be read whole)."""
        self._seen[path] = Look.at(path, content)

    def wrote(self, path: Path, agent: str, content: bytes) -> None:
        """Notes that the agent has written a file."""
        LEDGER.wrote(path, agent, content)
        self._seen[path] = Look.at(path, content)
        self._changed[path] = None

    def check_unchanged(self, path: Path, content: bytes) -> None:
        """Raises ToolFault when the file changed since this agent read it, naming who did it where known."""
        look = self._seen.get(path)
        if look is None or look.still(path, content):
            return
        agent = LEDGER.writer_of(path, content)
        who = f"by agent {agent}" if agent else "from outside (a command, an editor or another program)"
        raise ToolFault(f"{self.shown(path)} was changed {who} since you read it; read it again before you edit it")

    @property
    def files_changed(self) -> tuple[str, ...]:
        """Files this agent's tools wrote, in order, as `shown`."""
        return tuple(map(self.shown, self._changed))
