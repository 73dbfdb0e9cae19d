"""What single services want said differently from the common form; told by the host, or by a setting. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from hermes_engine.settings import OPENAI_URL, OPENROUTER_URL, SendEffort


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one service wants a request.

    Attributes:
        effort: how a reasoning effort is sent, see `ProviderSettings.send_effort`.
        completion_limit: name of the field that limits the answer's tokens.
    """

    effort: SendEffort = "reasoning_effort"
    completion_limit: str = "max_tokens"

    @property
    def effort_in_template(self) -> bool:
        """Whether the effort is a variable of the model's chat template."""
        return self.effort not in ("reasoning_effort", "reasoning")


COMMON = Dialect()
TEMPLATE = "chat_template_kwargs"
"""The field by which vLLM, SGLang and llama.cpp take variables of a model's chat template."""

_BY_HOST = {
    urlsplit(OPENROUTER_URL).hostname: Dialect(effort="reasoning"),
    urlsplit(OPENAI_URL).hostname: Dialect(completion_limit="max_completion_tokens"),
}


def dialect_of(base_url: str, send_effort: SendEffort = "auto") -> Dialect:
    """The dialect of the service at this address; with an effort sent as a setting wants it."""
    found = _BY_HOST.get(urlsplit(base_url).hostname, COMMON)
    return found if send_effort == "auto" else replace(found, effort=send_effort)


def effort_fields(effort: str | None, dialect: Dialect) -> dict[str, Any]:
    """Body fields for a reasoning effort; None says nothing, `none` switches reasoning off."""
    if effort is None:
        return {}
    match dialect.effort:
        case "reasoning":
            return {"reasoning": {"enabled": False} if effort == "none" else {"effort": effort}}
        case "enable_thinking" | "thinking" as switch:
            return {TEMPLATE: {switch: effort != "none"}}
        case "template_effort":
            return {TEMPLATE: {"reasoning_effort": effort}}
        case _:
            return {"reasoning_effort": effort}


def with_further(fields: Mapping[str, Any], *further: Mapping[str, Any]) -> dict[str, Any]:
    """Body fields with further ones over them; variables of the chat template are joined one by one."""
    merged = dict(fields)
    for more in further:
        before, now = merged.get(TEMPLATE), more.get(TEMPLATE)
        merged |= more
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            merged[TEMPLATE] = {**before, **now}
    return merged


def sampling_fields(sampling: Mapping[str, Any], dialect: Dialect) -> dict[str, Any]:
    """Sampling parameters under the names the service takes."""
    return {dialect.completion_limit if name == "max_tokens" else name: value for name, value in sampling.items()}
