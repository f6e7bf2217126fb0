// What one connection sends at once is read in slices, and all of it.
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { FRAME } from "../../src/fast/http2/frames.ts";
import { startTest } from "../support.ts";
import { frame, HELLO, number, request } from "./test-connection.ts";

const LAST = Buffer.from("the last");

/** Fulfils when the PING behind these bytes is answered. */
async function answered(bytes: Buffer): Promise<void> {
  const { server } = await startTest({ flags: { "grpc-door": "fast" } });
  const [host = "", port = ""] = server.grpcAddress.split(":");
  const socket = connect({ host, port: Number(port) });
  onTestFinished(() => {
    socket.destroy();
  });
  let text = "";
  const done = new Promise<void>((resolve, reject) => {
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      if (text.includes(LAST.toString("latin1"))) resolve();
    });
    socket.on("close", () => reject(new Error("the connection was closed")));
  });
  socket.write(Buffer.concat([HELLO, bytes, frame(FRAME.PING, 0, 0, LAST)]));
  await done;
}

test.each([15, 16, 17, 32, 64, 65, 66, 300])(
  "%i frames of 1 KiB at once are read",
  async (count) => {
    const one = frame(99, 0, 0, Buffer.alloc(1_015));
    await expect(answered(Buffer.concat(Array.from({ length: count }, () => one)))).resolves.toBe(
      undefined,
    );
  },
);

test("who cancels thousands of calls at once is read on after a while", async () => {
  const cancelled = Array.from({ length: 2_500 }, (_, at) => [
    request(2 * at + 1, "/none"),
    frame(FRAME.RST_STREAM, 0, 2 * at + 1, number(8)),
  ]);
  await expect(answered(Buffer.concat(cancelled.flat()))).resolves.toBe(undefined);
});
