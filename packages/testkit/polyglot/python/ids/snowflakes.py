"""Snowflakes, made in this process."""

import os
import threading
import time

import grpc

from idmint.v1 import worker_service_pb2 as pb

from .calls import TIMEOUT, Refusal, call

RESERVE_MS = 3_000  # how far ahead of the ids time is reserved
BORROW_MS = 50  # how far ids may run ahead of the clock, when all sequences of a tick are used up
BACK_MS = 5  # how far the clock may be behind what it showed before
SILENT = {  # What says nothing about a lease: the same token again.
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.INTERNAL,
}


def not_yet():
    text = "ids are made as fast as the layout allows, or no more time is reserved for them"
    return Refusal(grpc.StatusCode.UNAVAILABLE, text, reason="SEGMENT_NOT_READY")


def clock_ms():
    return time.time_ns() // 1_000_000


class Snowflakes:
    """Makes the ids of one tag of kind snowflake under a leased worker id. Two of them may not have one instance.

    1. Tick and sequence only rise under a lease, and they pass an id before it leaves. A tick whose sequences are used
       up is left before the clock is looked at.
    2. An id is made only of a tick that the answers reserved as a whole, whatever was asked for and the clock says.
    3. A lease begins at its not_before_ms, above all that was ever reserved for its worker id.
    4. A token is sent again only while it is unknown whether it was used. A refused lease makes no more ids.
    """

    def __init__(self, stub, tag, instance):
        self._stub, self._tag, self._instance = stub, tag, instance
        self._lock, self._closed, self._pid = threading.Lock(), threading.Event(), os.getpid()
        self._lease, self._error = None, not_yet()  # why there is no lease
        threading.Thread(target=self._keep, daemon=True).start()

    def next(self, timeout=TIMEOUT):
        """The next id. Waits where that may help, and refuses while the clock is set back."""
        if os.getpid() != self._pid:
            raise RuntimeError("this worker id belongs to the parent process; make Snowflakes after the fork")
        end = time.monotonic() + timeout
        while True:
            with self._lock:
                id_ = self._try()
                error = not_yet() if self._lease else self._error
            if id_ is not None:
                return id_
            if error.code != grpc.StatusCode.UNAVAILABLE or time.monotonic() >= end:
                raise error.with_traceback(None)
            time.sleep(0.001)

    def close(self):
        self._closed.set()

    def _try(self):
        if self._lease is None:
            return None
        now = clock_ms()
        if now < self._clock_ms - BACK_MS:
            text = f"the clock was set back by {self._clock_ms - now} ms; no id is made until it has caught up"
            raise Refusal(grpc.StatusCode.FAILED_PRECONDITION, text, reason="CLOCK_MOVED_BACKWARDS")
        clock_tick = self._tick_at(now)
        if clock_tick > self._last_tick:
            return None  # The registry has confirmed no clock as late as this one.
        self._clock_ms = max(self._clock_ms, now)
        if clock_tick > self._tick:
            self._tick, self._sequence = clock_tick, 0
        limit = min(self._last_tick, max(clock_tick, self._first_tick) + BORROW_MS // self._unit_ms)
        if self._tick > limit:
            return None
        lease, layout = self._lease, self._layout
        id_ = self._tick << layout.extension_bits | lease.extension
        id_ = id_ << layout.data_center_bits | lease.data_center
        id_ = id_ << layout.worker_bits | lease.worker_id
        id_ = id_ << layout.sequence_bits | self._sequence
        self._sequence += 1
        if self._sequence == 1 << layout.sequence_bits:
            self._tick, self._sequence = self._tick + 1, 0
        return id_

    def _tick_at(self, ms):
        return (ms - self._origin_ms) // self._unit_ms

    def _last_tick_until(self, ms):
        return min(self._tick_at(ms + 1) - 1, (1 << self._layout.time_bits) - 1)

    def _keep(self):
        while not self._closed.is_set():
            if self._lease is None or not self._extend():
                self._begin()
            self._closed.wait(1)

    def _begin(self):
        request = pb.LeaseWorkerRequest(tag=self._tag, instance=self._instance)
        try:
            lease = call(self._stub.LeaseWorker, request, timeout=1)
        except Refusal as error:
            if error.code != grpc.StatusCode.DEADLINE_EXCEEDED:  # which is tried again
                with self._lock:
                    self._error = error
            return
        with self._lock:
            self._layout = layout = lease.snowflake.layout
            self._unit_ms, self._origin_ms = layout.time_unit.ToMilliseconds(), layout.time_origin.ToMilliseconds()
            self._first_tick = self._tick_at(lease.not_before_ms + self._unit_ms - 1)
            self._tick, self._sequence, self._clock_ms = self._first_tick, 0, 0
            self._last_tick = self._last_tick_until(lease.reserved_until_ms)
            self._lease = lease

    def _extend(self):
        """Reserves more time. Answers whether the lease is kept."""
        lease = self._lease
        with self._lock:
            next_ms = max(clock_ms(), self._origin_ms + self._tick * self._unit_ms)
        request = pb.RenewWorkerLeaseRequest(
            tag=self._tag, data_center=lease.data_center, worker_id=lease.worker_id, token=lease.token,
            extension=lease.extension, reserve_until_ms=next_ms + RESERVE_MS)
        answer = None
        try:
            answer = call(self._stub.RenewWorkerLease, request, timeout=1)
        except Refusal as error:
            if error.code in SILENT:
                return True
        with self._lock:
            if answer and (answer.epoch, answer.extension) == (lease.epoch, lease.extension):
                lease.token = answer.token
                self._last_tick = self._last_tick_until(answer.reserved_until_ms)
                return True
            self._lease, self._error = None, not_yet()
            return False
