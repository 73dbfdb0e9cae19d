"""The way out of the plain shell: what shall become of what still runs, and leaving once that is settled. Knows no
terminal. All of it runs on the front's thread.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from hermes_tui.cleaning import one_line
from hermes_tui.commands.host import Output
from hermes_tui.leaving_behind import goes_on, left_words
from hermes_tui.printing.lines import Line
from hermes_tui.printing.streams import err
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_engine.session import AgentRow
    from hermes_tui.repl.shell import Shell

AGAIN_SECONDS = 6.0
"""Within this a second wish to leave while work runs is meant."""


def _told(row: AgentRow) -> str:
    """An agent at work as a line: name, task, what it does, and whether it cannot be left working."""
    stays = "" if goes_on(row) else _("cannot be left")
    parts = (one_line(row.name, 24).ljust(12), one_line(row.title, 40), one_line(row.activity, 50), stays)
    return "  " + "  ".join(part for part in parts if part)


class Going:
    """Leaves a shell, never by accident."""

    def __init__(self, shell: Shell, *, attended: bool) -> None:
        self._shell, self._attended = shell, attended
        self._asked = -math.inf
        self._asking = self._when_done = self._leaves_behind = False

    def _at_work(self) -> list[AgentRow]:
        engine = self._shell.engine
        return [row for row in engine.agents() if engine.supervisor.at_work(row.id)]

    def stops(self) -> str:
        """What leaving now would stop, as a sentence; "" for nothing."""
        names = [row.name for row in self._at_work()]
        return " " + _("Leaving stops: {names}.").format(names=", ".join(names)) if names else ""

    def ask(self) -> bool:
        """Whether to leave at once: nothing runs, or the question was put already."""
        rows = self._at_work()
        if not rows or time.monotonic() - self._asked < AGAIN_SECONDS:
            return True
        self._asked, self._asking = time.monotonic(), self._attended
        self._shell.say("text", _("Still at work.") + self.stops() + " " + _("Once more to stop it and leave."))
        if self._asking:
            lines = [_told(row) for row in rows]
            lines += [f"  1 {_('stop it and leave')}", f"  2 {_('leave when it is done')}"]
            lines.append(f"  3 {_('leave it working; `hermes tasks` shows it')}   {_('Enter stays')}")
            lines += [f"    {words}" for words in left_words(rows)]
            self._shell.front.put([Line(line) for line in lines])
        self._shell.front.changed()
        return False

    def answered(self, text: str) -> bool:
        """Takes a typed line as the answer; False when nothing was asked, or it is something else (which stays)."""
        asking, self._asking = self._asking, False
        said = text.strip()
        if not asking or said not in ("", "1", "2", "3"):
            return False
        if said in ("1", "3"):
            self._leaves_behind = said == "3"
            self._shell.front.leave()
        self._when_done, self._asked = said == "2", -math.inf
        words = {"": _("Staying."), "2": _("Leaves when it is done; /quit leaves at once.")}
        if said in words:
            self._shell.show(Output("text", words[said]))
        self.look()
        return True

    def look(self) -> None:
        """Leaves when that was wanted for when nothing runs any more."""
        if self._when_done and not self._at_work():
            self._shell.front.leave()

    @property
    def prompt(self) -> str:
        """The words before the cursor while the question stands, else ""."""
        return _("quit? 1 stop  2 wait  3 leave ❯ ") if self._asking else ""

    def close(self, *, hung_up: bool) -> None:
        """Ends the engine; what is to be left behind goes on. Blocks for up to a few seconds."""
        engine, resolved = self._shell.engine, self._shell.resolved
        behind = self._leaves_behind or (hung_up and resolved.settings.ui.on_hangup == "leave")
        left = engine.leave() if behind else []
        engine.close()
        if not left:
            return
        from hermes_tui.leaving_behind import go_on_without_us

        process = go_on_without_us(left, resolved)
        err(_("What was at work goes on in process {process} · hermes tasks list").format(process=process))
