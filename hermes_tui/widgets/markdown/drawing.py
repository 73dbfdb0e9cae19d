"""Draws Markdown as rows: plain words first, few signs, no boxes, code with a thin edge that wraps and loses nothing.

Text is never read as mark-up of the screen toolkit; raw HTML is shown as it is written. Knows no block.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.style import Style
from rich.text import Text

from hermes_tui.widgets.highlight import CODE
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.markdown.tables import Table, draw_table
from hermes_tui.widgets.rows import BLANK, Row, fold, row_of, segments_of

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MIN_WIDTH = 8

_BOX = re.compile(r"\[([ xX])\](?: +|\Z)")


@functools.lru_cache(maxsize=1)
def parser() -> MarkdownIt:
    """The one Markdown parser."""
    # 20 ms to import: not before the first answer is drawn
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table").enable("strikethrough")


def draw(source: str, width: int, look: Look) -> list[Row]:
    """The rows of a Markdown source, without blank rows at its ends."""
    return _Drawing(look).run(parser().parse(source), width)


def draw_code(code: str, language: str, width: int, look: Look) -> list[Row]:
    """The rows of a piece of code."""
    return _code_rows(code, language, width, look)


@dataclass(slots=True)
class _Edge:
    """What stands left of the rows inside an item or a quotation: `first` once, then `rest`."""

    first: Text
    rest: Text
    decoration: bool = False
    used: bool = False

    def take(self) -> Text:
        text = self.rest if self.used else self.first
        self.used = True
        return text


class _Drawing:
    def __init__(self, look: Look) -> None:
        self.look = look
        self.rows: list[Row] = []
        self.edges: list[_Edge] = []
        self.tight: list[bool] = [False]
        self.between = False
        self.heading = ""

    def run(self, tokens: Sequence[Token], width: int) -> list[Row]:
        self.width = max(MIN_WIDTH, width)
        self._blocks(iter(tokens))
        return self.rows

    @property
    def room(self) -> int:
        return max(4, self.width - sum(edge.rest.cell_len for edge in self.edges))

    def _blocks(self, tokens: Iterator[Token]) -> None:
        for token in tokens:
            kind = token.type
            if kind.endswith("_close"):
                self._close(kind)
            elif kind in ("bullet_list_open", "ordered_list_open"):
                self._list(token, tokens)
            elif kind == "blockquote_open":
                self._gap()
                mark = Text(f"{self.look.glyphs.quote} ", self.look.faint)
                self.edges.append(_Edge(mark, mark, decoration=True))
            elif kind == "table_open":
                self._table(tokens)
            elif kind == "inline":
                self._emit(fold(self._inline(token.children or ()), self.room))
                self.between = True
            elif kind in ("paragraph_open", "heading_open"):
                self._gap()
                self.heading = token.tag if kind == "heading_open" else ""
            else:
                self._leaf(token)

    def _close(self, kind: str) -> None:
        if kind == "blockquote_close":
            self.edges.pop()
            self.between = True
        elif kind == "heading_close":
            self.heading = ""

    def _leaf(self, token: Token) -> None:
        self._gap()
        if token.type in ("fence", "code_block"):
            language = (token.info or "").strip().partition(" ")[0]
            code = token.content[:-1] if token.content.endswith("\n") else token.content
            self._add(_code_rows(code, language, self.room, self.look))
        elif token.type == "hr":
            self._emit([(Text(self.look.glyphs.line * min(self.room, 24), self.look.line), None)])
        elif token.content:
            self._emit(fold(Text(token.content.rstrip("\n"), self.look.soft), self.room))
        self.between = True

    def _gap(self) -> None:
        """A blank row between two blocks, not inside a tight list and not at the start."""
        if self.between and not self.tight[-1] and self.rows:
            edge = Text().join([edge.rest for edge in self.edges if edge.used]) if self.edges else Text()
            self.rows.append(row_of(edge, len(edge.plain)) if edge.plain.strip() else BLANK)
        self.between = False

    def _emit(self, lines: Iterable[tuple[Text, str | None]]) -> None:
        self._add([row_of(line, 0, joint) for line, joint in lines])

    def _add(self, rows: Iterable[Row]) -> None:
        if not self.edges:
            self.rows.extend(rows)
            return
        for row in rows:
            bare = all(edge.decoration or edge.used for edge in self.edges)
            edge = Text().join([edge.take() for edge in self.edges])
            inset = len(edge.plain) + row.inset if bare else 0
            self.rows.append(row.behind(segments_of(edge), edge.cell_len, inset))

    def _list(self, opening: Token, tokens: Iterator[Token]) -> None:
        ordered = opening.type == "ordered_list_open"
        number = int(opening.attrs.get("start", 1)) if ordered else 0
        tight, body = _list_body(opening, tokens)
        self._gap()
        self.tight.append(tight)
        items = list(_items(body))
        digits, bullet = len(str(number + len(items) - 1)), self.look.glyphs.bullet
        for item in items:
            box = _take_box(item, self.look)
            mark = f"{number}.".rjust(digits + 1) + (f" {box}" if box else "") if ordered else box or bullet
            number += 1
            if not tight:
                self._gap()
            first = Text(f"{mark} ", self.look.soft)
            self.edges.append(_Edge(first, Text(" " * first.cell_len)))
            self.between = False
            before = len(self.rows)
            self._blocks(iter(item))
            if len(self.rows) == before:
                self._emit([(Text(), None)])
            self.edges.pop()
            self.between = True
        self.tight.pop()
        self.between = True

    def _table(self, tokens: Iterator[Token]) -> None:
        self._gap()
        table = Table()
        for token in tokens:
            if token.type == "table_close":
                break
            if token.type == "tr_open":
                table.rows.append([])
            elif token.type in ("th_open", "td_open"):
                style = str(token.attrs.get("style", ""))
                table.align.append("right" if "right" in style else "center" if "center" in style else "left")
            elif token.type == "inline":
                table.rows[-1].append(self._inline(token.children or ()))
        self._add(draw_table(table, self.room, self.look))
        self.between = True

    def _inline(self, tokens: Iterable[Token]) -> Text:
        look = self.look
        text = Text()
        styles: list[Style] = [look.strong if self.heading else look.text]
        if self.heading == "h1":
            styles[0] = look.strong + Style(underline=True)
        links: list[str] = []
        for token in tokens:
            kind, style = token.type, styles[-1]
            if kind == "text":
                text.append(token.content, style)
            elif kind == "code_inline":
                text.append(token.content, style + look.code)
            elif kind in ("softbreak", "hardbreak"):
                text.append("\n", style)  # models end lines where they mean it
            elif kind in _INLINE_STYLES:
                styles.append(style + _INLINE_STYLES[kind])
            elif kind == "link_open":
                links.append(str(token.attrs.get("href", "")))
                styles.append(style + Style(underline=True))
            elif kind == "link_close":
                styles.pop()
                _append_address(text, links.pop(), look)
            elif kind == "image":
                text.append(token.content or "image", style + Style(italic=True))
                _append_address(text, str(token.attrs.get("src", "")), look)
            elif kind.endswith("_close"):
                styles.pop()
            else:
                text.append(token.content, look.soft)
        return text


_INLINE_STYLES = {"strong_open": Style(bold=True), "em_open": Style(italic=True), "s_open": Style(strike=True)}


def _append_address(text: Text, address: str, look: Look) -> None:
    """The address after a link's words, unless the words are the address."""
    shown = address.removeprefix("mailto:")
    if shown and not text.plain.endswith(shown):
        text.append(f" ({shown})", look.faint)


