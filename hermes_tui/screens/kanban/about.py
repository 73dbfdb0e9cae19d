"""The chosen card in short, under the board: what it is, who is at it, and what it asks, with the keys that answer. A
digit answers only what stands here whole.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.style import Style
from rich.text import Text

from hermes_tui.texts import _
from hermes_tui.widgets.cards import shown
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.rows import fold, shorten, spread
from hermes_tui.widgets.times import age_short, count_short, money, seconds_short

if TYPE_CHECKING:
    from hermes_engine.board import Card
    from hermes_engine.events import ApprovalAsked, QuestionAsked
    from hermes_tui.screens.agents.items import AgentItem
    from hermes_tui.widgets.blocks import Option, RequestBlock


class Asked:
    """What the chosen card's worker asks, as a block that knows whether it was seen whole."""

    def __init__(self) -> None:
        self.block: RequestBlock | None = None
        self._whole = False

    def follow(self, worker: AgentItem | None, pending: Sequence[ApprovalAsked | QuestionAsked]) -> None:
        """The request of this worker, if it has one."""
        event = _event(worker, pending) if worker is not None and worker.needs else None
        if event is None or worker is None:
            self.block, self._whole = None, False
        elif self.block is None or self.block.request != event.request:
            from hermes_tui.presenter.requests import request_block

            self.block, self._whole = request_block(event, worker.name), False

    def lines(self, width: int, most: int, look: Look) -> list[Text]:
        """The request in at most so many lines; where it is longer, where to read it."""
        if self.block is None:
            return []
        # what is much too long is not drawn four times a second to find that out
        rows = self.block.rows(width, look) if self.block.estimate(width) <= 2 * most + 8 else []
        self._whole = 0 < len(rows) <= most
        if not self._whole:
            return [shorten(Text(f" {shown(self.block.title)}", look.text), width),
                    Text(_(" a shows all of it and takes your answer"), look.soft)]  # fmt: skip
        self.block.end_shown(time.monotonic())
        return [_joined(row.segments) for row in rows]

    def option(self, character: str) -> tuple[RequestBlock, Option] | None:
        """What a digit stands for; None when nothing that was seen whole takes it."""
        block = self.block
        option = block.option_for(character) if block is not None and character.isdecimal() else None
        return (block, option) if block is not None and option is not None else None

    def takes_keys(self) -> bool:
        """Whether a digit may answer now."""
        return self.block is not None and self._whole and self.block.takes_keys(time.monotonic())


def _event(worker: AgentItem, pending: Sequence[ApprovalAsked | QuestionAsked]) -> ApprovalAsked | QuestionAsked | None:
    """What it asks; of a worker of another program, what its record says."""
    if worker.place == "elsewhere":
        from hermes_tui.screens.agents.talk import request_of

        return request_of(worker)
    return next((event for event in pending if event.request == worker.needs), None)


def _joined(segments: Sequence[object]) -> Text:
    line = Text()
    for segment in segments:
        line.append(segment.text, segment.style or Style.null())  # type: ignore[attr-defined]
    return line


def about(card: Card, worker: AgentItem | None, now: float, width: int, most: int, look: Look) -> list[Text]:
    """The card in at most so many lines."""
    facts = [card.run.profile if card.run is not None else card.assignee]
    facts += [worker.model.rpartition("/")[2]] if worker is not None and worker.model else []
    tokens = (worker.tokens if worker is not None else None) or (card.run.tokens if card.run is not None else 0)
    facts += [_("{n} tok").format(n=count_short(tokens))] if tokens else []
    facts += [money(worker.cost)] if worker is not None and worker.cost else []
    if card.run is not None:
        facts.append(_("at it {time}").format(time=seconds_short(int(max(0, now - card.run.started)))))
    else:
        facts.append(_("{state} for {time}").format(state=card.status, time=age_short(now - card.updated)))
    facts += [_("blocks {cards}").format(cards=" ".join(card.children))] if card.children else []
    right = Text(f" {look.glyphs.dot} ".join(facts), look.faint)
    title = Text(f" {card.id}  ", look.soft).append(shown(card.title), look.strong)
    if width >= 100 or title.cell_len + right.cell_len + 2 < width:
        lines = [spread(title, shorten(right, width // 2), width - 1)]
    else:
        lines = [shorten(title, width - 1), shorten(Text("   ").append_text(right), width - 1)]
    told = shown(worker.doing()) if worker is not None else shown(card.reason)
    result = shown(card.result)
    for words, style in ((told, look.text), (result, look.soft), (shown(card.body), look.faint)):
        if words:
            lines += [Text("   ").append_text(line) for line, _joint in fold(Text(words, style), width - 4)]
    return lines[:most]
