// One table of requests that no client sends, on both doors of gRPC.
import { expect, test } from "vitest";
import { RawFrames } from "../fast/frames.ts";
import { createTag, startTest, until } from "../support.ts";
import { MALFORMED, type Row } from "./malformed.ts";

const DOORS = ["fast", "grpc-js"] as const;

function expected([what, , fast, grpcJs = fast]: Row, door: (typeof DOORS)[number]): string {
  return `${what}: ${door === "fast" ? fast : grpcJs}`;
}

test.each(DOORS)("malformed requests are answered as the table says: %s", async (door) => {
  const it = await startTest({ flags: { "grpc-door": door } });
  await createTag(it, "orders");
  for (const [, before, rows] of MALFORMED) {
    for (const row of rows) {
      const [what, bytes] = row;
      const raw = new RawFrames(it.server.grpcAddress);
      raw.send(before, ...bytes);
      const isIgnored = expected(row, door).endsWith("ignored");
      await (isIgnored ? raw.settled() : until(() => raw.outcome() !== ""));
      expect(`${what}: ${raw.outcome() || "ignored"}`).toBe(expected(row, door));
      raw.socket.destroy();
    }
  }
  expect(it.events.filter(({ type }) => type === "internal-error")).toEqual([]);
});
