"""Every key of the app in one table: the overlay, `docs/keys.md` and the tests read it. Pure data."""

from __future__ import annotations

from dataclasses import dataclass

from hermes_tui.texts import _


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One row.

    Attributes:
        group: where the keys mean this.
        keys: as a person reads them.
        words: what they do.
        action: what the overlay runs when the row is chosen, "" for nothing.
        bound: the toolkit's names of the keys, where they are bindings.
    """

    group: str
    keys: str
    words: str
    action: str = ""
    bound: tuple[str, ...] = ()


def key_rows() -> tuple[KeyRow, ...]:
    """The table."""
    return (
        *_everywhere(),
        *_prompt(),
        *_working(),
        *_transcript(),
        *_asking(),
        *_work(),
        *_agents(),
        *_agent(),
        *_board(),
        *_batch(),
        *_lists(),
    )


def _everywhere() -> tuple[KeyRow, ...]:
    group = _("Everywhere")
    return (
        KeyRow(group, "F1, ? on an empty prompt", _("these keys"), "app.keys", ("f1",)),
        KeyRow(group, "Ctrl+P", _("everything there is, by name"), "app.palette", ("ctrl+p",)),
        KeyRow(
            group, "Alt+1, F2", _("the chat; also 1 where nothing is typed"), "app.screen('chat')", ("alt+1", "f2", "1")
        ),
        KeyRow(
            group,
            "Alt+2, F3",
            _("all agents; also 2 where nothing is typed"),
            "app.screen('agents')",
            ("alt+2", "f3", "2"),
        ),
        KeyRow(
            group,
            "Alt+3, F4",
            _("the board; also 3 where nothing is typed"),
            "app.screen('kanban')",
            ("alt+3", "f4", "3"),
        ),
        KeyRow(
            group,
            "Alt+4, F5",
            _("batch runs; also 4 where nothing is typed"),
            "app.screen('batch')",
            ("alt+4", "f5", "4"),
        ),
        KeyRow(group, "Ctrl+N", _("next question that waits for you"), "screen.next_request", ("ctrl+n",)),
        KeyRow(group, "Ctrl+T", _("work sidebar; again: back to the prompt"), "screen.work", ("ctrl+t",)),
        KeyRow(
            group, "Shift+Tab", _("what runs without asking: ask, edits, plan, auto"), "screen.mode", ("shift+tab",)
        ),
        KeyRow(group, "Ctrl+C", _("stop the turn, else clear the draft; again: quit"), "", ("ctrl+c",)),
        KeyRow(group, "Ctrl+D", _("quit, on an empty prompt"), "app.quit_or_ask", ("ctrl+d",)),
        KeyRow(group, "Ctrl+L", _("draw the screen again"), "app.redraw", ("ctrl+l",)),
        KeyRow(group, "Ctrl+Z", _("to the shell; `fg` comes back"), "app.suspend_process", ("ctrl+z",)),
        KeyRow(group, "Esc", _("close, go back, stop; the status line says which"), "", ("escape",)),
    )


def _prompt() -> tuple[KeyRow, ...]:
    group = _("Prompt")
    return (
        KeyRow(group, "Enter", _("send")),
        KeyRow(group, "Ctrl+J, Shift+Enter, Alt+Enter", _("new line; so does Enter after a \\")),
        KeyRow(group, "/", _("commands")),
        KeyRow(group, "@", _("files")),
        KeyRow(group, "Tab", _("take the proposal; on none: to the transcript"), "", ("tab",)),
        KeyRow(group, "↑ ↓", _("what was sent before; the draft is kept")),
        KeyRow(group, "Ctrl+R", _("search what was sent"), "screen.history", ("ctrl+r",)),
        KeyRow(group, "Ctrl+G", _("write in $EDITOR"), "screen.editor", ("ctrl+g",)),
        KeyRow(group, "Ctrl+O", _("open a paste, else the newest card"), "screen.details", ("ctrl+o",)),
        KeyRow(group, "Ctrl+A, Ctrl+E", _("start, end of the line")),
        KeyRow(group, "Alt+B, Alt+F", _("word left, right"), "", ("alt+b", "alt+f")),
        KeyRow(group, "Ctrl+W, Alt+Backspace", _("cut the word before"), "", ("ctrl+w", "alt+backspace")),
        KeyRow(group, "Ctrl+U, Ctrl+K", _("cut to the start, end of the line"), "", ("ctrl+u", "ctrl+k")),
        KeyRow(group, "Ctrl+Y", _("put back what was cut"), "", ("ctrl+y",)),
        KeyRow(group, "Ctrl+_", _("undo"), "", ("ctrl+underscore",)),
    )


def _working() -> tuple[KeyRow, ...]:
    group = _("While it works")
    return (
        KeyRow(group, "Esc", _("stop the turn; queue and draft stay")),
        KeyRow(group, "Enter", _("queue what is written; on nothing: send the first queued now")),
        KeyRow(group, "Ctrl+S", _("send now, into the running turn"), "screen.steer", ("ctrl+s",)),
        KeyRow(group, _("↑ on nothing"), _("take the last queued back")),
    )


def _transcript() -> tuple[KeyRow, ...]:
    group = _("Transcript (Tab, or click)")
    return (
        KeyRow(group, "PgUp PgDn", _("a page up, down; also from the prompt"), "", ("pageup", "pagedown")),
        KeyRow(
            group,
            "Home, End, Ctrl+End",
            _("oldest, newest; from the prompt when it is empty, else Ctrl+End"),
            "",
            ("home", "end", "ctrl+end"),
        ),
        KeyRow(group, "↑ ↓, k j", _("block above, below"), "", ("up", "down", "k", "j")),
        KeyRow(group, "[ ]", _("your message before, after"), "", ("left_square_bracket", "right_square_bracket")),
        KeyRow(group, "Space", _("open or close"), "", ("space",)),
        KeyRow(group, "Enter", _("the same; on a task's result: its agent"), "", ("enter",)),
        KeyRow(group, "y", _("copy the block, as it was written"), "", ("y",)),
    )


def _asking() -> tuple[KeyRow, ...]:
    group = _("A question")
    return (
        KeyRow(group, "1", _("yes, once")),
        KeyRow(group, "2", _("yes, for this session; Enter says it is meant")),
        KeyRow(group, "3", _("no, and tell it why")),
        KeyRow(group, "4", _("yes, always; Enter says it is meant")),
        KeyRow(group, _("y a n, arrows and Enter"), _("the same, after Ctrl+N")),
    )


def _work() -> tuple[KeyRow, ...]:
    group = _("Work sidebar (Ctrl+T)")
    return (
        KeyRow(group, "↑ ↓, k j, Home End", _("choose an agent")),
        KeyRow(group, "Enter", _("open it; on a count: show those it stands for")),
        KeyRow(group, "Space", _("its last words here")),
        KeyRow(group, "a, m", _("answer what it asks, tell it something")),
        KeyRow(group, "x, X", _("stop it, stop it and all below; on one that has ended: put it away")),
        KeyRow(group, "r", _("run its task again")),
    )


def _agents() -> tuple[KeyRow, ...]:
    group = _("Agents")
    return (
        KeyRow(
            group,
            "↑ ↓, k j, PgUp PgDn, Home End",
            _("choose"),
            "",
            ("up", "down", "k", "j", "pageup", "pagedown", "home", "end"),
        ),
        KeyRow(group, "Enter", _("open; a chat is gone to"), "", ("enter",)),
        KeyRow(group, "Space", _("look at it beside the list, or hide that"), "", ("space",)),
        KeyRow(group, "a, m", _("answer what it asks, tell it something"), "", ("a", "m")),
        KeyRow(group, "x, X", _("stop it, stop it and all below"), "", ("x", "X")),
        KeyRow(group, "r", _("run its task again; what was interrupted goes on"), "", ("r",)),
        KeyRow(group, "d, y", _("what it changed, copy its result"), "", ("d", "y")),
        KeyRow(group, "/, s", _("filter, sort"), "", ("slash", "s")),
        KeyRow(group, "o", _("ended ones of other folders too"), "", ("o",)),
        KeyRow(group, "q, Esc", _("back; nothing is stopped"), "", ("q",)),
        KeyRow(group, "?", _("these keys"), "", ("question_mark",)),
    )


def _agent() -> tuple[KeyRow, ...]:
    group = _("One agent")
    return (
        KeyRow(
            group, "m, Tab", _("write to it: Enter tells it at its next step, or goes on with it when it has ended")
        ),
        KeyRow(group, "Ctrl+S", _("stop its step, then tell it"), "", ("ctrl+s",)),
        KeyRow(group, "[ ]", _("agent beside it"), "", ("left_square_bracket", "right_square_bracket")),
        KeyRow(group, "a, 1 2 3 4", _("answer what it asks")),
        KeyRow(group, "x, X, r, d, y", _("as in the list")),
        KeyRow(group, "o", _("open an ended one as a chat")),
        KeyRow(group, "p, + -", _("play it again: pause, faster, slower; Esc ends it")),
    )


def _board() -> tuple[KeyRow, ...]:
    group = _("Board")
    rows = (
        ("Enter", _("the card in full; there: open a run, or the other card"), "open"),
        ("Space", _("more of the card below the board"), "peek"),
        ("n", _("write a new card"), "new"),
        ("e", _("change the card"), "edit"),
        ("H", _("move it left: take it back, let it go on, send it back, reopen"), "move(-1)"),
        ("L", _("move it right: block, have it reviewed, done, accept, put away"), "move(1)"),
        ("a", _("answer what its worker asks, also 1 2 3 4; unblock it with a comment"), "answer"),
        ("m", _("tell its worker something"), "message"),
        ("A", _("accept what was handed in"), "accept"),
        ("b", _("send it back with a note"), "send_back"),
        ("c", _("comment"), "comment"),
        ("p", _("priority"), "priority"),
        ("g", _("give it to another profile"), "assign"),
        ("r", _("try again: unblock, take from its worker, reopen"), "again"),
        ("x", _("stop it: block with a reason; its worker ends"), "stop"),
        ("d", _("what its worker changed"), "changes"),
        ("y", _("copy its result"), "copy"),
        ("/", _("filter"), "filter"),
        ("B", _("another board"), "boards"),
        ("s", _("start or stop working this board"), "work"),
    )
    return (
        KeyRow(group, "← →, h l", _("column"), "", ("left", "right", "h", "l")),
        KeyRow(group, "↑ ↓, k j, PgUp PgDn, Home End", _("card")),
        *(KeyRow(group, keys, words, f"board.{action}", (_BOUND.get(keys, keys),)) for keys, words, action in rows),
        KeyRow(group, "q, Esc", _("back; nothing is stopped"), "", ("q",)),
        KeyRow(group, _("x e g, Enter in a plan"), _("leave a card out, change it, another profile, create all")),
        KeyRow(group, _("Ctrl+S in a form"), _("save the card")),
    )


_BOUND = {"/": "slash", "Enter": "enter", "Space": "space"}
"""The toolkit's names of keys that people call otherwise."""


