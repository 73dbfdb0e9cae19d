"""Slash commands as prompt_toolkit completes them, out of the one registry, and files after `@`."""

from __future__ import annotations

from collections.abc import Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from hermes_tui.cleaning import one_line
from hermes_tui.commands import CommandHost, complete
from hermes_tui.files import FileFinder, mention


class SlashCompleter(Completer):
    """Completes commands and words that begin with `@`; may read the disk, so it runs in a thread."""

    def __init__(self, host: CommandHost) -> None:
        self._host = host
        self._files = FileFinder()

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Proposals for the text before the cursor."""
        text = document.text_before_cursor
        at = None if text.startswith("/") else mention(text)
        if at is not None:
            for path in self._files.find(self._host.engine.view(self._host.session).cwd, text[at + 1 :]):
                yield Completion(f"@{path}", start_position=at - len(text), display=one_line(path, 60))
            return
        for item in complete(text, self._host):
            yield Completion(
                item.text,
                start_position=item.start - len(text),
                display=one_line(item.text, 60),
                display_meta=one_line(item.help, 70),
            )
