"""Notices that a server counted far fewer prompt tokens than were sent: some cut the prompt without a word. Pure."""

from __future__ import annotations

import re

from hermes_engine.protocols import ModelRequest

SMALLEST_WINDOW = 1000
"""Below this no server cuts: such a figure is a rough count, not a window."""
CHARACTERS_A_TOKEN = 5.0
"""More than almost any text has; a guess that is too low only misses a warning."""
_REPEATED = re.compile(r"(\W)\1+|(.)\2{7,}")


def suspected_truncation(request: ModelRequest, prompt_tokens: int) -> str:
    """A warning with the likely cause, or ""."""
    if prompt_tokens < SMALLEST_WINDOW:
        return ""
    texts = [message.content for message in request.messages]
    if _tokens(sum(map(len, texts))) <= prompt_tokens * 1.5:
        return ""
    sent = _tokens(sum(len(_REPEATED.sub(r"\1\2", text)) for text in texts))
    if sent <= prompt_tokens * 1.5:
        return ""
    return (
        f"the server counted {prompt_tokens:,} prompt tokens where at least {sent:,} were sent: it seems to have cut "
        "the conversation at its context size. Ollama does so without a word: raise num_ctx (OLLAMA_CONTEXT_LENGTH)"
    )


def _tokens(characters: int) -> int:
    return int(characters / CHARACTERS_A_TOKEN)
