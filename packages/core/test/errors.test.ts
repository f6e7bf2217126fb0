import { expect, test } from "vitest";
import { IdmintError } from "../src/errors.ts";
import { omitStacks } from "../src/server/index.ts";

test("a server can do without stacks of refusals, and keeps those of all other errors", () => {
  const at = /errors\.test\.ts/u;
  const limit = Error.stackTraceLimit;
  expect(new IdmintError("TAG_NOT_FOUND", "text").stack).toMatch(at);
  omitStacks();
  const refusal = new IdmintError("TAG_NOT_FOUND", "text", { cause: new Error("why") });
  expect(refusal.stack).toBe("IdmintError: TAG_NOT_FOUND: text");
  expect((refusal.cause as Error).stack).toMatch(at);
  expect(new IdmintError("INTERNAL", "text").stack).toMatch(at);
  expect(new Error("other").stack).toMatch(at);
  expect(Error.stackTraceLimit).toBe(limit);
});
