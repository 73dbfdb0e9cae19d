"""Every error of the engine, in one tree, sorted by what its reader must do. Knows nothing else of ours.

HermesError                    one clear line for a person; exit 1
├── UsageError                 call again, corrected; exit 2
│   └── UnknownName            … with one of the names it lists
├── ConfigError                mend a file or a variable; exit 2
│   └── NotConfigured          … set up a model first
├── StateError                 look at the home folder (database, lock, disk)
├── ProviderError              the model's server did not give a usable reply
│   ├── KeyRefused             mend the key (401, 403)
│   ├── RequestRejected        change the request or the model (other 4xx)
│   │   └── ContextTooLong     … shorten the conversation
│   ├── RateLimited            wait (429)
│   ├── ServerFault            wait or try again (5xx, error inside a stream)
│   │   └── EndpointDown       … until the endpoint is back (refused, 502, 503, loading)
│   ├── StreamBroken           try again: the reply ended before it was whole
│   │   └── StreamStalled      … it went silent for too long
│   └── EmptyReply             the model said nothing, several times
├── SandboxFault               name another image or place, or mend the sandbox; the row fails, the run goes on
├── LimitReached               raise a limit (budget, time, turns)
├── ToolFault                  told to the model as the tool's result; never ends a turn
└── Interrupted                nothing: the person asked for it; exit 130
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class HermesError(Exception):
    """Root of the tree. `str()` is one line: what failed and why; `hint` says what to do.

    Attributes:
        exit_code: the process exit code when this error ends a command.
        hint: what the reader can do about it, or "".
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    @property
    def line(self) -> str:
        """The error as one line for a person: message, then hint."""
        text = " ".join(str(self).split())
        return f"{text} — {self.hint}" if self.hint else text


class UsageError(HermesError):
    """The command line, slash command or tool arguments are wrong."""

    exit_code = 2


class UnknownName(UsageError):
    """A name that is not among the valid ones. Lists them and names the nearest."""

    def __init__(self, kind: str, name: str, valid: Iterable[str]) -> None:
        names = sorted(set(valid))
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]}?" if near else ""
        listed = ", ".join(names) if names else "none"
        super().__init__(f"unknown {kind} {name!r}; valid: {listed}", hint=hint)
        self.kind, self.name, self.valid = kind, name, tuple(names)


class ConfigError(HermesError):
    """A file or variable of the set-up is wrong; the message names file, line and key where known."""

    exit_code = 2


class NotConfigured(ConfigError):
    """No model can be asked: no key and no endpoint."""


class StateError(HermesError):
    """The home folder's state cannot be used: database, lock, permissions, disk, or a form we don't know.

    Attributes:
        kind: as with `ProviderError`.
    """

    kind = "state"


class ProviderError(HermesError):
    """The model's server gave no usable reply.

    Attributes:
        status: HTTP status, or None when there was no response.
        retry_after: seconds the server asked to wait, or None.
        retryable: whether the same request may succeed later.
        kind: short stable word for statistics ("rate_limit", "server_error", …).
    """

    retryable = False
    kind = "provider"

    def __init__(
        self, message: str, *, status: int | None = None, retry_after: float | None = None, hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.retry_after = retry_after


class KeyRefused(ProviderError):
    """401 or 403: the key is missing, wrong or not allowed."""

    kind = "key_refused"


class RequestRejected(ProviderError):
    """The server will not answer this request (400, 404, 422, …); asking again changes nothing."""

    kind = "rejected_request"


class ContextTooLong(RequestRejected):
    """The conversation does not fit into the model's context."""

    kind = "context_too_long"


class RateLimited(ProviderError):
    """429; `retry_after` holds the named wait."""

    retryable = True
    kind = "rate_limit"


class ServerFault(ProviderError):
    """5xx, or an error object inside a stream that began with 200."""

    retryable = True
    kind = "server_error"


class EndpointDown(ServerFault):
    """Connection refused, 502, 503 or "model loading": nobody is there to blame a request for."""

    kind = "endpoint_down"


class StreamBroken(ProviderError):
    """The connection closed before the reply was whole. `partial` is the text received so far."""

    retryable = True
    kind = "stream_broken"

    def __init__(self, message: str, *, partial: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.partial = partial


class StreamStalled(StreamBroken):
    """No byte of content for longer than the idle limit."""

    kind = "stream_stalled"


class EmptyReply(ProviderError):
    """Neither text nor calls, after the allowed number of tries."""

    kind = "empty_answer"


class SandboxFault(HermesError):
    """Work cannot be done where it was to run: no such image, a closed folder, a box that does not start."""


class LimitReached(HermesError):
    """A limit the person set was met. `limit` ∈ turns, budget, timeout, tokens."""

    def __init__(self, message: str, *, limit: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.limit = limit


class ToolFault(HermesError):
    """A tool could not do what it was asked; the message is the tool's result for the model."""


class Interrupted(HermesError):
    """Stopped by the person."""

    exit_code = 130
