"""Ids of a segment tag, from memory."""

import os
import threading
import time
from collections import deque
from dataclasses import dataclass

import grpc

from idmint.v1 import id_service_pb2 as pb
from idmint.v1 import tag_pb2

from .calls import TIMEOUT, Refusal, call

MAX_ID = 2**63 - 1


@dataclass
class Block:
    next: int
    increment: int
    left: int
    sent: tuple  # readings of both clocks before the request was sent
    max_age: float


def clocks():
    # The wall clock too, since the monotonic one may stand still while the machine is suspended.
    return time.monotonic(), time.time()


class Segments:
    """Issues the ids of one tag of kind segment, and gets the next block when a tenth of one is used.

    All of it happens under the lock, in the process that made it:
    1. The cursor passes an id before the id leaves, and never goes back.
    2. One load is under way at most. What a load that failed may have taken is never used.
    3. No id leaves under an epoch below the highest that was seen, or when its block is older than max_age.
    4. A block has no id that came before. With PER_CLIENT it lies above all that came before.
    """

    def __init__(self, stub, tag, count=10_000):
        self._stub, self._tag, self._count = stub, tag, count
        self._changed = threading.Condition()
        self._held, self._left = deque(), 0
        self._epoch, self._highest = 0, 0
        self._received = deque(maxlen=1_000)  # first and last id of segments
        self._is_loading, self._error, self._retry_at = False, None, 0.0
        self._pid = os.getpid()

    def next(self, timeout=TIMEOUT):
        """The next id, from memory or of the load under way."""
        if os.getpid() != self._pid:
            raise RuntimeError("these ids belong to the parent process; make Segments after the fork")
        end = time.monotonic() + timeout
        with self._changed:
            while True:
                id_ = self._take()
                is_low = self._left * 10 <= self._count * 9
                if is_low and not self._is_loading and time.monotonic() >= self._retry_at:
                    self._is_loading = True
                    threading.Thread(target=self._load, args=[self._highest], daemon=True).start()
                if id_ is not None:
                    return id_
                if not self._is_loading:
                    raise self._error.with_traceback(None)
                if not self._changed.wait(end - time.monotonic()):
                    raise TimeoutError(f"no ids of {self._tag} within {timeout} s")

    def _take(self):
        now = clocks()
        while self._held:
            block = self._held[0]
            age = max(now[0] - block.sent[0], now[1] - block.sent[1])
            if block.left > 0 and age < block.max_age:
                id_ = block.next
                block.next += block.increment
                block.left -= 1
                self._left -= 1
                return id_
            self._left -= block.left
            self._held.popleft()
        return None

    def _load(self, after):
        sent = clocks()
        request = pb.AllocateSegmentRequest(tag=self._tag, count=self._count, after=after)
        answer, error = None, None
        try:
            answer = call(self._stub.AllocateSegment, request)
        except Refusal as refusal:
            error = refusal
        with self._changed:
            if answer is not None:
                error = self._accept(answer, sent)
            if error and error.code in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.NOT_FOUND):
                self._drop()  # paused, deleted, stopped, or the store went back
            self._error = error
            self._retry_at = time.monotonic() + error.retry_after if error else 0.0
            self._is_loading = False
            self._changed.notify_all()

    def _drop(self):
        self._held.clear()
        self._left = 0

    def _accept(self, answer, sent):
        if answer.epoch < self._epoch:
            return Refusal(grpc.StatusCode.UNAVAILABLE, "this server has not heard of the tag's newer epoch yet")
        if answer.epoch > self._epoch:
            self._drop()
            self._epoch = answer.epoch
        above = -1 if answer.order == tag_pb2.ORDER_UNORDERED else self._highest
        if not answer.segments:
            return Refusal(grpc.StatusCode.FAILED_PRECONDITION, "the server answered no ids")
        for s in answer.segments:
            last = s.base + (s.count - 1) * s.increment
            is_bad = s.count < 1 or s.increment < 1 or s.base <= above or last > MAX_ID
            if is_bad or any(s.base <= known[1] and known[0] <= last for known in self._received):
                text = "the server answered ids that came before, or a malformed segment"
                return Refusal(grpc.StatusCode.FAILED_PRECONDITION, text)
            above, self._highest = last, max(self._highest, last)
            self._received.append((s.base, last))
        max_age = answer.max_age.ToTimedelta().total_seconds()
        for s in answer.segments:
            self._held.append(Block(s.base, s.increment, s.count, sent, max_age))
            self._left += s.count
        return None
