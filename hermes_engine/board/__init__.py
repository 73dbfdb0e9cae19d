"""The board: cards, the moves between their states, claims by workers. `Boards` opens one, `Board` and `Hold` are it.

Knows no agent, no dispatcher and no screen: those stand on it. What a card's text says is data throughout.
"""

from hermes_engine.board.boards import DEFAULT_BOARD, BoardInfo, Boards
from hermes_engine.board.claims import Board, Reclaimed
from hermes_engine.board.dialect import Changes
from hermes_engine.board.hold import Hold
from hermes_engine.board.owners import lives, this_owner
from hermes_engine.board.values import (
    STATES,
    WAITING,
    Attachment,
    BoardGone,
    Card,
    CardDraft,
    CardEvent,
    Claim,
    Comment,
    Details,
    Ending,
    Failure,
    IllegalMove,
    Owner,
    Role,
    Run,
    RunOver,
    State,
    UnknownCard,
)

__all__ = [
    "DEFAULT_BOARD",
    "STATES",
    "WAITING",
    "Attachment",
    "Board",
    "BoardGone",
    "BoardInfo",
    "Boards",
    "Card",
    "CardDraft",
    "CardEvent",
    "Changes",
    "Claim",
    "Comment",
    "Details",
    "Ending",
    "Failure",
    "Hold",
    "IllegalMove",
    "Owner",
    "Reclaimed",
    "Role",
    "Run",
    "RunOver",
    "State",
    "UnknownCard",
    "lives",
    "this_owner",
]
