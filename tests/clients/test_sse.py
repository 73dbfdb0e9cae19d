"""Bytes to events: any cut, any line end, nothing but LF, CRLF and CR ends a line."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_engine.clients import sse
from hermes_engine.clients.sse import EventReader, EventTooLarge, SseEvent


def read(*packets: bytes) -> list[SseEvent]:
    """All events of these packets."""
    reader = EventReader()
    events = [event for packet in packets for event in reader.feed(packet)]
    return events + reader.end()


def datas(*packets: bytes) -> list[str]:
    """Their data alone."""
    return [event.data for event in read(*packets)]


def bytewise(raw: bytes) -> list[bytes]:
    """One byte a packet."""
    return [raw[place : place + 1] for place in range(len(raw))]


def test_f7_19_multi_byte_characters_cut_at_every_byte() -> None:
    raw = 'data: {"a":"日本 😀"}\n\n'.encode()
    assert datas(*bytewise(raw)) == ['{"a":"日本 😀"}']


def test_f7_19_unicode_line_separators_are_text() -> None:
    text = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg"
    assert datas(f"data: {text}\n\n".encode()) == [text]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_f7_19_each_line_end_works_whole_and_bytewise(end: bytes) -> None:
    raw = b"data: one" + end + end + b": note" + end + b"data: two" + end + end
    assert datas(raw) == ["one", "two"]
    assert datas(*bytewise(raw)) == ["one", "two"]


def test_f7_19_no_blank_after_data_and_several_events_in_one_packet() -> None:
    assert datas(b"data:{}\n\ndata:  x\n\ndata: [DONE]\n\n") == ["{}", " x", "[DONE]"]


def test_a_crlf_cut_between_two_packets_is_one_end() -> None:
    assert datas(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") == ["a\nb"]


def test_lines_of_one_event_are_joined_and_names_belong_to_their_event() -> None:
    assert read(b"event: error\ndata: a\ndata: b\n\ndata: c\n\n") == [SseEvent("a\nb", "error"), SseEvent("c")]
    assert read(b"event: ping\n\ndata: c\n\n") == [SseEvent("c")]
    assert read(b"data\ndata: x\nid: 7\nretry: 3\n\n") == [SseEvent("\nx")]


def test_a_last_event_without_its_blank_line_is_given_at_the_end() -> None:
    assert datas(b"data: a\n\ndata: [DONE]") == ["a", "[DONE]"]
    assert datas(b"data: a\n") == ["a"]
    assert datas(b"") == []


def test_a_byte_order_mark_is_no_text() -> None:
    raw = b"\xef\xbb\xbfdata: a\n\n"
    assert datas(raw) == ["a"]
    assert datas(*bytewise(raw)) == ["a"]


def test_bytes_that_are_no_utf8_become_marks() -> None:
    assert datas(b"data: a\xffb\n\n") == ["a\ufffdb"]


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 10)
    with pytest.raises(EventTooLarge):
        read(b"data: 123456", b"7890")
    with pytest.raises(EventTooLarge):
        read(*[b"data: 1\n"] * 2)
    assert datas(*[b"data: 1\n\n"] * 9, *[b": note\n"] * 9) == ["1"] * 9


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1), min_size=1),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 400)),
)
def test_any_split_gives_the_same_events(texts: list[str], end: str, cuts: list[int]) -> None:
    raw = "".join(f"data: {text}{end}: c{end}{end}" for text in texts).encode()
    places = sorted({0, len(raw), *(cut for cut in cuts if cut < len(raw))})
    packets = [raw[start:stop] for start, stop in itertools.pairwise(places)]
    assert datas(*packets) == texts
