"""Atropos' scored groups: token ids, training masks and scores of whole conversations, one group a line.

A mask holds the token itself where it is trained (what the model said) and -100 elsewhere; token by token as long as
the tokens. Measured against atroposlib 0.4.0 (docs/batch.md, Exports). Knows the tokenizer by its chat template only.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from hermes_engine.batch.export.forms import responses, with_calls
from hermes_engine.batch.export.turns import Unfit, turns_of, whole_rounds
from hermes_engine.batch.folder import RunFolder
from hermes_engine.batch.job import Record
from hermes_engine.batch.ledger import identity
from hermes_engine.batch.tokens import RecordedTokens
from hermes_engine.errors import UsageError

UNTRAINED = -100
REWRITES = "the tokenizer's chat template rewrites earlier turns"
QUOTES = "its text quotes special tokens of the tokenizer, which would be taken for its own"


class Tokenizer(Protocol):
    """What is used of a tokenizer of the transformers package."""

    def apply_chat_template(self, conversation: list[dict[str, str]], **options: Any) -> Any:
        """Token ids of a conversation: a list, or a mapping that has them under `input_ids`."""
        ...

    def __call__(self, text: str, **options: Any) -> Any:
        """Token ids of a text, with the places of its characters where it can tell."""
        ...


def load_tokenizer(folder: Path | None) -> Tokenizer:
    """The tokenizer in a folder; nothing is downloaded.

    Raises:
        UsageError: no folder, no tokenizer in it, one without a chat template, or the package is missing.
    """
    if folder is None:
        raise UsageError("--format atropos needs --tokenizer DIR, a folder with a tokenizer and its chat template")
    if not folder.is_dir():
        raise UsageError(f"there is no tokenizer folder {folder}")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")  # it would greet with advice about models
    try:
        from transformers import AutoTokenizer  # the extra `train`: 2 s and 150 MB
    except ImportError:
        raise UsageError("the package transformers is missing", hint="pip install '.[train]'") from None
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except (OSError, ValueError) as error:
        raise UsageError(f"{folder} holds no tokenizer: {' '.join(str(error).split())[:200]}") from error
    if not getattr(tokenizer, "chat_template", None):
        raise UsageError(f"the tokenizer in {folder} has no chat template")
    loaded: Tokenizer = tokenizer
    return loaded


@dataclass(frozen=True, slots=True)
class Told:
    """One conversation: its tokens, the mask over them, its messages, and how likely each token was ([]: unknown)."""

    tokens: list[int]
    masks: list[int]
    messages: list[dict[str, str]]
    logprobs: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Atropos:
    """See the module's docstring.

    Attributes:
        tokenizer: makes the tokens of rows of which none were recorded; None: such rows are left out.
        recorded: the run's tokens as its server told them.
        found: of how many rows they were used ("recorded"), of how many the tokenizer made them ("made"), and how many
            have turns that are not trained whole ("cut").
    """

    tokenizer: Tokenizer | None
    recorded: RecordedTokens | None = None
    found: Counter[str] = field(default_factory=Counter)
    name: ClassVar[str] = "atropos"

    def rows(self, record: Record) -> list[Any]:
        """One group of one."""
        return [self.group([self.told(record)], [1.0 if record["completed"] else 0.0])]

    def told(self, record: Record) -> Told:
        """A row's conversation: its recorded tokens, else those of the tokenizer.

        Raises:
            Unfit: see `tokenized`; or a text quotes special tokens, so that turns would end and begin where none do.
        """
        messages = messages_of(record)
        spoken = self.recorded.of(identity(record)) if self.recorded else None
        if spoken is None:
            if any(special in message["content"] for special in self._specials for message in messages):
                raise Unfit(QUOTES)
            told = Told(*self.tokenized(messages), messages)
            self.found["made"] += 1
            return told
        masks = [token if said else UNTRAINED for token, said in zip(spoken.tokens, spoken.said, strict=True)]
        self.found["recorded"] += 1
        self.found["cut"] += bool(spoken.cut)
        return Told(*_trained(spoken.tokens, masks), messages, spoken.logprobs)

    def notes(self) -> Iterator[str]:
        """What a person should know about the tokens of rows told until now."""
        if self.recorded and self.found["made"]:
            number = self.found["made"]
            yield f"{number} rows have no recorded tokens: the tokenizer made theirs, without log-probabilities"
        if self.found["cut"]:
            number = self.found["cut"]
            yield f"{number} rows are trained in part: later requests repeated what was said with other tokens"

    def group(self, told: Sequence[Told], scores: Sequence[float], *, imitate: bool = True) -> dict[str, Any]:
        """Conversations with their scores as one group; the same keys in every group.

        Args:
            told: samples of one prompt.
            scores: of each.
            imitate: the trainer is to learn the texts as they are, not by comparing scores.
        """
        sft = {"sft": True} if imitate else {}
        return {
            "tokens": [item.tokens for item in told],
            "masks": [item.masks for item in told],
            "scores": list(scores),
            "messages": [item.messages for item in told],
            "overrides": [dict(sft) for _ in told],
            "group_overrides": sft,
            "inference_logprobs": [item.logprobs for item in told] if all(item.logprobs for item in told) else [],
        }

    def beside(self, target: Path) -> None:
        """Nothing."""

    def tokenized(self, messages: Sequence[dict[str, str]]) -> tuple[list[int], list[int]]:
        """Tokens of a conversation and its mask.

        Raises:
            Unfit: the template changes earlier turns when later ones come, so no mask is right; or nothing is trained.
        """
        if self.tokenizer is None:
            raise Unfit("no tokens were recorded, and no --tokenizer is given to make them")
        told = list(messages)
        if (quick := self._by_places(told)) is not None:
            return quick
        tokens = self._ids(told)
        masks = [UNTRAINED] * len(tokens)
        for place, message in enumerate(told):
            if message["role"] != "assistant":
                continue
            start = len(self._ids(told[:place], add_generation_prompt=True))
            until = self._ids(told[: place + 1])
            if until != tokens[: len(until)]:
                raise Unfit(REWRITES)
            masks[start : len(until)] = tokens[start : len(until)]
        return _trained(tokens, masks)

    @property
    def _specials(self) -> list[str]:
        added = getattr(self.tokenizer, "added_tokens_decoder", {})
        return [token.content for token in added.values() if token.special]

    def _by_places(self, told: list[dict[str, str]]) -> tuple[list[int], list[int]] | None:
        """The same by one reading of the whole text, where the tokenizer says at which characters tokens stand.

        None when it does not, or a turn does not begin and end between two tokens.
        """
        if not getattr(self.tokenizer, "is_fast", False):
            return None
        whole = self._text(told)
        assert self.tokenizer is not None
        read = self.tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
        tokens, spans = [int(token) for token in read["input_ids"]], read["offset_mapping"]
        begins = {begin: number for number, (begin, _) in reversed(list(enumerate(spans)))}
        begins.setdefault(len(whole), len(spans))
        masks = [UNTRAINED] * len(tokens)
        for place, message in enumerate(told):
            if message["role"] != "assistant":
                continue
            before, until = self._text(told[:place], add_generation_prompt=True), self._text(told[: place + 1])
            if not (whole.startswith(until) and until.startswith(before)):
                raise Unfit(REWRITES)
            start, end = begins.get(len(before)), begins.get(len(until))
            if start is None or end is None:
                return None
            masks[start:end] = tokens[start:end]
        return _trained(tokens, masks)

    def _text(self, messages: list[dict[str, str]], **options: Any) -> str:
        if not messages and not options:
            return ""
        assert self.tokenizer is not None
        return str(self.tokenizer.apply_chat_template(messages, tokenize=False, **options))

    def _ids(self, messages: list[dict[str, str]], **options: Any) -> list[int]:
        if not messages and not options:
            return []
        assert self.tokenizer is not None
        made = self.tokenizer.apply_chat_template(messages, tokenize=True, **options)
        ids = made if isinstance(made, list) else made["input_ids"]
        return [int(token) for token in ids]


def atropos_of(folder: RunFolder, tokenizer: Path | None) -> Atropos:
    """The form for a run: with the tokens it recorded, and a tokenizer for rows without.

    Raises:
        UsageError: no tokenizer is named and no tokens were recorded; else see `load_tokenizer`.
        StateError: the run's tokens cannot be read.
    """
    recorded = RecordedTokens(folder)
    return Atropos(load_tokenizer(tokenizer) if tokenizer or not recorded else None, recorded or None)


def _trained(tokens: list[int], masks: list[int]) -> tuple[list[int], list[int]]:
    if all(mask == UNTRAINED for mask in masks):
        raise Unfit("nothing in it would be trained")
    return tokens, masks


def messages_of(record: Record) -> list[dict[str, str]]:
    """The conversation as role and content, calls and results as text between tags."""
    told: list[dict[str, str]] = []
    for turn in whole_rounds(turns_of(record)):
        told.append({"role": turn.role, "content": with_calls(turn)})
        if turn.calls:
            told.append({"role": "tool", "content": responses(turn.calls)})
    return told
