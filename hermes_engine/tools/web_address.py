"""Which addresses the web tool may connect to. Names are looked up once; what was checked is what is connected to.

Where the environment names a proxy, that one looks the name up and connects: what can be looked up here is checked
here all the same, and a name that only the proxy knows must not look like one of a private network.
A cloud's metadata addresses and link-local ones are refused whatever the settings say.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from hermes_engine.errors import ToolFault
from hermes_engine.settings.values import WebSettings

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NEVER = tuple(
    map(
        ipaddress.ip_network,
        ("169.254.0.0/16", "fe80::/10", "fd00:ec2::/32", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32"),
    )
)
_NEVER_NAMES = frozenset({"metadata", "metadata.google.internal", "metadata.goog", "instance-data"})
_PRIVATE_NAME = re.compile(r"[^.]*|.*\.(?:local|localhost|localdomain|internal|intranet|corp|home|lan|home\.arpa)")
_LOOK_UP_SECONDS = 3.0
"""Behind a proxy there is often nobody to ask for names."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class Target:
    """A checked place to connect to.

    Attributes:
        host, port: as the address names them.
        addresses: what the name stood for when it was checked; () for one that only the proxy can look up.
        proxy: address of the proxy that connects, "" for none.
    """

    host: str
    port: int
    addresses: tuple[str, ...]
    proxy: str = ""


def host_of(url: str) -> str:
    """The host an address names, lower case; "" when it names none."""
    try:
        return (urlsplit(url.strip()).hostname or "").rstrip(".").lower()
    except ValueError:
        return ""


async def checked(url: str, rules: WebSettings) -> Target:
    """Looks the host up and checks every address it has. Raises ToolFault that says why not."""
    try:
        parts = urlsplit(url)
        host, port = host_of(url), parts.port or (443 if parts.scheme.lower() == "https" else 80)
    except ValueError as error:
        raise ToolFault(f"{url!r} is not a usable address: {error}") from None
    if parts.scheme.lower() not in ("http", "https"):
        raise ToolFault(f"only http and https addresses can be fetched, not {parts.scheme or 'one without a scheme'}")
    if not host:
        raise ToolFault(f"{url!r} names no host")
    if parts.username or parts.password:
        raise ToolFault("an address with a user name or password in it is not fetched")
    if host in _NEVER_NAMES:
        raise ToolFault(f"{host} is refused: it is a cloud's metadata address")
    proxy = proxy_for(parts.scheme.lower(), host)
    try:
        async with asyncio.timeout(_LOOK_UP_SECONDS if proxy else None):
            addresses = await _look_up(host, port)
    except (ToolFault, TimeoutError):
        if not proxy:
            raise
        if _PRIVATE_NAME.fullmatch(host) and not (rules.allow_private or _named(host, port, rules.allow_hosts)):
            raise ToolFault(f"{host} is refused: it cannot be looked up here and seems private") from None
        addresses = []
    for address in addresses:
        if reason := refusal(ipaddress.ip_address(address.partition("%")[0]), host, port, rules):
            raise ToolFault(f"{host} is refused: {reason}")
    here = any(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in addresses)
    return Target(host, port, tuple(addresses), "" if here else proxy)


def proxy_for(scheme: str, host: str) -> str:
    """The proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name for a host, "" for none."""
    from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

    proxies = getproxies_environment()
    proxy = str(proxies.get(scheme, ""))
    if not proxy or proxy_bypass_environment(host, proxies):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def refusal(address: Address, host: str, port: int, rules: WebSettings) -> str | None:
    """Why an address is not connected to, or None."""
    for one in _unwrapped(address):
        if any(one.version == net.version and one in net for net in _NEVER):
            return f"{one} is a metadata or link-local address, never fetched"
        if one.is_global and not one.is_multicast:
            continue
        if not (rules.allow_private or _allowed(one, host, port, rules.allow_hosts)):
            return f"{one} is a private address (settings web.allow_private and web.allow_hosts permit some)"
    return None


def _allowed(address: Address, host: str, port: int, entries: Iterable[str]) -> bool:
    if _named(host, port, entries):
        return True
    for entry in entries:
        try:
            network = ipaddress.ip_network(entry.strip(), strict=False)
        except ValueError:
            continue
        if network.version == address.version and address in network:
            return True
    return False


def _named(host: str, port: int, entries: Iterable[str]) -> bool:
    names = [entry.strip().lower() for entry in entries]
    return any(
        name in (host, f"{host}:{port}") or (name.startswith("*.") and host.endswith(name[1:])) for name in names
    )


def _unwrapped(address: Address) -> list[Address]:
    """The address, or the IPv4 ones that an IPv6 address stands for."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _NAT64:
        inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    found: list[Address] = [one for one in inner if one is not None]
    return found if address.ipv4_mapped else [address, *found]


async def _look_up(host: str, port: int) -> list[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ToolFault(f"{host} cannot be found: {getattr(error, 'strerror', None) or error}") from None
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
