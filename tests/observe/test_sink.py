import os

from proxy.observe.sink import Sink


def test_lines_arrive_in_order():
    read, write = os.pipe()
    sink = Sink(write)
    for number in range(1000):
        sink.write(b"line %d\n" % number)
    sink.close()
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read().splitlines() == [b"line %d" % number for number in range(1000)]
    assert sink.dropped == 0


def test_a_reader_that_left_is_no_error():
    read, write = os.pipe()
    os.close(read)
    sink = Sink(write)
    for _ in range(10):
        sink.write(b"line\n")
    sink.close()
    os.close(write)
    assert sink.dropped == 10


def test_a_full_disk_is_no_error():
    full = os.open("/dev/full", os.O_WRONLY)
    sink = Sink(full)
    sink.write(b"line\n")
    sink.close()
    os.close(full)
    assert sink.dropped == 1


def test_a_reader_that_sleeps_does_not_hold_up_the_writer():
    """More than a pipe holds is written and nobody reads: lines beyond the bound are dropped and counted."""
    read, write = os.pipe()
    sink = Sink(write, lines_max=100)
    line = b"x" * 1023 + b"\n"
    for _ in range(1000):
        sink.write(line)
    # The pipe holds 64 lines and the thread one; what it took before the burst was over is uncertain, the sum is not.
    assert 700 < sink.dropped <= 900
    # The reader leaves at last, which wakes the thread.
    os.close(read)
    sink.close()
    os.close(write)
