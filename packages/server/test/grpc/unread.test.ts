import { type ClientHttp2Session, connect } from "node:http2";
import { expect, onTestFinished, test } from "vitest";
import { startTest } from "../support.ts";

/** Two frames. */
const LARGE = Buffer.alloc(17 * 1_024);
/** More than the memory of a connection holds, 8 MiB. */
const CALLS = 1_000;
const AT_ONCE = 20;

/** How a call ended: 0, or HTTP/2's code of why it was refused. */
function large(session: ClientHttp2Session, headers: object): Promise<number | undefined> {
  const stream = session.request({
    ":method": "POST",
    ":path": "/idmint.v1.IdService/GenerateId",
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
  stream.on("error", () => undefined);
  stream.resume().end(LARGE);
  return new Promise((resolve) => stream.once("close", () => resolve(stream.rstCode)));
}

test.each([
  ["an unknown method", { ":path": "/idmint.v1.IdService/Nothing" }],
  ["another content type", { "content-type": "text/plain" }],
])("a connection goes on after many large messages to %s", async (_, headers) => {
  const it = await startTest();
  const session = connect(`http://${it.server.grpcAddress}`);
  onTestFinished(() => session.destroy());
  for (let sent = 0; sent < CALLS; sent += AT_ONCE) {
    const calls = Array.from({ length: AT_ONCE }, () => large(session, headers));
    expect(await Promise.all(calls)).toEqual(Array(AT_ONCE).fill(0));
  }
});
