"""Rows in order, rows of one folder one after another, and an end that everybody hears."""

from __future__ import annotations

import asyncio

from hermes_engine.batch.dataset import Place
from hermes_engine.batch.schedule import Schedule, Task


def tasks(*folders: str) -> list[Task]:
    return [Task(Place(index, 0, 0, f"k{index}", folder), 0, 0) for index, folder in enumerate(folders)]


async def work(schedule: Schedule, workers: int, order: list[int], seconds: float = 0.001) -> int:
    busy: set[str] = set()
    clashes = 0

    async def one() -> None:
        nonlocal clashes
        while (task := await schedule.take()) is not None:
            folder = task.place.cwd
            clashes += bool(folder) and folder in busy
            busy.add(folder)
            order.append(task.place.index)
            await asyncio.sleep(seconds)
            busy.discard(folder)
            schedule.done(task)

    await asyncio.wait_for(asyncio.gather(*(one() for _ in range(workers))), 10)
    return clashes


async def test_every_row_once_in_order() -> None:
    order: list[int] = []
    await work(Schedule(tasks(*[""] * 100)), 7, order)
    assert order == list(range(100))


async def test_rows_of_one_folder_do_not_meet_and_others_go_past() -> None:
    order: list[int] = []
    folders = ["/a"] * 10 + ["/b"] * 3 + [""] * 5
    assert await work(Schedule(tasks(*folders)), 6, order) == 0
    assert sorted(order) == list(range(18))
    assert order[:6] == [0, 10, 13, 14, 15, 16]
    assert [index for index in order if index < 10] == list(range(10))


async def test_shared_folders_meet() -> None:
    order: list[int] = []
    assert await work(Schedule(tasks(*["/a"] * 10), shared_cwd=True), 5, order) > 0
    assert order == list(range(10))


async def test_a_row_given_back_comes_again_last() -> None:
    schedule = Schedule(tasks("", "/a", "/a"))
    first = await schedule.take()
    assert first is not None
    order: list[int] = []
    waiting = asyncio.create_task(work(schedule, 3, order))
    await asyncio.sleep(0.02)
    assert not waiting.done()
    schedule.give_back(first)
    await waiting
    assert order == [1, 2, 0]


async def test_closing_wakes_everybody() -> None:
    schedule = Schedule(tasks("/a", "/a", "/a"))
    assert await schedule.take() is not None
    waiting = [asyncio.create_task(schedule.take()) for _ in range(50)]
    await asyncio.sleep(0)
    schedule.close()
    assert await asyncio.gather(*waiting) == [None] * 50
    assert await schedule.take() is None


async def test_no_row_at_all() -> None:
    assert await Schedule([]).take() is None
