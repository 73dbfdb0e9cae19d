"""Pasted text kept aside: the prompt holds a short token for it, and what is sent holds the text, exactly."""

from __future__ import annotations

import re

from hermes_tui.texts import _, ngettext

MAX_LINES = 8
"""Lines that are put into the prompt as they are; more become a token."""

MAX_CHARACTERS = 1_000

_TOKEN = re.compile(r"\[[^\[\]\n]*\]")
_ODD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def as_pasted(text: str) -> str:
    """The text a person copied: terminals send CR where it had LF; a CRLF was one."""
    if "\n" not in text:
        text = text.replace("\r", "\n")
    return text.replace("\x00", "")


def needs_token(text: str) -> bool:
    """Whether the text is too long for the prompt, or holds what an editor would show wrongly or change."""
    return text.count("\n") >= MAX_LINES or len(text) > MAX_CHARACTERS or _ODD.search(text) is not None


class Pastes:
    """What was pasted, by token."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._opened: dict[str, str] = {}
        """What an editor made of the line ends of a text that was opened in it, and the text."""

    def add(self, text: str) -> str:
        """Keeps a text; returns its token."""
        lines = len(text.splitlines())
        if lines > 1:
            amount = ngettext("{count} line", "{count} lines", lines).format(count=f"{lines:,}")
        else:
            amount = ngettext("{count} character", "{count} characters", len(text)).format(count=f"{len(text):,}")
        number = 1
        while True:
            suffix = f" #{number}" if number > 1 else ""
            token = "[" + _("Pasted {amount}{suffix} · ^O show").format(amount=amount, suffix=suffix) + "]"
            if token not in self._texts:
                self._texts[token] = text
                return token
            if self._texts[token] == text:
                return token
            number += 1

    def expand(self, draft: str) -> str:
        """The draft with each token replaced by its text, and what was opened and left as it was by what it was."""
        if not self._texts:
            return draft
        for shown, text in self._opened.items():
            before, found, after = draft.partition(shown)
            if found:
                return self.expand(before) + text + self.expand(after)
        return _TOKEN.sub(lambda match: self._texts.get(match[0], match[0]), draft)

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Where tokens stand in a line."""
        if not self._texts or "[" not in line:
            return []
        return [match.span() for match in _TOKEN.finditer(line) if match[0] in self._texts]

    def open(self, token: str) -> str | None:
        """The text a token stands for as an editor holds it, which knows one kind of line end only."""
        text = self._texts.get(token)
        if text is None:
            return None
        shown = "\n".join([*text.splitlines(), *([""] if text.endswith(("\n", "\r")) else [])])
        if shown != text:
            self._opened[shown] = text
        return shown

    def clear(self) -> None:
        """Forgets everything."""
        self._texts.clear()
        self._opened.clear()