def _list_body(opening: Token, tokens: Iterator[Token]) -> tuple[bool, list[Token]]:
    """The tokens inside a list, and whether its items stand close together."""
    closing = opening.type.replace("_open", "_close")
    body: list[Token] = []
    for token in tokens:
        if token.type == closing and token.level == opening.level:
            break
        body.append(token)
    own = [token for token in body if token.type == "paragraph_open" and token.level == opening.level + 2]
    return all(token.hidden for token in own), body


def _items(body: Sequence[Token]) -> Iterator[list[Token]]:
    """The tokens of each item of a list."""
    if not body:
        return
    level = body[0].level
    item: list[Token] = []
    for token in body:
        if token.level == level and token.type == "list_item_open":
            item = []
        elif token.level == level and token.type == "list_item_close":
            yield item
        else:
            item.append(token)


def _take_box(item: Sequence[Token], look: Look) -> str:
    """The sign of an item that can be ticked, taken out of its words; "" for any other item."""
    words = item[1].children if len(item) > 1 and item[0].type == "paragraph_open" else None
    match = _BOX.match(words[0].content) if words and words[0].type == "text" else None
    if match is None or not words:
        return ""
    words[0].content = words[0].content[match.end() :]
    return look.glyphs.unticked if match[1] == " " else look.glyphs.ticked


def _code_rows(code: str, language: str, width: int, look: Look) -> list[Row]:
    edge = Text(f"{look.glyphs.gutter} ", look.line)
    text = Text(code, look.text, tab_size=4)
    for start, end, kind in CODE.spans(code, language):
        text.stylize(look.syntax[kind], start, end)
    rows: list[Row] = []
    for line in text.split("\n", allow_blank=True):
        for piece, joint in fold(line, width - 2):
            whole = edge.copy()
            whole.append_text(piece)
            rows.append(row_of(whole, 2, joint))
    return rows
