"""The table of foreign faults is complete, and each becomes what its reader must do."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime

import aiohttp
import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_engine.clients.error_text import MAX_SHOWN, error_message, readable
from hermes_engine.clients.faults import Rejection, error_in_stream, from_exception, from_response, retry_after
from hermes_engine.errors import EndpointDown, ProviderError, RequestRejected, ServerFault, StreamBroken, StreamStalled


def foreign(*roots: type[BaseException]) -> list[type[BaseException]]:
    """Every exception class of the three libraries under these roots."""
    named = [kind for module in (openai, httpx2, aiohttp) for kind in list(vars(module).values())]
    kinds = {kind for kind in named if inspect.isclass(kind) and issubclass(kind, roots)}
    return sorted(kinds, key=lambda kind: f"{kind.__module__}.{kind.__qualname__}")


def made(kind: type[BaseException]) -> BaseException:
    """An instance, whatever its constructor wants."""
    speaking: type[BaseException] = type(kind.__name__, (kind,), {"__str__": lambda self: "detail"})
    return speaking.__new__(speaking)


@pytest.mark.parametrize("kind", foreign(openai.OpenAIError, httpx2.HTTPError, httpx2.StreamError, aiohttp.ClientError))
def test_every_foreign_exception_has_a_meaning(kind: type[BaseException]) -> None:
    assert isinstance(from_exception(made(kind), host="h"), ProviderError)
    broken = from_exception(made(kind), host="h", began=True, partial="so far")
    assert isinstance(broken, StreamBroken)
    assert broken.partial == "so far"


@pytest.mark.parametrize(
    "kind", foreign(httpx2.TransportError, aiohttp.ClientConnectionError, aiohttp.ClientPayloadError)
)
def test_every_fault_of_a_connection_is_told_apart(kind: type[BaseException]) -> None:
    assert type(from_exception(made(kind), host="h")) is not ServerFault


def caused(*kinds: type[BaseException]) -> BaseException:
    """An exception of the first kind, caused by the second, and so on."""
    error: BaseException | None = None
    for kind in reversed(kinds):
        outer = made(kind)
        outer.__cause__ = error
        error = outer
    assert error is not None
    return error


@pytest.mark.parametrize(
    ("chain", "kind"),
    [
        (
            (openai.APIConnectionError, httpx2.ConnectError, aiohttp.ClientConnectorError, ConnectionRefusedError),
            EndpointDown,
        ),
        ((openai.APIConnectionError, httpx2.ConnectError, aiohttp.ClientConnectorDNSError), EndpointDown),
        ((openai.APITimeoutError, httpx2.ConnectTimeout, aiohttp.ServerDisconnectedError), StreamBroken),
        ((openai.APITimeoutError, httpx2.ConnectTimeout, aiohttp.ClientOSError, ConnectionResetError), StreamBroken),
        ((openai.APITimeoutError, httpx2.TimeoutException, aiohttp.ConnectionTimeoutError), EndpointDown),
        ((openai.APITimeoutError, httpx2.ReadTimeout, aiohttp.SocketTimeoutError), StreamStalled),
        ((openai.APIConnectionError, httpx2.ConnectError, aiohttp.ClientConnectorCertificateError), RequestRejected),
        ((openai.APIConnectionError, httpx2.ReadError, aiohttp.ClientPayloadError), StreamBroken),
        ((httpx2.UnsupportedProtocol,), RequestRejected),
        ((httpx2.InvalidURL,), RequestRejected),
    ],
)
def test_a_chain_of_causes_means_what_lies_at_its_bottom(chain: tuple[type[BaseException], ...], kind: type) -> None:
    assert type(from_exception(caused(*chain), host="h")) is kind


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Mon, 30 Nov 2026 10:00:30 GMT"}, 30.0),
        ({"retry-after": "Mon, 30 Nov 2026 09:00:00 GMT"}, 0.0),
        ({"retry-after": "Mon, 30 Nov 2026 10:00:30 -0000"}, 30.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
    ],
)
def test_named_waits_are_read(headers: dict[str, str], seconds: float | None) -> None:
    now = datetime(2026, 11, 30, 10, 0, 0, tzinfo=UTC)
    assert retry_after(headers, now) == seconds


@given(st.integers(100, 999), st.text(max_size=400), st.text(min_size=8, max_size=20))
def test_any_response_gives_one_short_line_without_the_key(status: int, body: str, key: str) -> None:
    key = f"sk-{key.strip() or 'x'}-key"
    error = from_response(Rejection(status, body + key + body, {"retry-after": body}, (key,), "h"))
    assert key not in str(error)
    assert len(str(error)) < MAX_SHOWN + 60
    assert "\n" not in str(error)
    assert isinstance(error, ProviderError)


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_any_error_object_has_a_meaning(error: object) -> None:
    assert isinstance(error_in_stream(error), ProviderError)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"error":{"message":"no"}}', "no"),
        ('{"error":"no"}', "no"),
        ('{"message":"no"}', "no"),
        ('{"detail":[{"msg":"a"},{"msg":"b"}]}', "a – b"),
        ('{"object":"error","message":"no","code":404}', "no"),
        ('{"weird":1}', '{"weird":1}'),
        ('"no"', "no"),
        ("", ""),
        ("<p>a&amp;b<br>c</p>", "a&b c"),
    ],
)
def test_the_words_of_a_body_are_found(body: str, said: str) -> None:
    assert error_message(body) == said


def test_keys_of_others_are_not_shown_either() -> None:
    line = readable("Incorrect key sk-abcdefghijklmnop1234 sent as Bearer abcdefgh12345678")
    assert line == "Incorrect key [key] sent as [key]"


def test_a_server_without_tls_is_not_told_to_have_a_bad_certificate() -> None:
    kind = type("ClientSSLError", (Exception,), {})
    error = from_exception(kind("[SSL: WRONG_VERSION_NUMBER] wrong version number"), host="h")
    assert "certificate" not in error.line
    assert "http://" in error.hint
    bad = from_exception(kind("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate"), host="h")
    assert "certificate of h is not trusted" in bad.line


def test_a_status_that_no_server_gave_is_not_told() -> None:
    kind = type("ClientPayloadError", (Exception,), {})
    assert from_exception(kind("400, message:\n  Not enough data"), host="h").hint == "Not enough data"
