"""A process of callers for the tests: mints from every kind of tag, and writes down each id before it takes the next."""

import json
import os
import signal
import struct
import sys
import threading
import time

from ids import calls, segments, snowflakes
from ids.segments import Segments
from ids.snowflakes import Snowflakes
from idmint.v1 import id_service_pb2_grpc, worker_service_pb2_grpc

config = json.loads(sys.argv[1])
ca = open(config["ca"], "rb").read() if config.get("ca") else None
channel = calls.connect(config["address"], config.get("token"), ca)
ids = id_service_pb2_grpc.IdServiceStub(channel)
workers = worker_service_pb2_grpc.WorkerServiceStub(channel)
stopped = threading.Event()
refusals, guard = {}, threading.Lock()
RECORD = struct.Struct("<qdIIII")  # as packages/testkit/src/fleet/record.ts reads it


def wall_clock():
    """The clock that the test sets: libfaketime breaks time.sleep."""
    with open(os.environ["FAKECLOCK_FILE"]) as file:
        return time.time() + float(file.read())


segments.clocks = lambda: (time.monotonic(), wall_clock())
snowflakes.clock_ms = lambda: int(wall_clock() * 1_000)


def refused(reason):
    with guard:
        if reason not in refusals:
            print("refused", reason, flush=True)
        refusals[reason] = refusals.get(reason, 0) + 1


def run(tag, threads, count, source):
    """Each thread is a stream: its ids are written in the order in which it got them."""
    file = os.open(os.path.join(config["folder"], f"{config['name']}.{tag}.ids"), os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND)

    def work(number):
        minted = 0
        while not stopped.is_set() or minted < count:
            try:
                for id_ in source():
                    os.write(file, RECORD.pack(id_, time.time() * 1_000, 1, 1, number, 0))
                    minted += 1
            except calls.Refusal as refusal:
                refused(refusal.reason or refusal.code.name)
                time.sleep(min(refusal.retry_after, 1))
            except TimeoutError:
                refused("TIMEOUT")
            if minted >= count:
                stopped.wait(0.02)

    return [threading.Thread(target=work, args=[number]) for number in range(threads)]


orders = Segments(ids, "accounts", config["block"])
ledger = Segments(ids, "ledger", config["block"])
traces = Snowflakes(workers, "clicks", config["name"])
many = config["count"] // 10
sources = [
    run("accounts", 2, many * 2, lambda: [orders.next()]),
    run("ledger", 2, many, lambda: [ledger.next()]),
    run("clicks", 2, many, lambda: [traces.next()]),
    run("invoices", 1, many * 2, lambda: [calls.mint(ids, "invoices"), *calls.batch(ids, "invoices", many // 20)]),
]
sources.append(run("streamed", 1, many // 10, lambda: calls.stream(ids, "streamed", many // 100)))
signal.signal(signal.SIGTERM, lambda *_: stopped.set())
try:
    calls.mint(ids, "unknown")
except calls.Refusal as refusal:
    refused(refusal.reason)
for thread in sum(sources, []):
    thread.start()
print("started", flush=True)
for thread in sum(sources, []):
    thread.join()
print("report " + json.dumps({"refusals": refusals}), flush=True)
