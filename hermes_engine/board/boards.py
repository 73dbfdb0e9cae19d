"""The boards of a home: opening, listing, making, renaming and deleting them, and which one is meant.

`default` always exists; it is made by the first write to it. Which board is chosen is kept beside the boards
(`boards/.chosen`), also where the boards themselves are on a server.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from hermes_engine.board.claims import Board
from hermes_engine.board.dialect import Dialect
from hermes_engine.board.sqlite import SqliteBoard, SqliteShelf
from hermes_engine.board.values import State
from hermes_engine.errors import HermesError, UnknownName, UsageError
from hermes_engine.paths import private_dir, user_home, write_atomic
from hermes_engine.profiles.places import all_places
from hermes_engine.settings.values import KanbanSettings

if TYPE_CHECKING:
    from hermes_engine.paths import Home

DEFAULT_BOARD = "default"
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}\Z")


@dataclass(frozen=True, slots=True)
class BoardInfo:
    """A line of the list of boards.

    Attributes:
        slug: its name.
        chosen: whether it is meant when none is named.
        place: where it is kept, for people.
        counts: cards by state; empty when it cannot be read.
        fault: why it cannot be read, else "".
    """

    slug: str
    chosen: bool
    place: str
    counts: Mapping[State, int] = field(default_factory=dict)
    fault: str = ""


class Shelf(Protocol):
    """Where boards are kept: a folder of files, or a database on a server. Every method may raise StateError."""

    def names(self) -> list[str]:
        """Boards that exist."""
        ...

    def place(self, slug: str) -> str:
        """Where the board is, for people."""
        ...

    def open(self, slug: str) -> Dialect:
        """The board, made when it does not exist."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Gives a board another name."""
        ...

    def delete(self, slug: str) -> None:
        """Removes a board for good."""
        ...


class Boards:
    """All boards of a home.

    Args:
        home: where the files are.
        rules: limits, and the address of a server when the boards are there.
        profiles: names of the profiles that exist here; None: those of the home.
    """

    def __init__(
        self,
        home: Home,
        rules: KanbanSettings | None = None,
        profiles: Callable[[], Collection[str]] | None = None,
    ) -> None:
        self._root = home.state_db.parent
        self._rules = rules or KanbanSettings()
        self._profiles = profiles or (lambda: frozenset(place.name for place in all_places(home)))
        self._shelf = _shelf(self._root, self._rules.database_url)

    def open(self, slug: str = "", *, only_read: bool = False) -> Board:
        """A board; to be closed.

        Args:
            slug: its name; "" for the chosen one.
            only_read: makes no file for a `default` board that nobody wrote to yet: an empty one stands for it.

        Raises:
            UnknownName: there is no such board.
            StateError: the database cannot be used.
        """
        name = slug or self.chosen()
        exists = self.exists(name)
        if not exists and name != DEFAULT_BOARD:
            raise UnknownName("board", name, self.names())
        database = self._shelf.open(name) if exists or not only_read else SqliteBoard(None)
        return Board(name, database, self._rules, self._profiles)

    def names(self) -> tuple[str, ...]:
        """Boards there are, `default` first."""
        return tuple(dict.fromkeys([DEFAULT_BOARD, *self._shelf.names()]))

    def exists(self, slug: str) -> bool:
        """Whether the board was made; `default` is there for everybody before it is."""
        return slug in self._shelf.names()

    def list(self) -> tuple[BoardInfo, ...]:
        """Boards with their counts; one that cannot be read says why."""
        return tuple(self._info(slug) for slug in self.names())

    def create(self, slug: str) -> None:
        """Makes an empty board. Raises UsageError for a name that is taken or not usable."""
        self._free(slug)
        self._shelf.open(slug).close()

    def rename(self, old: str, new: str) -> None:
        """Gives a board another name. Raises UnknownName, UsageError (`default`, a taken name, cards at work)."""
        self._free(new)
        self._at_rest(old)
        self._shelf.rename(old, new)
        if self._named() == old:
            self._choose(new)

    def delete(self, slug: str) -> None:
        """Removes a board and its cards for good. Raises UnknownName, UsageError (`default`, cards at work)."""
        self._at_rest(slug)
        self._shelf.delete(slug)
        if self._named() == slug:
            self._choose(DEFAULT_BOARD)

    def use(self, slug: str) -> None:
        """Makes a board the one that is meant when none is named. Raises UnknownName."""
        if slug not in self.names():
            raise UnknownName("board", slug, self.names())
        self._choose(slug)

    def chosen(self) -> str:
        """The board that is meant when none is named; `default` when the chosen one is gone."""
        name = self._named()
        return name if name in self.names() else DEFAULT_BOARD

    def folder(self, slug: str) -> Path:
        """Private folder for the workspaces of a board's cards; made when missing.

        It lies beside the person's other data and not in this program's home, whose files are closed to agents: what
        a worker makes in its own folder may be called `test.db` or `.env`.
        """
        data = Path(os.environ.get("XDG_DATA_HOME") or user_home() / ".local" / "share")
        mark = hashlib.sha256(str(self._root).encode("utf-8", "surrogateescape")).hexdigest()[:8]
        return private_dir(data / "hermes" / "workspaces" / mark / slug)

    def _info(self, slug: str) -> BoardInfo:
        known = (slug, slug == self.chosen(), self._shelf.place(slug))
        try:
            with contextlib.closing(self.open(slug, only_read=True)) as board:
                return BoardInfo(*known, counts=board.counts())
        except HermesError as error:
            return BoardInfo(*known, fault=error.line)

    def _free(self, slug: str) -> None:
        if not _SLUG.match(slug):
            raise UsageError(
                f"board {slug!r} is not a usable name", hint="small letters, digits, dash and underscore; at most 40"
            )
        if slug in self.names():
            raise UsageError(f"there is a board {slug} already")

    def _at_rest(self, slug: str) -> None:
        if slug == DEFAULT_BOARD:
            raise UsageError(f"the board {DEFAULT_BOARD} stays", hint="archive its cards instead")
        with contextlib.closing(self.open(slug or "?")) as board:
            running = board.open_runs()
        if running:
            cards = ", ".join(run.card for run in running[:5])
            raise UsageError(f"cards of {slug} are at work: {cards}", hint="block or reclaim them first")

    def _named(self) -> str:
        try:
            return (self._root / "boards" / ".chosen").read_text("utf-8").strip()
        except (OSError, ValueError):
            return DEFAULT_BOARD

    def _choose(self, slug: str) -> None:
        write_atomic(private_dir(self._root / "boards") / ".chosen", slug + "\n")


def _shelf(root: Path, url: str | None) -> Shelf:
    if not url:
        return SqliteShelf(root)
    from hermes_engine.board.postgres import PostgresShelf  # the driver is an extra, and loads slowly

    return PostgresShelf(url)
