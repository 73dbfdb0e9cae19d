"""The columns of the board. Draws the cards in view and no others, and of those only lines that look different; knows
places and keys, no engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from hermes_tui.screens.kanban.deck import Deck
from hermes_tui.texts import _
from hermes_tui.widgets.cards import BARE, COLUMNS, FRAMED, card_lines, column_name, ghosts, head, padded
from hermes_tui.widgets.look import Look, look_of
from hermes_tui.widgets.rows import row_of, spread

if TYPE_CHECKING:
    from hermes_tui.widgets.cards import CardFace

ALL, THREE = 100, 60
"""Widths from which on all columns have room, and three of them."""

BARE_BELOW, AIRY = 22, 34
"""Rows of the window below which cards have no frames, and from which on there is air between them."""


class BoardView(Widget, can_focus=True):
    """Cards in columns, one of them chosen; it stays chosen by its id, wherever it moves to."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "column(-1)", _("Column to the left"), show=False, id="board.left"),
        Binding("right,l", "column(1)", _("Column to the right"), show=False, id="board.right"),
        Binding("up,k", "card(-1)", _("Card above"), show=False, id="board.up"),
        Binding("down,j", "card(1)", _("Card below"), show=False, id="board.down"),
        Binding("pageup", "page(-1)", _("Page up"), show=False, id="board.page_up"),
        Binding("pagedown", "page(1)", _("Page down"), show=False, id="board.page_down"),
        Binding("home", "edge(0)", _("First card"), show=False, id="board.first"),
        Binding("end", "edge(-1)", _("Last card"), show=False, id="board.last"),
    ]

    class Chosen(Message):
        """Another card is chosen."""

    class Opened(Message):
        """The chosen card was clicked once more."""

    def __init__(self) -> None:
        super().__init__()
        self._deck = Deck()
        self._face: Callable[[str], CardFace | None] = lambda card: None
        self._cap = 0
        self._words: Text | None = Text()  # not the cards of an empty board, before it was read
        self._column = self._place = 0
        self._chosen = ""
        self._tops = [0] * len(COLUMNS)
        self._drawn: list[Text] = []
        self.made = 0
        """Cards drawn up to now: what a test counts."""

    @property
    def chosen(self) -> str:
        """Id of the card the keys act on, "" for none."""
        return self._chosen

    def choose(self, card: str) -> None:
        """Chooses a card, if it is there."""
        if place := self._deck.place_of(card):
            self._column, self._place = place
            self._chosen = card
            self._draw()

    def show(self, deck: Deck, face: Callable[[str], CardFace | None], cap: int, words: Text | None = None) -> None:
        """Shows these cards, or one line of words for none; lines that look the same are left alone."""
        self._deck, self._face, self._cap, self._words = deck, face, cap, words
        before = self._chosen
        self._keep()
        self._draw()
        if before != self._chosen:
            self.post_message(self.Chosen())

    def _keep(self) -> None:
        """The choice stays on its card; where that is gone, on the one that stands there now, or next to it."""
        if self._chosen and (place := self._deck.place_of(self._chosen)):
            self._column, self._place = place
            return
        if not self._chosen and (card := next((c for c in ("needs", "review", "running", "todo", "done")
                                               if self._deck.columns[c]), None)):  # fmt: skip
            self._column, self._place = COLUMNS.index(card), 0
        counts = [len(self._deck.columns[name]) for name in COLUMNS]
        if not counts[self._column] and any(counts):
            near = sorted(range(len(COLUMNS)), key=lambda column: abs(column - self._column))
            self._column = next(column for column in near if counts[column])
        self._place = max(0, min(self._place, counts[self._column] - 1))
        card_there = self._deck.at(self._column, self._place)
        self._chosen = card_there.id if card_there else ""

    # Layout

    @property
    def _count(self) -> int:
        width = self.size.width
        return len(COLUMNS) if width >= ALL else 3 if width >= THREE else 1

    def _visible(self) -> range:
        """Columns in view."""
        count = self._count
        first = max(0, min(self._column - count // 2, len(COLUMNS) - count))
        return range(first, first + count)

    def _width(self) -> int:
        count = self._count
        return max(8, (self.size.width - 1 - (count - 1)) // count)

    @property
    def _above(self) -> int:
        """Lines above the first card: the heads, a line for columns out of view, air where there is room."""
        return 1 + (self._count < len(COLUMNS)) + self._airy

    @property
    def _framed(self) -> bool:
        return self.app.size.height >= BARE_BELOW

    @property
    def _airy(self) -> bool:
        return self.app.size.height >= AIRY

    @property
    def _pitch(self) -> int:
        return FRAMED + self._airy if self._framed else BARE + 1

    def _room(self, column: int) -> int:
        """Cards of a column that have room; one line is kept for what is below."""
        rows = self.size.height - self._above
        gap = self._pitch - (FRAMED if self._framed else BARE)
        whole = max(1, (rows + gap) // self._pitch)
        if len(self._deck.columns[COLUMNS[column]]) <= whole:
            return whole
        return max(1, (rows - 1 + gap) // self._pitch)

    # Drawing

    def _draw(self) -> None:
        width, height = self.size
        if not width or not height:
            return
        rows = self._rows(width, height)
        if len(rows) != len(self._drawn):
            self._drawn = rows
            self.refresh()
            return
        changed = [y for y, (new, old) in enumerate(zip(rows, self._drawn, strict=True)) if not _same(new, old)]
        self._drawn = rows
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def _rows(self, width: int, height: int) -> list[Text]:
        look = look_of(self)
        if self._words is not None:
            return [Text(), Text("  ").append_text(self._words), *[Text()] * (height - 2)][:height]
        inner = self._width()
        lines = [self._column_lines(column, inner, height, look) for column in self._visible()]
        rows: list[Text] = []
        for y in range(height - (self._count < len(COLUMNS))):
            row = Text(" ")
            for number, column in enumerate(lines):
                row.append(" " if number else "").append_text(column[y] if y < len(column) else Text(" " * inner))
            rows.append(row)
        return [self._neighbours(width, look), *rows] if self._count < len(COLUMNS) else rows

    def _neighbours(self, width: int, look: Look) -> Text:
        """The columns out of view with their counts, on their sides; the nearest where only one is in view."""
        seen = self._visible()

        def told(columns: range) -> Text:
            line = Text()
            for column in columns:
                name = COLUMNS[column]
                count = self._deck.count(name, self._cap)
                style = look.warning if name == "needs" and count != "0" else look.faint
                line.append("  " if line.plain else "").append(f"{column_name(name)} {count}", style)
            return line

        most = 1 if self._count == 1 else len(COLUMNS)
        left = told(range(max(0, seen.start - most), seen.start))
        right = told(range(seen.stop, min(len(COLUMNS), seen.stop + most)))
        left = Text(" < ", look.faint).append_text(left) if left.plain else left
        return spread(left, right.append(" > ", look.faint) if right.plain else right, width)

    def _column_lines(self, column: int, width: int, height: int, look: Look) -> list[Text]:
        name = COLUMNS[column]
        cards = self._deck.columns[name]
        lines = [head(name, self._deck.count(name, self._cap), width, look, chosen=column == self._column)]
        lines += [Text(" " * width)] * (self._above - 1 - (self._count < len(COLUMNS)))
        if not self._deck.total:
            return [*lines, *ghosts(name, width, look)]
        room = self._room(column)
        top = self._tops[column]
        if column == self._column:
            top = max(min(top, self._place), self._place - room + 1)
        top = self._tops[column] = max(0, min(top, len(cards) - room))
        framed, gap = self._framed, self._pitch - (FRAMED if self._framed else BARE)
        for place in range(top, min(len(cards), top + room)):
            if (face := self._face(cards[place].id)) is None:
                continue
            self.made += 1
            lines += card_lines(face, width, look, chosen=cards[place].id == self._chosen, framed=framed)
            lines += [Text(" " * width)] * gap
        if (more := len(cards) - top - room) > 0:
            del lines[len(lines) - gap :]
            words = _("{sign} {count} more").format(sign=look.glyphs.down, count=more)
            lines.append(padded(Text(f" {words}", look.faint), width, look))
        return lines

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y >= len(self._drawn):
            return Strip.blank(width, self.rich_style)
        strip = row_of(self._drawn[y]).strip
        return strip.apply_style(self.rich_style).adjust_cell_length(width, self.rich_style)

    @property
    def plain(self) -> list[str]:
        """The lines as they are drawn."""
        return [line.plain.rstrip() for line in self._drawn]

    def on_resize(self) -> None:
        """Another size."""
        self._drawn = []
        self._draw()

    def redraw(self) -> None:
        """Another theme."""
        self._drawn = []
        self._draw()

    # Keys and mouse

    def _go(self, column: int, place: int) -> None:
        self._column, self._place = column, place
        card = self._deck.at(column, place)
        self._chosen = card.id if card else ""
        self._draw()
        self.post_message(self.Chosen())

    def action_column(self, step: int) -> None:
        """The next column that has cards on that side."""
        columns = range(self._column + step, len(COLUMNS) if step > 0 else -1, step)
        for column in columns:
            if cards := self._deck.columns[COLUMNS[column]]:
                line = self._place - self._tops[self._column]
                self._go(column, max(0, min(self._tops[column] + line, len(cards) - 1)))
                return

    def action_card(self, step: int) -> None:
        """The card above or below."""
        if cards := self._deck.columns[COLUMNS[self._column]]:
            self._go(self._column, max(0, min(len(cards) - 1, self._place + step)))

    def action_page(self, step: int) -> None:
        """As many cards up or down as have room."""
        self.action_card(step * self._room(self._column))

    def action_edge(self, which: int) -> None:
        """The first or the last card of the column."""
        self.action_card(-len(self._deck.columns[COLUMNS[self._column]]) if which == 0 else 10**9)

    def on_mouse_scroll_down(self) -> None:
        """The wheel."""
        self.action_card(1)

    def on_mouse_scroll_up(self) -> None:
        """The wheel."""
        self.action_card(-1)

    def on_click(self, event: events.Click) -> None:
        """Chooses the card under the mouse; opens it when it is chosen already."""
        visible: Sequence[int] = self._visible()
        number = (event.x - 1) // (self._width() + 1)
        if event.y < self._above or not 0 <= number < len(visible):
            return
        column = visible[number]
        row = (event.y - self._above) // self._pitch
        card = self._deck.at(column, self._tops[column] + row)
        if card is None or row >= self._room(column):
            return
        if card.id == self._chosen:
            self.post_message(self.Opened())
        else:
            self._go(column, self._tops[column] + row)


def _same(one: Text, other: Text) -> bool:
    return one.plain == other.plain and one.spans == other.spans
