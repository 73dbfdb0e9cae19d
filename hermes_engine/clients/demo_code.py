"""Small Python programs the demo model hands out, chosen by words of the prompt. Data only."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Snippet:
    """A function and a line or two that try it; both run in any Python 3."""

    name: str
    asked: re.Pattern[str]
    source: str
    trial: str


def _snippet(name: str, asked: str, source: str, trial: str) -> Snippet:
    return Snippet(name, re.compile(asked, re.IGNORECASE), source.strip(), trial.strip())


SNIPPETS = (
    _snippet(
        "is_palindrome",
        r"pal[ií]ndrom",
        '''
def is_palindrome(text: str) -> bool:
    """Whether a text reads the same backwards, letters and digits only."""
    kept = [sign.lower() for sign in text if sign.isalnum()]
    return kept == kept[::-1]
''',
        'for text in ("Never odd or even", "Hermes"):\n    print(text, is_palindrome(text))',
    ),
    _snippet(
        "fibonacci",
        r"fibonacci",
        '''
def fibonacci(count: int) -> list[int]:
    """The first `count` Fibonacci numbers."""
    numbers, a, b = [], 0, 1
    for _ in range(count):
        numbers.append(a)
        a, b = b, a + b
    return numbers
''',
        "print(fibonacci(10))",
    ),
    _snippet(
        "primes",
        r"\bprim(e|o)s?\b",
        '''
def primes(limit: int) -> list[int]:
    """All primes below `limit`."""
    return [n for n in range(2, limit) if all(n % d for d in range(2, int(n**0.5) + 1))]
''',
        "print(primes(50))",
    ),
    _snippet(
        "factorial",
        r"factorial",
        '''
def factorial(n: int) -> int:
    """The product of 1 … n."""
    result = 1
    for factor in range(2, n + 1):
        result *= factor
    return result
''',
        "print(factorial(10))",
    ),
    _snippet(
        "merge_sorted",
        r"sort|merge|orden(a|ar)|mezcla",
        '''
def merge_sorted(left: list[int], right: list[int]) -> list[int]:
    """One sorted list of two sorted ones."""
    merged: list[int] = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return merged + left[i:] + right[j:]
''',
        "print(merge_sorted([1, 4, 9], [2, 3, 10, 11]))",
    ),
    _snippet(
        "gcd",
        r"\bgcd\b|divisor|divisible",
        '''
def gcd(a: int, b: int) -> int:
    """The greatest common divisor."""
    while b:
        a, b = b, a % b
    return abs(a)
''',
        "print(gcd(84, 36))",
    ),
    _snippet(
        "parse_dates",
        r"\bdates?\b|\bfechas?\b",
        '''
import re

def parse_dates(text: str) -> list[str]:
    """All dates of the form YYYY-MM-DD in a text."""
    return re.findall(r"\\b\\d{4}-\\d{2}-\\d{2}\\b", text)
''',
        'print(parse_dates("from 2026-01-31 to 2026-02-28"))',
    ),
    _snippet(
        "reverse_words",
        r"revers|inviert|invertir|al rev",
        '''
def reverse_words(text: str) -> str:
    """The words of a text in reverse order."""
    return " ".join(reversed(text.split()))
''',
        'print(reverse_words("one two three"))',
    ),
)

FALLBACK = _snippet(
    "word_counts",
    r"word|palabra|count|cuenta",
    '''
from collections import Counter

def word_counts(text: str) -> list[tuple[str, int]]:
    """How often each word occurs, the most frequent first."""
    return Counter(text.lower().split()).most_common()
''',
    'print(word_counts("to be or not to be"))',
)


def snippet_for(prompt: str) -> Snippet:
    """The snippet a prompt asks for; counting words when it asks for something else."""
    return next((snippet for snippet in SNIPPETS if snippet.asked.search(prompt)), FALLBACK)
