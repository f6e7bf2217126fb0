"""A caller for the tests that knows nothing of ids: it does the steps of its command line, and prints a line of JSON for each."""

import json
import sys
import threading
import time
from collections import Counter

import grpc

config = json.loads(sys.argv[1])
options = [("grpc.keepalive_permit_without_calls", 1), ("grpc.http2.max_pings_without_data", 0)]
if config["keepaliveMs"] > 0:
    options.append(("grpc.keepalive_time_ms", config["keepaliveMs"]))
if config["ca"] == "":
    channel = grpc.insecure_channel(config["address"], options)
else:
    with open(config["ca"], "rb") as file:
        channel = grpc.secure_channel(config["address"], grpc.ssl_channel_credentials(file.read()), options)


class Step:
    def __init__(self, step):
        self.step = step
        self.answers, self.ends, self.texts, self.guard = [], Counter(), set(), threading.Lock()
        self.retried = 0
        self.message = bytes.fromhex(step["message"])
        self.options = {"timeout": step["timeoutMs"] / 1_000}
        if step["metadataBytes"] > 0:
            self.options["metadata"] = [("x-large", "x" * step["metadataBytes"])]
        if step["gzip"]:
            self.options["compression"] = grpc.Compression.Gzip

    def answered(self, message):
        with self.guard:
            self.answers.append(message.hex())

    def ended(self, call):
        code = call.code()
        with self.guard:
            self.ends[code.value[0]] += 1
            if code != grpc.StatusCode.OK:
                self.texts.add(call.details())
        return code == grpc.StatusCode.OK

    def unary(self):
        method = channel.unary_unary("/" + self.step["method"])
        calls = [method.future(self.message, **self.options) for _ in range(self.step["calls"])]
        if self.step["cancelAfterMs"] > 0:
            time.sleep(self.step["cancelAfterMs"] / 1_000)
            for call in calls:
                call.cancel()
        for call in calls:
            if self.ended(call):
                self.answered(call.result())

    def stream(self):
        over = threading.Event()

        def messages():
            for _ in range(self.step["calls"]):
                yield self.message
            over.wait()

        call = channel.stream_stream("/" + self.step["method"])(messages(), **self.options)
        if self.step["cancelAfterMs"] > 0:
            threading.Timer(self.step["cancelAfterMs"] / 1_000, call.cancel).start()
        try:
            for answer in call:
                self.answered(answer)
                if len(self.answers) == self.step["calls"]:
                    over.set()
        except grpc.RpcError:
            pass  # Its code is looked at below.
        over.set()
        self.ended(call)

    def fly(self):
        """Calls one after the other, as many at a time as there are calls, for so long."""
        end = time.monotonic() + self.step["forMs"] / 1_000
        method = channel.unary_unary("/" + self.step["method"])

        def work():
            while time.monotonic() < end:
                call = method.future(self.message, **self.options)
                for _ in range(self.step["retries"]):
                    if call.code() != grpc.StatusCode.UNAVAILABLE:
                        break
                    with self.guard:
                        self.retried += 1
                    call = method.future(self.message, **self.options)
                if self.ended(call):
                    self.answered(call.result())
                time.sleep(0.02)

        workers = [threading.Thread(target=work) for _ in range(self.step["calls"])]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        time.sleep(max(0, end - time.monotonic()))

    def run(self):
        print("begun", flush=True)
        if self.step["forMs"] > 0:
            self.fly()
        elif self.step["isStream"]:
            self.stream()
        else:
            self.unary()
        seen = {"answers": self.answers, "ends": self.ends, "texts": sorted(self.texts), "retried": self.retried}
        print("seen " + json.dumps(seen), flush=True)


for each in config["steps"]:
    Step(each).run()
channel.close()
