"""The outbox of a page: bounded, in order, and without what belongs to earlier scenes."""

import asyncio
import threading

import pytest

from meanfield.explore.sessions import MOST_UNSENT, Outbox

MESSAGE = b"x" * (MOST_UNSENT // 10)


def never():
    return False


def run(visit):
    return asyncio.run(asyncio.wait_for(visit(), 60))


def test_messages_arrive_in_order():
    async def visit():
        taken = []

        async def write(message):
            await asyncio.sleep(0)
            taken.append(message)

        outbox = Outbox(write)
        delivery = asyncio.create_task(outbox.deliver())
        for i in range(50):
            outbox.put(str(i), never)
        while outbox.unsent:
            await asyncio.sleep(0.01)
        outbox.close()
        await delivery
        return taken

    assert run(visit) == [str(i) for i in range(50)]


@pytest.mark.parametrize("ends", ["it reads on", "it closes", "it goes on to another scene"])
def test_a_run_waits_for_a_page_that_does_not_read(ends):
    """At no time more wait than the limit and one message; and the run is let go in each case."""

    async def visit():
        reads, most, past = asyncio.Event(), 0, threading.Event()

        async def write(message):
            await reads.wait()

        outbox = Outbox(write)
        delivery = asyncio.create_task(outbox.deliver())

        def compute():
            nonlocal most
            for _ in range(100):
                outbox.wait(past.is_set)
                outbox.put(MESSAGE, past.is_set)
                most = max(most, outbox.unsent)

        running = asyncio.create_task(asyncio.to_thread(compute))
        await asyncio.sleep(0.3)
        assert not running.done()
        if ends == "it reads on":
            reads.set()
        elif ends == "it closes":
            outbox.close()
        else:
            past.set()
        await running
        assert MOST_UNSENT < most <= MOST_UNSENT + len(MESSAGE)
        delivery.cancel()

    run(visit)


def test_messages_of_earlier_scenes_are_dropped():
    async def visit():
        taken, reads, shown = [], asyncio.Event(), []

        async def write(message):
            await reads.wait()
            taken.append(message)

        outbox = Outbox(write)
        delivery = asyncio.create_task(outbox.deliver())
        for number in range(4):
            shown.append(number)
            for _ in range(3):
                outbox.put(str(number), lambda number=number: number != shown[-1])
            await asyncio.sleep(0.01)
        assert outbox.unsent == 4  # what is being written, and what the last scene waits with
        reads.set()
        await asyncio.sleep(0.05)
        delivery.cancel()
        return taken

    assert run(visit) == ["0", "3", "3", "3"]
