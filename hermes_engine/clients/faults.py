"""The one table from HTTP statuses, error bodies and foreign exceptions to the engine's errors.

Foreign exceptions are told by class names along their chain of causes, so that no HTTP library is imported here.
Knows nothing of retrying: an error only says whether asking again can help.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from hermes_engine.clients.error_text import error_code, error_message, readable
from hermes_engine.errors import (
    ContextTooLong,
    EndpointDown,
    KeyRefused,
    ProviderError,
    RateLimited,
    RequestRejected,
    ServerFault,
    StreamBroken,
    StreamStalled,
)

TOO_LONG = re.compile(
    r"context.{0,3}(length|window|size)|maximum.{0,20}context|context.{0,40}(exceed|overflow)|exceed.{0,40}context"
    r"|(prompt|input)( is|.{0,40}(exceed|too)).{0,20}(too )?(long|large)?.{0,60}(token|length|exceed|too long)"
    r"|too many (input|prompt) tokens|prompt is too long|max_model_len|reduce the length",
    re.IGNORECASE,
)
LOADING = re.compile(r"loading (the )?model|model.{0,30}\bloading\b|(still|currently) loading", re.IGNORECASE)
QUOTA = re.compile(r"insufficient_quota|insufficient (credit|balance|fund)|exceeded your current quota", re.IGNORECASE)

_BY_STATUS: dict[int, type[ProviderError]] = {
    401: KeyRefused,
    403: KeyRefused,
    408: ServerFault,
    409: ServerFault,
    413: ContextTooLong,
    425: ServerFault,
    429: RateLimited,
    502: EndpointDown,
    503: EndpointDown,
    521: EndpointDown,
    522: EndpointDown,
    523: EndpointDown,
}
_MAY_BE_TOO_LONG = frozenset({400, 413, 422, 500})
_MAY_BE_LOADING = frozenset({404, 409, 425, 500, 502, 503})
_HINTS: dict[type[ProviderError], str] = {
    KeyRefused: "check the key of this server",
    ContextTooLong: "shorten the conversation (/compact) or choose a model with a larger context",
}


@dataclass(frozen=True, slots=True)
class Rejection:
    """An HTTP response that is no reply.

    Attributes:
        status: HTTP status.
        body: decoded text, whole or its beginning.
        headers: names in lower case.
        secrets: texts that must not be shown.
        host: who answered, for messages.
    """

    status: int
    body: str
    headers: Mapping[str, str]
    secrets: tuple[str, ...] = ()
    host: str = ""


def from_response(rejection: Rejection) -> ProviderError:
    """The error for a response with a status that is not 200."""
    status = rejection.status
    said = error_message(rejection.body, rejection.secrets)
    message = f"HTTP {status} from {rejection.host or 'the server'}" + (f": {said}" if said else "")
    if 300 <= status < 400:
        target = readable(rejection.headers.get("location", "").partition("?")[0], rejection.secrets)
        return RequestRejected(
            f"{message} (it redirects to {target or 'elsewhere'})",
            status=status,
            hint="set base_url to the final address",
        )
    kind = _kind(status, f"{error_code(rejection.body)} {said}")
    error = kind(message, status=status, retry_after=retry_after(rejection.headers), hint=_hint(kind, status))
    return error


def error_in_stream(error: Any) -> ProviderError:
    """The error for an error object within a stream or body that began with 200."""
    if isinstance(error, dict) and error.get("error"):
        error = error["error"]
    said = readable(_words(error)) or "the server reported an error without words"
    code = error.get("code") if isinstance(error, dict) else None
    status = int(code) if isinstance(code, int | str) and str(code).isdecimal() and 400 <= int(code) < 600 else None
    kind = _kind(status or 500, f"{error_code(error)} {said}")
    if status is None and kind is RequestRejected:
        kind = ServerFault
    return kind(f"error in the stream: {said}", status=status, hint=_hint(kind, status or 0))


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds a response asks to wait (`Retry-After` as seconds or date, `retry-after-ms`), or None."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if re.fullmatch(r"\d{1,9}(\.\d+)?", value):
            return float(value) * scale
    try:
        when = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError):
        return None
    when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())


def from_exception(
    error: BaseException, *, host: str, began: bool = False, partial: str = "", secrets: tuple[str, ...] = ()
) -> ProviderError:
    """The error for an exception of the HTTP libraries.

    Args:
        error: what was raised; its causes are looked through.
        host: who was asked, for messages.
        began: whether the response had begun: then every fault is a broken stream.
        partial: text received so far.
        secrets: texts that must not be shown.
    """
    names = {name for cause in _causes(error) for name in (kind.__name__ for kind in type(cause).__mro__)}
    detail = readable(next((str(cause) for cause in reversed([*_causes(error)]) if str(cause)), ""), secrets)
    detail = re.sub(r"^400, message: ?", "", detail)  # so aiohttp names what it cannot read; no server said 400
    if began:
        return StreamBroken(f"the connection to {host} broke within the reply", partial=partial, hint=detail)
    for known, make in _EXCEPTIONS:
        if known & names:
            return make(host, detail)
    return ServerFault(f"asking {host} failed: {type(error).__name__}", hint=detail)


def _kind(status: int, said: str) -> type[ProviderError]:
    if status in _MAY_BE_TOO_LONG and TOO_LONG.search(said):
        return ContextTooLong
    if status in _MAY_BE_LOADING and LOADING.search(said):
        return EndpointDown
    if status == 429 and QUOTA.search(said):
        return RequestRejected
    known = _BY_STATUS.get(status)
    return known or (ServerFault if status >= 500 else RequestRejected)


def _hint(kind: type[ProviderError], status: int) -> str:
    if status in (402, 429) and kind is RequestRejected:
        return "the account behind the key has no credit left"
    if status == 404:
        return "check the model's name and base_url (most end with /v1)"
    return _HINTS.get(kind, "")


def _words(error: Any) -> str:
    if isinstance(error, dict):
        said = error.get("message") or error.get("detail") or error.get("type") or error.get("code")
        return str(said or "")
    return str(error)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _refused(host: str, detail: str) -> ProviderError:
    return EndpointDown(f"nobody answers at {host}", hint=detail)


def _slow_connection(host: str, detail: str) -> ProviderError:
    return EndpointDown(f"{host} does not take the connection in time", hint=detail)


def _untrusted(host: str, detail: str) -> ProviderError:
    if "SSL:" in detail and "CERT" not in detail:
        return RequestRejected(f"no TLS with {host}: {detail}", hint="does it want http:// in base_url?")
    return RequestRejected(f"the certificate of {host} is not trusted", hint=detail)


def _closed(host: str, detail: str) -> ProviderError:
    return StreamBroken(f"{host} closed the connection without an answer", hint=detail)


def _silent(host: str, detail: str) -> ProviderError:
    return StreamStalled(f"{host} did not answer in time", hint=detail)


def _unusable(host: str, detail: str) -> ProviderError:
    return RequestRejected(
        f"{host} cannot be asked: {detail}" if detail else f"{host} cannot be asked", hint="check base_url"
    )


_EXCEPTIONS: tuple[tuple[frozenset[str], Callable[[str, str], ProviderError]], ...] = (
    (
        frozenset({"ClientConnectorCertificateError", "ClientSSLError", "SSLError", "ServerFingerprintMismatch"}),
        _untrusted,
    ),
    (frozenset({"ConnectionTimeoutError", "PoolTimeout"}), _slow_connection),
    (frozenset({"ServerDisconnectedError", "ConnectionResetError", "BrokenPipeError", "ClientPayloadError"}), _closed),
    (
        frozenset({"ClientOSError", "ClientConnectorError", "ConnectError", "ProxyError", "ClientHttpProxyError"}),
        _refused,
    ),
    (frozenset({"InvalidURL", "NonHttpUrlClientError", "UnsupportedProtocol", "LocalProtocolError"}), _unusable),
    (frozenset({"ReadTimeout", "WriteTimeout", "ServerTimeoutError", "TimeoutError"}), _silent),
    (frozenset({"ConnectTimeout", "TimeoutException", "APITimeoutError"}), _slow_connection),
    (
        frozenset({"TransportError", "ClientResponseError", "ClientConnectionError", "EofStream"}),
        _closed,
    ),
)
