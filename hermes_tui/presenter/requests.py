"""What a request offers: its choices, in order, and the words for how it was settled."""

from __future__ import annotations

from hermes_engine.events import ApprovalAsked, QuestionAsked
from hermes_engine.requests import WITHDRAWN
from hermes_tui.texts import _
from hermes_tui.widgets.blocks import Option, RequestBlock

_DIFF_TOOLS = frozenset({"patch", "write_file"})


def request_block(event: ApprovalAsked | QuestionAsked, asker: str) -> RequestBlock:
    """The block that shows a request."""
    if isinstance(event, QuestionAsked):
        options = [Option(number, "answer", choice, note=choice) for number, choice in enumerate(event.choices[:8], 1)]
        if options:
            options.append(Option(len(options) + 1, "answer", _("Something else…"), asks_text=True))
        return RequestBlock(
            event.request, asker=_("{name} asks").format(name=asker), title=event.question, options=options
        )
    return RequestBlock(
        event.request,
        asker=_("{name} asks").format(name=asker),
        title=event.title,
        detail=event.detail,
        reason=event.reason,
        options=approval_options(event.rule),
        diff=event.name in _DIFF_TOOLS,
        rule=event.rule,
    )


def approval_options(rule: str) -> list[Option]:
    """Once, this session, no and why, always; the second and fourth where a rule can be remembered."""
    options = [Option(1, "once", _("Yes"), "y")]
    if rule:
        options.append(Option(2, "session", _("Yes, this session"), "a"))
    options.append(Option(3, "no", _("No, tell it why…"), "n", asks_text=True))
    if rule:
        options.append(Option(4, "always", _("Always")))
    return options


def settled_words(choice: str, note: str) -> tuple[str, bool]:
    """How a request ended, and whether well."""
    words = {
        "once": _("Allowed once"),
        "session": _("Allowed for this session"),
        "always": _("Allowed always"),
        "answer": _("Answered"),
    }
    if choice in words:
        return (f"{words[choice]}: {note}" if note else words[choice]), True
    if note == WITHDRAWN.note:
        return _("Withdrawn"), False
    return (_("Refused: {note}").format(note=note) if note else _("Refused")), False
