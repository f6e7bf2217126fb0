import { IdmintError } from "@idmint/core";
import { IdServiceService } from "@idmint/proto";
import { expect, test } from "vitest";
import { call, sleep, startTest } from "../support.ts";

/** A server that stops waits for calls in flight, and all else of a stop is far quicker. */
const DRAIN_TIME = "10s";
const AT_ONCE_MS = 5_000;

test.each(["fast", "grpc-js"])(
  "calls that failed hold up no stop: %s, and HTTP",
  { timeout: 30_000 },
  async (door) => {
    const it = await startTest({
      flags: { "grpc-door": door, "drain-time": DRAIN_TIME },
      parts: {
        authorise: async () => {
          await sleep(1);
          throw new IdmintError("PERMISSION_DENIED", "not for you");
        },
      },
    });
    const request = { tag: "orders", name: "" };
    await expect(call(it.ids, IdServiceService.generateId, request)).rejects.toThrow("not for you");
    const response = await fetch(`http://${it.server.httpAddress}/idmint.v1.IdService/GenerateId`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(request),
    });
    expect(response.status).toBe(403);
    await response.text();
    const began = performance.now();
    await it.server.close();
    expect(performance.now() - began).toBeLessThan(AT_ONCE_MS);
  },
);
