"""The tokens of a reply as servers tell them beside its words. Pure.

vLLM has `prompt_token_ids` beside `choices` and `token_ids` in a choice, SGLang both in the choice, llama.cpp an `id`
in each entry of `logprobs` and nothing of the prompt.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

from hermes_engine.messages import ReplyTokens, Usage


class TokenReader:
    """Takes chunks in order, or a whole reply as one."""

    def __init__(self) -> None:
        self._prompt = array("q")
        self._tokens = array("q")
        self._named = array("q")
        self._logprobs = array("d")
        self._odd = False

    def feed(self, chunk: Mapping[str, Any], choice: Mapping[str, Any]) -> None:
        """Takes what a chunk and its choice tell."""
        try:
            if not self._prompt:
                self._prompt.extend(_list(chunk.get("prompt_token_ids")) or _list(choice.get("prompt_token_ids")))
            self._tokens.extend(_list(choice.get("token_ids")))
            told = choice.get("logprobs")
            for entry in _list(told.get("content")) if isinstance(told, dict) else ():
                self._logprobs.append(entry["logprob"])
                if "id" in entry:
                    self._named.append(entry["id"])
        except (TypeError, KeyError, AttributeError, OverflowError):
            self._odd = True

    def result(self, usage: Usage) -> ReplyTokens | None:
        """The tokens; None where the server did not tell each one of the reply."""
        tokens = self._tokens or self._named
        if self._odd or not tokens or len(tokens) != len(self._logprobs):
            return None
        if usage.tokens_known and usage.completion_tokens not in (0, len(tokens)):
            return None
        return ReplyTokens(self._prompt, tokens, self._logprobs)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
