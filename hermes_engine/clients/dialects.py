"""What single services want said differently from the common form; one table, told by the host. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from hermes_engine.settings import OPENAI_URL, OPENROUTER_URL


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one service wants a request.

    Attributes:
        effort_object: reasoning effort as `reasoning: {"effort": …}`; else as `reasoning_effort`.
        completion_limit: name of the field that limits the answer's tokens.
    """

    effort_object: bool = False
    completion_limit: str = "max_tokens"


COMMON = Dialect()
_BY_HOST = {
    urlsplit(OPENROUTER_URL).hostname: Dialect(effort_object=True),
    urlsplit(OPENAI_URL).hostname: Dialect(completion_limit="max_completion_tokens"),
}


def dialect_of(base_url: str) -> Dialect:
    """The dialect of the service at this address."""
    return _BY_HOST.get(urlsplit(base_url).hostname, COMMON)


def effort_fields(effort: str | None, dialect: Dialect) -> dict[str, Any]:
    """Body fields for a reasoning effort; None says nothing, `none` switches reasoning off."""
    if effort is None:
        return {}
    if dialect.effort_object:
        return {"reasoning": {"enabled": False} if effort == "none" else {"effort": effort}}
    return {"reasoning_effort": effort}


def sampling_fields(sampling: Mapping[str, Any], dialect: Dialect) -> dict[str, Any]:
    """Sampling parameters under the names the service takes."""
    return {dialect.completion_limit if name == "max_tokens" else name: value for name, value in sampling.items()}
