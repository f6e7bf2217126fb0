// The floor: what a server on grpc-js costs that does nothing but answer the same messages from a counter.
// Usage: grpc-js.ts stock|cured
import type { IdServiceServer } from "@idmint/proto/grpc-js";
import { applyFlagCures } from "../../../server/src/grpc/v8-flags.ts";

const isCured = process.argv[2] === "cured";
// As idmint does: before anything else is compiled.
if (isCured && applyFlagCures().pretenuring !== "active")
  throw new Error("no pretenuring cure here");
const { Server, ServerCredentials } = await import("@grpc/grpc-js");
const { IdServiceService, Order } = await import("@idmint/proto");
const { applyStreamRingCure, verifyStreamRingCure } =
  await import("../../../server/src/grpc/gc-cures.ts");
const { guardSessions } = await import("../../../server/src/grpc/sessions.ts");

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
const cure = {
  session: applyStreamRingCure,
  stream: (_: unknown, begin: () => void): void => begin(),
};
if (isCured && ((await verifyStreamRingCure()) !== "active" || !guardSessions(server, cure))) {
  throw new Error("no stream ring here");
}
server.addService(IdServiceService, handlers);
server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error;
  console.log(`listening on 127.0.0.1:${port}.`);
});
// Ends in an orderly way, so that a profile of it (--cpu-prof) is written.
process.once("SIGTERM", () => process.exit(0));
