import { expect, test } from "vitest";
import { errorOfBody, garbled, tooLate, unreachable } from "../../src/api/errors.ts";

const BODY = {
  code: "invalid_argument",
  message: "count must be 1 to 10000",
  details: [
    {
      type: "google.rpc.ErrorInfo",
      value: "",
      debug: {
        reason: "COUNT_OUT_OF_RANGE",
        domain: "idmint",
        metadata: { tag: "orders", bad: 7 },
      },
    },
    {
      type: "google.rpc.BadRequest",
      value: "",
      debug: { fieldViolations: [{ field: "count", description: "must be 1 to 10000" }] },
    },
    { type: "google.rpc.RetryInfo", value: "", debug: { retryDelay: "1.500s" } },
  ],
};

test("an error of the server keeps its reason, metadata, fields and delay", () => {
  const error = errorOfBody(BODY);
  expect(error).toMatchObject({
    code: "invalid_argument",
    reason: "COUNT_OUT_OF_RANGE",
    message: "count must be 1 to 10000",
    metadata: { tag: "orders", bad: "" },
    violations: [{ field: "count", description: "must be 1 to 10000", reason: "" }],
    retryAfterMs: 1_500,
    isNoAnswer: false,
    isTransient: false,
    isOutcomeUnknown: false,
  });
});

test.each([undefined, null, "text", 7, [], {}, { code: 5 }, { message: "x" }])(
  "%j is no error of Connect",
  (body) => {
    expect(errorOfBody(body)).toBeUndefined();
  },
);

test.each([
  { code: "internal" },
  { code: "internal", details: "none" },
  { code: "internal", details: [null, 7, { debug: "x" }, { debug: { fieldViolations: {} } }] },
  { code: "internal", details: [{ debug: { fieldViolations: [null, 7] } }] },
])("an error with odd details is still an error: %j", (body) => {
  expect(errorOfBody(body)).toMatchObject({ code: "internal", reason: "", violations: [] });
});

test("a change without an answer may have been made, and one that was refused was not", () => {
  for (const error of [unreachable(), tooLate(1_000), garbled(502), garbled(200)]) {
    expect(error.isOutcomeUnknown).toBe(true);
    expect(error.isNoAnswer).toBe(true);
  }
  expect(garbled(502).isTransient).toBe(true);
  expect(garbled(404).isTransient).toBe(false);
  expect(errorOfBody({ code: "failed_precondition" })?.isOutcomeUnknown).toBe(false);
  expect(errorOfBody({ code: "deadline_exceeded" })?.isOutcomeUnknown).toBe(true);
});
