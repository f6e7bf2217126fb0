import { deserialize, serialize } from "node:v8";
import { IdmintError } from "@idmint/core";
import { expect, test } from "vitest";
import { errorOf, type Fault, faultOf } from "../../src/processes/messages.ts";

/** As it goes from process to process. */
function sent(thrown: unknown): Error {
  return errorOf(deserialize(serialize(faultOf(thrown))) as Fault);
}

test("an error of a process is the same in its parent", () => {
  const error = new IdmintError("STORE_UNAVAILABLE", "it is down", {
    metadata: { backend: "postgres" },
    violations: [{ field: "store.url", description: "leads nowhere" }],
    retryAfterMs: 50,
    cause: new Error("connect ECONNREFUSED"),
  });
  const back = sent(error);
  expect(back).toBeInstanceOf(IdmintError);
  const { message, reason, code, metadata, violations, retryAfterMs, stack } = error;
  expect(back).toMatchObject({ message, reason, code, metadata, violations, retryAfterMs, stack });
  expect((back.cause as Error).message).toBe("connect ECONNREFUSED");
});

test("what is no error of idmint, or no error at all, keeps its words", () => {
  const fault = new TypeError("x is not a function");
  expect(sent(fault)).toMatchObject({ message: fault.message, stack: fault.stack });
  expect(sent("a text").message).toBe("a text");
});
