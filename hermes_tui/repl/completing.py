"""Slash commands as prompt_toolkit completes them, out of the one registry."""

from __future__ import annotations

from collections.abc import Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from hermes_tui.cleaning import one_line
from hermes_tui.commands import CommandHost, complete


class SlashCompleter(Completer):
    """Completes a line that begins with `/`; may read the disk, so it runs in a thread."""

    def __init__(self, host: CommandHost) -> None:
        self._host = host

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Proposals for the text before the cursor."""
        text = document.text_before_cursor
        for item in complete(text, self._host):
            yield Completion(
                item.text,
                start_position=item.start - len(text),
                display=one_line(item.text, 60),
                display_meta=one_line(item.help, 70),
            )