def _batch() -> tuple[KeyRow, ...]:
    group = _("Batch")
    return (
        KeyRow(group, "Enter", _("open the run; in a run the row: what it says, live while it runs"), "", ("enter",)),
        KeyRow(group, "n", _("start a run by a form"), "batch.new", ("n",)),
        KeyRow(group, "p", _("pause the run, let it go on; resume one that nobody works"), "batch.pause", ("p",)),
        KeyRow(group, "+ -", _("rows at once, while it runs"), "", ("plus", "minus")),
        KeyRow(group, "r", _("run the chosen failed row again"), "", ("r",)),
        KeyRow(group, "R", _("run all failed rows of the run again"), "batch.retry_all", ("R",)),
        KeyRow(group, "x", _("stop the run in order; with no run: make a sample file"), "batch.stop", ("x", "X")),
        KeyRow(group, "e", _("export the run for a trainer"), "batch.export", ("e",)),
        KeyRow(group, "y", _("copy the row's answer"), "", ("y",)),
        KeyRow(group, "f, /", _("which rows: all, running, failed, rejected, kept; by text"), "", ("f", "slash")),
        KeyRow(group, "s, c", _("sort, columns"), "", ("s", "c")),
        KeyRow(group, "Tab", _("statistics; beside the table where there is room"), "", ("tab",)),
        KeyRow(group, "[ ]", _("in a row: the one beside it"), "", ("left_square_bracket", "right_square_bracket")),
    )


def _lists() -> tuple[KeyRow, ...]:
    group = _("Lists and cards")
    return (
        KeyRow(group, "↑ ↓, PgUp PgDn", _("choose")),
        KeyRow(group, "Enter, 1 … 9", _("take")),
        KeyRow(group, "Esc", _("close")),
    )


def as_markdown() -> str:
    """The table as `docs/keys.md`."""
    lines = ["# Keys", "", "Made from `hermes_tui/screens/keys.py`; `F1` in the app shows the same.", ""]
    group = ""
    for row in key_rows():
        if row.group != group:
            group = row.group
            lines += [f"## {group}", "", "| keys | what they do |", "|---|---|"]
        lines.append(f"| `{row.keys}` | {row.words} |")
        following = key_rows()[key_rows().index(row) + 1 :]
        if following and following[0].group != group:
            lines.append("")
    return "\n".join(lines) + "\n"
