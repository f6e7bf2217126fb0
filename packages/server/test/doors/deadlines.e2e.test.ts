import { GenerateIdRequest } from "@idmint/proto";
import { expect, test } from "vitest";
import { framed, grpcStatus, send, session } from "../fast/wire.ts";
import { createTag, holdBack, sleep, startTest, until } from "../support.ts";

test.each(["fast", "grpc-js"])("a call may have the time of a month: %s", async (door) => {
  const it = await startTest({ flags: { "grpc-door": door } });
  await createTag(it, "orders");
  const release = holdBack(it.store, "grant");
  const { calls } = it.server.counters;
  const request = framed(GenerateIdRequest.encode({ tag: "orders", name: "" }).finish());
  const ended = send(session(it.server.grpcAddress), {
    headers: { "grpc-timeout": "720H" },
    parts: [request],
  });
  await until(() => it.server.counters.calls > calls);
  await sleep(100);
  release();
  expect(grpcStatus(await ended)).toBe("0");
});
