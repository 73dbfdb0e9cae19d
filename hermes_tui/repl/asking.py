"""What waits for the person in the plain shell: which typed lines answer it, and the words of the prompt meanwhile.
Knows no terminal. All of it runs on the front's thread.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hermes_engine.events import ApprovalAsked, Event, QuestionAsked, RequestSettled
from hermes_tui.cleaning import one_line
from hermes_tui.commands.answers import read_answer
from hermes_tui.printing.lines import request_lines
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_tui.repl.shell import Shell

ANSWER_DELAY_SECONDS = 0.4
"""A request that just appeared takes no answer: the key was meant for something else."""

Asked = ApprovalAsked | QuestionAsked


class Asking:
    """The requests that wait in a shell, the oldest first."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self.waiting: dict[str, Asked] = {}
        self._shown_at = 0.0
        self._answered = ""

    def hear(self, event: Event) -> None:
        """Keeps what waits; prints the one whose turn it is."""
        if isinstance(event, (ApprovalAsked, QuestionAsked)):
            self.waiting[event.request] = event
            if len(self.waiting) == 1:
                self._show(event)
        elif isinstance(event, RequestSettled) and event.request in self.waiting:
            first = next(iter(self.waiting)) == event.request
            del self.waiting[event.request]
            following = next(iter(self.waiting.values()), None)
            pending = {asked.request for asked in self._shell.engine.broker.pending()}
            if first and following and following.request in pending:  # the answer may have been for it too
                self._show(following)

    def only(self, agent: str, request: Asked | None) -> None:
        """Of an agent in another program just this waits, or nothing."""
        for asked in [one for one in self.waiting.values() if one.agent == agent]:
            if request is None or asked.request != request.request:
                self.hear(RequestSettled(request=asked.request))
        if request is not None and request.request not in self.waiting:
            self.hear(request)
        self._shell.front.changed()

    def _show(self, request: Asked) -> None:
        self._shown_at = time.monotonic()
        asker = "" if self._own(request) else self._asker(request)
        self._shell.front.put(request_lines(request, asker, worded=self._talked_to(request)))

    def answer(self, text: str) -> bool | None:
        """Takes a typed text as an answer, None when it is none: a number answers what was asked first, words only
        what the one who is talked to asks. False right after a request came up: what was typed was meant for the chat.
        """
        word, _blank, why = text.strip().partition(" ")
        numbered = len(word) == 1 and word.isdecimal() and (not why or word == "3")
        first = next(iter(self.waiting.values()))
        request = first if numbered else next(filter(self._talked_to, self.waiting.values()), None)
        if request is None:
            return None
        answer = read_answer(request, text)
        if numbered and isinstance(request, QuestionAsked) and not self._talked_to(request):
            answer = answer if answer is not None and answer.note in request.choices else None
        if answer is None and numbered:
            words = _("{word} is no answer to what {name} asks.")
            self._shell.say("error", words.format(word=word, name=self._asker(request)))
            return True
        if answer is None:
            return None
        if time.monotonic() - self._shown_at < ANSWER_DELAY_SECONDS:
            self._shell.say("error", _("A question came up just now; press Enter again to answer it."))
            return False
        self._answered = request.request
        if not self._shell.engine.answer(request.request, answer) and request.agent == self._shell.watch.agent:
            self._shell.watch.answer(request.request, answer)
        return True

    def _own(self, request: Asked) -> bool:
        return request.session == self._shell.session

    def _talked_to(self, request: Asked) -> bool:
        watched = self._shell.watch.agent
        return self._own(request) or (bool(watched) and request.agent == watched)

    def _asker(self, request: Asked) -> str:
        row = self._shell.engine.supervisor.row(request.agent)
        return one_line(row.name, 40) if row else self._shell.watch.name

    @property
    def prompt(self) -> str:
        """The words before the cursor: who asks what, and how it is answered; "" when nothing waits.

        What has just been answered is not asked again meanwhile.
        """
        request = next(iter(self.waiting.values()), None)
        if request is None or request.request == self._answered:
            return ""
        who = "" if self._own(request) else f"{self._asker(request)}: "
        if isinstance(request, ApprovalAsked):
            choices = _("1 yes  2 session  3 no  4 always") if request.rule else _("1 yes  3 no")
            return f"◆ {who}{one_line(request.title, 50)}  {choices} ❯ "
        words = "" if self._talked_to(request) else "  " + _("/attach {name} answers").format(name=self._asker(request))
        return f"◆ {who}{one_line(request.question, 50)}{words} ❯ "
