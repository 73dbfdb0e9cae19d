"""The way out: the `openai` package over aiohttp, kept from reading the environment, retrying and redirecting.

Importing this module loads `openai` (about a second): it is imported by `openai_client` in a thread, at the
first request. Knows nothing of messages and replies: bytes go in, a raw response comes out.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

import aiohttp
import httpx2
import openai
from openai._models import FinalRequestOptions
from openai.types import FileObject  # noqa: F401 - loads the types here and not at the first request

from hermes_engine import __version__

KEEP_ALIVE_SECONDS = 30.0
MAX_ERROR_BYTES = 65536
FOREIGN_ERRORS = (
    openai.OpenAIError,
    httpx2.HTTPError,
    httpx2.StreamError,
    httpx2.InvalidURL,
    aiohttp.ClientError,
    OSError,
)
"""What the libraries raise; `faults.from_exception` and `from_response` name it."""


class Door(openai.AsyncOpenAI):
    """A connection pool to one server. Headers are ours alone: the package would add some from OPENAI_*."""

    def __init__(self, base_url: str, headers: Mapping[str, str], *, pool_limit: int, connect_timeout: float) -> None:
        """Args:
        base_url: address without a slash at its end.
        headers: of every request, Authorization among them where there is a key.
        pool_limit: connections at once; further requests wait.
        connect_timeout: seconds; reading has no limit here.
        """
        timeout = httpx2.Timeout(None, connect=connect_timeout)
        limits = httpx2.Limits(
            max_connections=pool_limit, max_keepalive_connections=pool_limit, keepalive_expiry=KEEP_ALIVE_SECONDS
        )
        self._fixed_headers = dict(headers)
        super().__init__(
            api_key="",
            admin_api_key="",
            organization="",
            project="",
            webhook_secret="",
            base_url=base_url,
            timeout=timeout,
            max_retries=0,
            http_client=openai.DefaultAioHttpClient(
                timeout=timeout, limits=limits, follow_redirects=False, trust_env=not _is_loopback(base_url)
            ),
            _enforce_credentials=False,
        )
        authorized = any(name.lower() == "authorization" for name in headers)
        self._asked_with = {} if authorized else {"Authorization": openai.Omit()}
        self._forms: dict[str, httpx2.Request] = {}

    @property
    def default_headers(self) -> dict[str, str | openai.Omit]:
        """The fixed ones."""
        return {"User-Agent": f"hermes-tui/{__version__}", **self._fixed_headers}

    async def send(self, path: str, body: bytes) -> httpx2.Response:
        """POSTs encoded JSON; the response's body is not read yet and must be closed.

        Raises:
            openai.APIStatusError: a status that is not 2xx; its body was read.
            httpx2.HTTPError: no response.
        """
        form = self._forms.get(path) or self._form(path)
        request = httpx2.Request("POST", form.url, headers=form.headers, content=body, extensions=form.extensions)
        response = await self._client.send(request, stream=True)
        if not response.is_success:
            raise self._make_status_error_from_response(await _beginning(response))
        return response

    def _form(self, path: str) -> httpx2.Request:
        """What all requests to a path have in common, as the package builds it. It builds once: for each request
        that costs as much as everything else on the way out together.
        """
        options = FinalRequestOptions(method="post", url=path, headers=self._asked_with, content=b"")
        form = self._build_request(options)
        for name in ("content-length", "transfer-encoding"):
            form.headers.pop(name, None)
        self._forms[path] = form
        return form

    async def fetch(self, path: str) -> httpx2.Response:
        """GETs a small document, read whole."""
        return await self.get(path, cast_to=httpx2.Response, options={"headers": self._asked_with})


async def _beginning(response: httpx2.Response) -> httpx2.Response:
    """A response with as much of its body as an error needs: it may have no end."""
    body = bytearray()
    try:
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) >= MAX_ERROR_BYTES:
                break
    finally:
        await response.aclose()
    framing = ("content-length", "content-encoding", "transfer-encoding")
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in framing]
    content = bytes(body[:MAX_ERROR_BYTES])
    return httpx2.Response(response.status_code, headers=headers, content=content, request=response.request)


def _is_loopback(base_url: str) -> bool:
    """Servers on this machine are asked directly, whatever proxy the environment names."""
    host = urlsplit(base_url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")
