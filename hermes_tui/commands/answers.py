"""Reads what a person types as the answer to a waiting request. Knows no front end."""

from __future__ import annotations

from hermes_engine.events import ApprovalAsked, QuestionAsked
from hermes_engine.requests import Answer, Choice

_WORDS: dict[str, Choice] = {
    "1": "once",
    "y": "once",
    "yes": "once",
    "once": "once",
    "2": "session",
    "a": "session",
    "session": "session",
    "3": "no",
    "n": "no",
    "no": "no",
    "4": "always",
    "always": "always",
}
_FOR_GOOD = ("session", "always")


def read_answer(event: ApprovalAsked | QuestionAsked, text: str) -> Answer | None:
    """The answer a line means, or None when it is not one.

    An approval takes `1 y yes`, `2 a session`, `3 n no` (further words say why) and `4 always`; what allows more
    than once only where the request names a rule. A question takes a choice's number, or any words.
    """
    typed = text.strip()
    if not typed:
        return None
    if isinstance(event, QuestionAsked):
        if typed.isdecimal() and 1 <= int(typed) <= len(event.choices):
            return Answer("answer", event.choices[int(typed) - 1])
        return Answer("answer", typed)
    first, _blank, why = typed.partition(" ")
    choice = _WORDS.get(first.lower().rstrip(",.:;"))
    if choice is None or (why and choice != "no") or (choice in _FOR_GOOD and not event.rule):
        return None
    return Answer(choice, why.strip())
