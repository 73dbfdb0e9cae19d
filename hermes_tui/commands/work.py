"""The slash command about what waits to be sent. Knows no front end."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_engine.errors import UnknownName, UsageError
from hermes_tui.cleaning import one_line
from hermes_tui.commands.host import CommandHost, Completion, Output
from hermes_tui.commands.registry import command, words
from hermes_tui.texts import _

_QUEUE_VERBS = ("drop", "up", "edit", "send", "clear")


def _queue_words(host: CommandHost, typed: str) -> list[Completion]:
    helps = (_("take one out"), _("move one up"), _("take one back into the prompt"), _("send the first now"), "")
    return words(typed, list(zip(_QUEUE_VERBS, helps, strict=True)))


@command("queue", args="[drop|up|edit N | send | clear]", help="Show and edit what waits to be sent", group="Work",
         while_busy=True, complete=_queue_words)  # fmt: skip
def queue(host: CommandHost, args: str) -> None:
    verb, _blank, number = args.partition(" ")
    items = list(host.engine.queued(host.session))
    if verb == "send":
        if not host.engine.send_next(host.session):
            raise UsageError(_("nothing waits"))
        return
    if verb == "clear":
        items.clear()
    elif verb in _QUEUE_VERBS:
        position = _position(number, len(items))
        item = items.pop(position)
        if verb == "up":
            items.insert(max(0, position - 1), item)
        elif verb == "edit":
            host.set_draft(item)
    elif verb:
        raise UnknownName("verb", verb, _QUEUE_VERBS)
    if verb:
        host.engine.set_queue(host.session, items)
    _show_queue(host, items)


def _position(number: str, count: int) -> int:
    if not number.strip().isdecimal() or not 1 <= int(number) <= count:
        raise UsageError(_("a number from the list is needed"), hint="/queue")
    return int(number) - 1


def _show_queue(host: CommandHost, items: Sequence[str]) -> None:
    if not items:
        host.show(Output("text", _("Nothing waits to be sent.")))
        return
    rows = tuple((str(number), one_line(item, 200)) for number, item in enumerate(items, 1))
    host.show(Output("table", title=_("Waiting"), columns=("#", _("message")), rows=rows))
