"""A process of callers for the nemesis: mints by plain gRPC, each call from the next server, and writes down what it got."""

import datetime
import itertools
import json
import os
import signal
import sys
import threading
import time

from ids import calls
from idmint.v1 import id_service_pb2 as pb
from idmint.v1 import id_service_pb2_grpc

config = json.loads(sys.argv[1])
stubs = [id_service_pb2_grpc.IdServiceStub(calls.connect(address)) for address in config["addresses"]]
turns = itertools.cycle(stubs)
stopped = threading.Event()


def micros():
    """The monotonic clock, which Node.js' process.hrtime reads too."""
    return time.monotonic_ns() // 1_000


class Lines:
    """Rows as packages/testkit/nemesis/callers/config.ts has them, in the order of `to`."""

    def __init__(self, part):
        name = os.path.join(config["folder"], config["name"] + part)
        self.file = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND)
        self.guard = threading.Lock()

    def add(self, load, stream, begun, row):
        now = datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
        with self.guard:
            common = {"tag": load["tag"], "who": f"{config['name']}/{stream}", "time": now, "from": begun, "to": micros() + 1}
            os.write(self.file, (json.dumps({**common, **row}) + "\n").encode())


history, uuids, refusals = Lines(".ndjson"), Lines(".uuids.ndjson"), Lines(".refusals.ndjson")


def mint(load, stream):
    tag, stub, begun = load["tag"], next(turns), micros()
    timeout = config["deadlineMs"] / 1_000
    try:
        if load["call"] == "take":
            answer = stub.GenerateIds(pb.GenerateIdsRequest(tag=tag, count=load["count"]), timeout=timeout)
            segments = [{"base": str(s.base), "count": s.count, "increment": str(s.increment)} for s in answer.segments]
            row = {"segments": segments}
        else:
            answer = stub.GenerateId(pb.GenerateIdRequest(tag=tag), timeout=timeout)
            row = {"id": str(answer.id)}
    except calls.grpc.RpcError as error:
        refusal = calls.Refusal.of(error)
        # Where no server answered, gRPC has no reason of idmint's.
        reason = refusal.reason or {"UNAVAILABLE": "SERVER_UNAVAILABLE"}.get(refusal.code.name, refusal.code.name)
        refusals.add(load, stream, begun, {"refused": f"{refusal.code.name} {reason}", "message": str(refusal)})
        return
    row["epoch"] = str(answer.epoch)
    if load["call"] == "text":
        uuids.add(load, stream, begun, {"uuid": answer.text, "epoch": row["epoch"]})
    else:
        history.add(load, stream, begun, {**row, **({"period": answer.period} if answer.period else {})})


def work(load, stream):
    every = load.get("parallel", 1) / load["perSecond"]
    due = time.monotonic()
    while not stopped.is_set():
        stopped.wait(max(0, due - time.monotonic()))
        due = max(due + every, time.monotonic() - 0.2)
        mint(load, stream)


threads = [
    threading.Thread(target=work, args=(load, stream))
    for stream, load in enumerate(config["loads"])
    for _ in range(load.get("parallel", 1))
]
signal.signal(signal.SIGTERM, lambda *_: stopped.set())
for thread in threads:
    thread.start()
print("started", flush=True)
for thread in threads:
    thread.join()
