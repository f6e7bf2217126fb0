"""Calls to idmint."""

import threading
import time

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from idmint.v1 import id_service_pb2 as pb

TIMEOUT = 5.0  # seconds, of a call with all its tries
IN_FLIGHT = 100  # requests on a stream without an answer; a server takes 1,024
OPTIONS = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 2_000)]
CODES = {code.value[0]: code for code in grpc.StatusCode}


class Refusal(Exception):
    """Why there is no id: a code, a reason of idmint's (such as TAG_NOT_FOUND), and in how many seconds to try again."""

    def __init__(self, code, message, details=(), reason=""):
        super().__init__(message)
        self.code, self.reason, self.retry_after = code, reason, 0.1
        info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
        for detail in details:
            if detail.Unpack(info) and info.domain == "idmint":
                self.reason = info.reason
            if detail.Unpack(retry):
                self.retry_after = max(retry.retry_delay.ToTimedelta().total_seconds(), 0.001)

    @classmethod
    def of(cls, error):
        try:
            status = rpc_status.from_call(error)
        except ValueError:
            status = None  # details that contradict the code, of a proxy perhaps
        return cls(error.code(), error.details(), () if status is None else status.details)


def connect(address, token=None, ca=None):
    """Opens a connection: with TLS and a token, where `ca` is the PEM of an authority of your own, or without both."""
    if token is None and ca is None:
        return grpc.insecure_channel(address, OPTIONS)
    credentials = grpc.ssl_channel_credentials(ca)
    if token is not None:
        bearer = grpc.access_token_call_credentials(token)
        credentials = grpc.composite_channel_credentials(credentials, bearer)
    return grpc.secure_channel(address, credentials, OPTIONS)


def call(method, request, timeout=TIMEOUT):
    """Only UNAVAILABLE may be retried, after the time in RetryInfo. The new answer has other ids."""
    end = time.monotonic() + timeout
    while True:
        try:
            return method(request, timeout=end - time.monotonic())
        except ValueError as error:
            raise Refusal(grpc.StatusCode.CANCELLED, str(error)) from error  # The connection was closed here.
        except grpc.RpcError as error:
            refusal = Refusal.of(error)
            is_over = time.monotonic() + refusal.retry_after >= end
            if refusal.code != grpc.StatusCode.UNAVAILABLE or is_over:
                raise refusal from error
        time.sleep(refusal.retry_after)


def mint(stub, tag):
    """Mints one id."""
    return call(stub.GenerateId, pb.GenerateIdRequest(tag=tag)).id


def batch(stub, tag, count):
    """Mints ids in one call. They travel as ranges."""
    answer = call(stub.GenerateIds, pb.GenerateIdsRequest(tag=tag, count=count))
    return [s.base + i * s.increment for s in answer.segments for i in range(s.count)]


def stream(stub, tag, count):
    """Yields ids, minted by one small request each on one stream. When it breaks, ask again for the rest."""
    slots, is_over = threading.Semaphore(IN_FLIGHT), threading.Event()

    def requests():
        for number in range(count):
            slots.acquire()
            if is_over.is_set():
                return
            yield pb.StreamIdsRequest(call=number, tag=tag)

    answers = stub.StreamIds(requests(), timeout=TIMEOUT)
    try:
        for answer in answers:
            slots.release()
            if answer.HasField("error"):
                raise Refusal(CODES[answer.error.code], answer.error.message, answer.error.details)
            yield answer.one.id
    except grpc.RpcError as error:
        raise Refusal.of(error) from error
    finally:
        is_over.set()
        slots.release()
        answers.cancel()
