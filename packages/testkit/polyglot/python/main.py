import os

from ids import calls
from ids.segments import Segments
from ids.snowflakes import Snowflakes
from idmint.v1 import id_service_pb2_grpc, worker_service_pb2_grpc

ca = os.environ.get("IDMINT_CA_FILE")
channel = calls.connect(
    os.environ["IDMINT_ADDRESS"],
    token=os.environ.get("IDMINT_TOKEN"),
    ca=open(ca, "rb").read() if ca else None,
)
ids = id_service_pb2_grpc.IdServiceStub(channel)
workers = worker_service_pb2_grpc.WorkerServiceStub(channel)

one = calls.mint(ids, "orders")
ten = calls.batch(ids, "orders", 10)
more = list(calls.stream(ids, "orders", 1_000))
print("by calls:", one, len(ten), len(more))

orders = Segments(ids, "orders")
traces = Snowflakes(workers, "traces", instance="orders-0")
for _ in range(3):
    print("in this process:", orders.next(), traces.next())

try:
    calls.mint(ids, "unknown")
except calls.Refusal as refusal:
    print("refused:", refusal.reason)
