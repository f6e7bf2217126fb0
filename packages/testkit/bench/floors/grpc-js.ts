// The floor: what a server on grpc-js costs that does nothing but answer the same messages from a counter.
import type { IdServiceServer } from "@idmint/proto/grpc-js";
import { setV8Flags } from "@idmint/server/v8-flags";

// As idmint does: before anything else is compiled.
if (setV8Flags().pretenuring !== "active") throw new Error("V8 does not have idmint's flags here");
const { Server, ServerCredentials } = await import("@grpc/grpc-js");
const { IdServiceService, Order } = await import("@idmint/proto");

let next = 1n;
const epoch = 1n;
const releaseToken = "0123456789abcdef01234567";
const maxAge = { seconds: 600n, nanos: 0 };

const handlers: Pick<IdServiceServer, "generateId" | "generateIds" | "allocateSegment"> = {
  generateId: (_call, answer) => {
    answer(null, { id: next++, epoch, period: "", text: "" });
  },
  generateIds: (call, answer) => {
    const { count } = call.request;
    const segments = [{ base: next, increment: 1, count }];
    next += BigInt(count);
    answer(null, { segments, ids: [], texts: [], epoch, period: "", nodesVersion: 0, nodeId: "" });
  },
  allocateSegment: (call, answer) => {
    const { count } = call.request;
    const segments = [{ base: next, increment: 1, count }];
    next += BigInt(count);
    answer(null, {
      segments,
      epoch,
      releaseToken,
      maxAge,
      order: Order.UNORDERED,
      maxCount: 10_000_000,
      nodesVersion: 0,
      nodeId: "",
    });
  },
};

const server = new Server();
server.addService(IdServiceService, handlers);
server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error;
  console.log(`listening on 127.0.0.1:${port}.`);
});
// Ends in an orderly way, so that a profile of it (--cpu-prof) is written.
process.once("SIGTERM", () => process.exit(0));
