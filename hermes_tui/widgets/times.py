"""How spans of time and amounts are written, everywhere alike. Pure functions."""

from __future__ import annotations


def seconds_short(seconds: float) -> str:
    """`0.2 s`, `4 s`, `2m40`, `1h05`."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s".replace(".0 s", " s")
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02}"
    return f"{minutes // 60}h{minutes % 60:02}"


def age_short(seconds: float) -> str:
    """How long ago, where seconds do not matter: `<1m`, `5m`, `2h`, `3d`."""
    minutes = int(seconds // 60)
    if minutes < 1:
        return "<1m"
    if minutes < 60:
        return f"{minutes}m"
    return f"{minutes // 60}h" if minutes < 48 * 60 else f"{minutes // 1440}d"


def count_short(number: int) -> str:
    """`950`, `1.2k`, `38k`, `2.1M`."""
    if number < 1000:
        return str(number)
    if number < 10_000:
        return f"{number / 1000:.1f}k".replace(".0k", "k")
    if number < 999_500:
        return f"{number / 1000:.0f}k"
    return f"{number / 1_000_000:.1f}M".replace(".0M", "M")


def money(amount: float) -> str:
    """`$0.42`, with more places while it is small."""
    if 0 < amount < 0.01:
        return f"${amount:.4f}"
    return f"${amount:.2f}"


def quiet_short(seconds: float) -> str:
    """How long nothing was heard: `95 s`, from ten minutes on as other spans."""
    return f"{seconds:.0f} s" if seconds < 600 else seconds_short(seconds)


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `3rd`, `7th`, `11th`."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"
