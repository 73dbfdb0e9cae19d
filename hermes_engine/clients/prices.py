"""What a model costs and how much it can hold: from the list a server gives, or as the person set it. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hermes_engine.messages import Usage

WINDOW_FIELDS = (
    "context_length",
    "max_model_len",
    "context_window",
    "max_context_length",
    "max_context_window",
    "max_input_tokens",
    "n_ctx",
    "num_ctx",
)
"""Names under which servers tell how many tokens fit."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens."""

    input: float
    output: float


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices a person set; they win over those a server lists.

    Attributes:
        by_model: exact model names.
        default: for every other model, where one price was set for a run.
    """

    by_model: Mapping[str, Price] = dataclasses.field(default_factory=dict)
    default: Price | None = None

    def of(self, *names: str) -> Price | None:
        """The price under the first of these names that has one."""
        return next((self.by_model[name] for name in names if name in self.by_model), self.default)


def costed(usage: Usage, price: Price | None) -> Usage:
    """The usage with its cost: as the server told, else by the price, else unknown."""
    if usage.cost_known or price is None or not usage.tokens_known:
        return usage
    cost = (usage.prompt_tokens * price.input + usage.completion_tokens * price.output) / 1e6
    return dataclasses.replace(usage, cost_usd=cost, cost_known=True)


def listed_price(entry: Mapping[str, Any]) -> Price | None:
    """The price in an entry of a model list: dollars a token, as text or number."""
    pricing = entry.get("pricing")
    if not isinstance(pricing, dict):
        return None
    try:
        per_input, per_output = float(pricing["prompt"]), float(pricing["completion"])
    except (KeyError, TypeError, ValueError):
        return None
    if not (0 <= per_input < 1 and 0 <= per_output < 1):
        return None
    return Price(per_input * 1e6, per_output * 1e6)


def listed_window(entry: Mapping[str, Any]) -> int | None:
    """The context size in an entry of a model list; the entry's own field before nested ones, and the smallest."""
    found = [size for name in WINDOW_FIELDS if (size := _size(entry.get(name)))]
    if not found:
        nested = [value for value in entry.values() if isinstance(value, dict)]
        found = [size for value in nested for name in WINDOW_FIELDS if (size := _size(value.get(name)))]
    top = entry.get("top_provider")
    if isinstance(top, dict) and (size := _size(top.get("context_length"))):
        found.append(size)
    return min(found) if found else None


def entry_of(listing: Any, model: str) -> Mapping[str, Any] | None:
    """The entry of `model` in a `/models` answer; a server that lists a single model means that one."""
    data = listing.get("data") if isinstance(listing, dict) else listing
    if not isinstance(data, list):
        return None
    entries = [entry for entry in data if isinstance(entry, dict)]
    for entry in entries:
        if model in (entry.get("id"), entry.get("canonical_slug"), entry.get("name")):
            return entry
    return entries[0] if len(entries) == 1 else None


def ollama_window(answer: Any) -> int | None:
    """The context Ollama runs a model with: `num_ctx` of its parameters. Its model's own maximum says nothing."""
    parameters = answer.get("parameters") if isinstance(answer, dict) else None
    if not isinstance(parameters, str):
        return None
    for line in parameters.splitlines():
        name, _, value = line.strip().partition(" ")
        if name == "num_ctx" and value.strip().isdecimal():
            return int(value)
    return None


def _size(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
