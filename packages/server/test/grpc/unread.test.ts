import { connect } from "node:http2";
import { expect, onTestFinished, test } from "vitest";
import { createTag, startTest } from "../support.ts";

/** What a connection may have on its way, by HTTP/2's own default, is 64 KiB. */
const CALLS = 64;
/** Two frames, so that many calls are begun before one of them has ended. */
const LARGE = Buffer.alloc(17 * 1_024);

test.each([
  ["an unknown method", { ":path": "/idmint.v1.IdService/Nothing" }],
  ["another content type", { "content-type": "text/plain" }],
])("a connection goes on after large messages to %s", async (_, headers) => {
  const it = await startTest();
  await createTag(it, "orders");
  const session = connect(`http://${it.server.grpcAddress}`);
  onTestFinished(() => session.destroy());
  const answered = Array.from({ length: CALLS }, () => {
    const stream = session.request({
      ":method": "POST",
      ":path": "/idmint.v1.IdService/GenerateId",
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    });
    stream.resume().end(LARGE);
    return new Promise((resolve) => stream.once("close", () => resolve(stream.rstCode)));
  });
  expect(await Promise.all(answered)).toEqual(Array(CALLS).fill(0));
});
