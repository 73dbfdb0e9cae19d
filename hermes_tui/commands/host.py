"""The values slash commands speak in, and the front end as they see it. Knows no front end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from hermes_engine.profiles import Resolved
    from hermes_engine.session import Engine

OutputKind = Literal["text", "table", "error", "markdown", "code"]
HostKind = Literal["app", "repl", "linear"]


@dataclass(frozen=True, slots=True)
class Output:
    """What a command says; the front end draws it. Plain text throughout, never mark-up of a screen toolkit.

    Attributes:
        kind: text | table | error | markdown | code.
        text: the words; for a table a line under it, or "".
        title: heading, or "".
        columns: headings of a table.
        rows: cells of a table, each row as long as `columns`.
    """

    kind: OutputKind
    text: str = ""
    title: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """One proposal: `text` replaces the input from character `start` to its end; `help` stands beside it."""

    text: str
    help: str = ""
    start: int = 0


class CommandHost(Protocol):
    """The front end as commands see it. Commands marked `blocking` run off its loop, so every method here may
    be called from any thread.
    """

    @property
    def kind(self) -> HostKind:
        """Which front end this is."""
        ...

    @property
    def session(self) -> str:
        """Id of the chat the person looks at."""
        ...

    @property
    def engine(self) -> Engine:
        """The running engine."""
        ...

    @property
    def resolved(self) -> Resolved:
        """Settings this program was started with."""
        ...

    def show(self, output: Output) -> None:
        """Shows a command's words in the chat; they never go to the model."""
        ...

    def open_screen(self, name: str, **options: str) -> bool:
        """Opens a screen or overlay; False when this front end has none of that name (the command then speaks).

        Names asked for: model, mode, theme, keys, sessions, settings, help, agents, kanban, batch, clear (empties the
        view).
        """
        ...

    def ask_quit(self) -> None:
        """Leaves, after the question this front end asks while work runs."""
        ...

    def copy(self, text: str) -> str:
        """Puts the text on the clipboard, or where it can be fetched from; returns a line that says where."""
        ...

    def set_draft(self, text: str) -> None:
        """Puts text into the prompt, cursor at its end."""
        ...

    def steer(self, text: str) -> None:
        """Sends a text into the running turn of the chat the person looks at (as a turn where none runs), and shows
        that it waits for the next step.
        """
        ...

    def new_session(self) -> None:
        """Starts an empty chat; the old one stays saved."""
        ...

    def run_session(self, *, resume: str) -> None:
        """Goes on with a saved chat. `resume` is a session's id."""
        ...

    def in_background(self, work: Callable[[], None]) -> None:
        """Runs work that reads the disk off the front end's loop, one piece after another."""
        ...


Run = Callable[[CommandHost, str], None]
"""Runs a command with the text after its name, stripped. May raise HermesError: shown as an error."""

Complete = Callable[[CommandHost, str], Iterable[Completion]]
"""Proposals for the argument text so far; `start` counts within that text. May read the disk."""


@dataclass(frozen=True, slots=True)
class Command:
    """One slash command.

    Attributes:
        name: without the slash.
        args: how its arguments are written, e.g. "FILE [n]"; "" = none.
        help: one line.
        group: heading it stands under.
        aliases: other names that match but get no row of their own.
        while_busy: works at once while a turn runs.
        blocking: reads the disk, so it runs off the front end's loop.
        run: the command itself.
        complete: proposals for its arguments.
    """

    name: str
    args: str
    help: str
    group: str
    aliases: tuple[str, ...]
    while_busy: bool
    blocking: bool
    run: Run
    complete: Complete | None = None

    @property
    def usage(self) -> str:
        """`/name ARGS`."""
        return f"/{self.name} {self.args}".rstrip()
