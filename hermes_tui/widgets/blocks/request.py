"""A question that waits in the transcript: an approval or a question of an agent, with its choices; one line once
it is settled. It shows all of what is asked, with everything invisible as an escape.

It knows when its end was first on the screen: a yes to something long counts only after that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.style import Style
from rich.text import Text

from hermes_tui.cleaning import escaped, one_line
from hermes_tui.texts import _
from hermes_tui.widgets.blocks.base import INSET, Block, estimate_text
from hermes_tui.widgets.blocks.diff import diff_lines, diff_style
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.rows import Row, fold, row_of, shorten

QUIET_SECONDS = 0.4
"""For so long after it appeared a question takes no keys: they were meant for something else."""


@dataclass(frozen=True, slots=True)
class Option:
    """One choice.

    Attributes:
        digit: number key that chooses it, the same for the same choice in every request.
        choice: once | session | always | no | answer.
        label: words for it.
        letter: key beside its number, "" for none.
        note: answer text it stands for.
        asks_text: it goes on to ask for words.
    """

    digit: int
    choice: str
    label: str
    letter: str = ""
    note: str = ""
    asks_text: bool = False


class RequestBlock(Block):
    """One request by its id. `detail` is the whole of what wants to run; `diff` draws it as changed lines; `rule` is
    what the choices that are remembered allow, in words.
    """

    def __init__(
        self,
        request: str,
        *,
        asker: str,
        title: str,
        detail: str = "",
        reason: str = "",
        options: Sequence[Option] = (),
        diff: bool = False,
        rule: str = "",
    ) -> None:
        super().__init__()
        self.request, self.asker, self.title = request, asker, title
        self.detail, self.reason, self.options, self.diff, self.rule = detail, reason, tuple(options), diff, rule
        self.beside = False
        """Whether an agent asks that works beside this conversation."""
        self._room = 0
        self.selected: int | None = None
        self.shown_at: float | None = None
        self.settled = ""
        self.settled_well = False
        self.hits: dict[int, list[tuple[int, int, int]]] = {}

    @property
    def dense(self) -> bool:
        return bool(self.settled)

    @property
    def waiting(self) -> bool:
        """Whether it still needs an answer."""
        return not self.settled

    def end_shown(self, now: float) -> None:
        """Its last row is on the screen at `now` (monotonic seconds)."""
        if self.shown_at is None:
            self.shown_at = now

    def takes_keys(self, now: float) -> bool:
        """Whether a key may answer it at `now`."""
        return self.waiting and self.shown_at is not None and now - self.shown_at >= QUIET_SECONDS

    def option_for(self, key: str) -> Option | None:
        """The choice a digit or letter stands for."""
        return next((option for option in self.options if key in (str(option.digit), option.letter or None)), None)

    def option_at(self, row: int, x: int) -> Option | None:
        """The choice drawn at a place of the block."""
        return next((self.options[number] for start, end, number in self.hits.get(row, ()) if start <= x < end), None)

    def move(self, step: int) -> None:
        """Selects the next or previous choice."""
        if self.options:
            start = -1 if self.selected is None and step > 0 else self.selected or 0
            self.selected = (start + step) % len(self.options)
            self.touch()

    @property
    def selected_option(self) -> Option | None:
        """The choice the arrows are on."""
        return self.options[self.selected] if self.selected is not None else None

    def choose(self, option: Option | None) -> None:
        """Selects a choice, or none."""
        place = self.options.index(option) if option is not None else None
        if place != self.selected:
            self.selected = place
            self.touch()

    def like(self, other: RequestBlock) -> bool:
        """Whether the same answer may be meant for both: one rule covers them, or they ask the very same."""
        return self.rule == other.rule if self.rule else self.title == other.title and not other.rule

    def fit(self, rows: int) -> None:
        """It is looked at through so many rows: where it is longer, the choices come before what is long."""
        if rows != self._room:
            self._room = rows
            self.version += 1

    def settle(self, words: str, *, well: bool) -> None:
        """It has an answer, or was withdrawn."""
        self.settled, self.settled_well = words, well
        self.touch()

    def rows(self, width: int, look: Look) -> list[Row]:
        if self.settled:
            return [self._settled_row(width, look)]
        frame = self._framed(width, look, choices_first=False)
        if self._room and len(frame.rows) > self._room:
            frame = self._framed(width, look, choices_first=True)
        return frame.rows

    def _framed(self, width: int, look: Look, *, choices_first: bool) -> _Frame:
        frame = _Frame(width, look)
        keys = " ".join(str(option.digit) for option in self.options)
        hint = _("{keys} or click").format(keys=keys) if keys else _("^N answers")
        frame.top(f"{look.glyphs.needs} ", self.asker, hint)
        joined = self._joined
        if joined and choices_first:
            frame.text(shorten(Text(escaped(self.title), look.strong), frame.room, look.glyphs.ellipsis))
        elif not joined:
            frame.text(Text(escaped(self.title), look.strong))
        if not choices_first:
            self._draw_detail(frame, look, 0 if joined else 2)
        if self.reason:
            frame.text(Text(one_line(self.reason), look.faint))
        if self.options:
            if not choices_first:
                frame.text(Text(""))
            self._draw_options(frame, look)
        if choices_first:
            self._draw_detail(frame, look)
        frame.bottom()
        return frame

    @property
    def _joined(self) -> bool:
        """Whether the title is only the detail, its lines joined."""
        return (
            not self.diff and "\n" in self.detail.strip() and one_line(self.detail).startswith(self.title.rstrip("…"))
        )

    def _draw_detail(self, frame: _Frame, look: Look, indent: int = 2) -> None:
        if self.detail and self.detail.strip() != self.title.strip():
            lines = escaped(self.detail).strip("\n").split("\n")
            if self.diff:
                for line, change in diff_lines(lines, look):
                    frame.text(Text(line, diff_style(change, look)), 2)
            else:
                for line in lines:
                    frame.text(Text(line, look.text if indent else look.strong), indent)

    def _draw_options(self, frame: _Frame, look: Look) -> None:
        """The choices, as many on a row as fit, and once what the remembered ones allow."""
        self.hits = {}
        drawn = [self._option_text(number, look) for number in range(len(self.options))]
        gap = 4 if sum(text.cell_len + 4 for text in drawn) <= frame.room else 2
        line = Text()
        for number, text in enumerate(drawn):
            if line.cell_len + gap + text.cell_len > frame.room and line.plain:
                frame.text(line)
                line = Text()
            line.append("  " if not line.plain else " " * gap)
            if line.cell_len + text.cell_len > frame.room:
                self._draw_long_option(frame, number, text)
                line = Text()
                continue
            start = line.cell_len + frame.left
            line.append_text(text)
            zone = (start, start + text.cell_len, number)
            self.hits.setdefault(len(frame.rows), []).append(zone)
        if line.plain:
            frame.text(line)
        remembered = [str(option.digit) for option in self.options if option.choice in ("session", "always")]
        if self.rule and remembered:
            words = _("{digits} allow {rule}").format(digits=_(" and ").join(remembered), rule=one_line(self.rule))
            frame.text(Text(words, look.faint))

    def _draw_long_option(self, frame: _Frame, number: int, text: Text) -> None:
        first = len(frame.rows)
        frame.text(text, 2)
        for row in range(first, len(frame.rows)):
            self.hits[row] = [(0, frame.width, number)]

    def _option_text(self, number: int, look: Look) -> Text:
        option = self.options[number]
        text = Text()
        text.append(str(option.digit), look.warning + Style(bold=True))
        text.append(f" {one_line(option.label)}", look.text)
        if number == self.selected:
            text.stylize(Style(reverse=True))
        return text

    def _settled_row(self, width: int, look: Look) -> Row:
        glyphs = look.glyphs
        sign, style = (glyphs.good, look.good) if self.settled_well else (glyphs.stopped, look.faint)
        line = Text(" " * INSET).append(f"{sign} ", style)
        line.append(one_line(self.settled), look.soft)
        line.append(f"  {one_line(escaped(self.title))}", look.faint)
        return row_of(shorten(line, width, glyphs.ellipsis), INSET + 2)

    def estimate(self, width: int) -> int:
        return 1 if self.settled else 6 + estimate_text(self.detail, width - 8)

    def copy_text(self) -> str:
        return self.detail or self.title


class _Frame:
    """A frame drawn row by row."""

    left = INSET + 2

    def __init__(self, width: int, look: Look) -> None:
        self.width = max(16, width - 1)
        self.look = look
        self.room = self.width - INSET - 4
        self.rows: list[Row] = []

    def top(self, sign: str, name: str, hint: str) -> None:
        glyphs, look = self.look.glyphs, self.look
        line = Text(" " * INSET).append(f"{glyphs.corners[0]}{glyphs.line} ", look.soft)
        line.append(sign, look.warning).append(f"{one_line(name)} ", look.text)
        tail = f" {hint} {glyphs.line}{glyphs.corners[1]}"
        if line.cell_len + len(tail) + 2 > self.width:
            tail = glyphs.line + glyphs.corners[1]
            line = shorten(line, self.width - 3, glyphs.ellipsis)
        line.append(glyphs.line * (self.width - line.cell_len - len(tail)), look.soft)
        line.append(tail, look.soft)
        self.rows.append(row_of(line, len(line.plain)))

    def text(self, text: Text, indent: int = 0) -> None:
        side = self.look.glyphs.upright
        for piece, joint in fold(text, self.room - indent):
            line = Text(" " * INSET).append(f"{side} ", self.look.soft).append(" " * indent)
            inset = len(line.plain)
            line.append_text(piece)
            fill = self.width - 2 - line.cell_len
            line.append(" " * max(0, fill))
            line.append(f" {side}", self.look.soft)
            self.rows.append(row_of(line, inset, joint, max(0, fill) + 2))

    def bottom(self) -> None:
        glyphs = self.look.glyphs
        line = " " * INSET + glyphs.corners[2] + glyphs.line * (self.width - INSET - 2) + glyphs.corners[3]
        self.rows.append(row_of(Text(line, self.look.soft), len(line)))
