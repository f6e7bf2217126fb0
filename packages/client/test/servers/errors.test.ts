import { Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { CODE_OF_REASON, IdmintError, type Reason } from "@idmint/core";
import { ErrorInfo, Status } from "@idmint/proto/rpc";
import { expect, test } from "vitest";
import { fromServiceError } from "../../src/index.ts";
import { serviceError } from "../fake-fleet.ts";

function received(error: ReturnType<typeof serviceError>): ServiceError {
  return Object.assign(new Error(error.details), error);
}

function plain(code: status, details = "text"): ServiceError {
  return Object.assign(new Error(details), { code, details, metadata: new Metadata() });
}

const withDetails = (bytes: Uint8Array): ServiceError => {
  const error = plain(status.UNAVAILABLE);
  error.metadata.set("grpc-status-details-bin", Buffer.from(bytes));
  return error;
};
const info = (domain: string, reason: string): Uint8Array =>
  Status.encode({
    code: 14,
    message: "",
    details: [
      {
        typeUrl: "type.googleapis.com/google.rpc.ErrorInfo",
        value: Buffer.from(ErrorInfo.encode({ domain, reason, metadata: {} }).finish()),
      },
    ],
  }).finish();

const reasons = Object.keys(CODE_OF_REASON) as Reason[];

test.each(reasons)("%s comes back as it was sent", (reason) => {
  const sent = new IdmintError(reason, "the text", {
    metadata: { tag: "t" },
    violations: [{ field: "f", description: "d" }],
    retryAfterMs: 1_500,
  });
  const got = fromServiceError(received(serviceError(sent)));
  expect(got.reason).toBe(reason);
  expect(got.code).toBe(sent.code);
  expect(got.message).toBe(sent.message);
  expect(got.metadata).toEqual(sent.metadata);
  expect(got.violations).toEqual(sent.violations);
  expect(got.retryAfterMs).toBe(1_500);
  expect(got.retryable).toBe(sent.code === "UNAVAILABLE");
});

test.each([
  [status.UNAVAILABLE, "SERVER_UNAVAILABLE"],
  [status.INTERNAL, "SERVER_UNAVAILABLE"],
  [status.UNKNOWN, "SERVER_UNAVAILABLE"],
  [status.CANCELLED, "SERVER_UNAVAILABLE"],
  [status.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"],
  [status.UNAUTHENTICATED, "UNAUTHENTICATED"],
  [status.PERMISSION_DENIED, "PERMISSION_DENIED"],
  [status.UNIMPLEMENTED, "METHOD_NOT_FOUND"],
  [status.RESOURCE_EXHAUSTED, "OVERLOADED"],
  [status.INVALID_ARGUMENT, "INVALID_ARGUMENT"],
  [status.NOT_FOUND, "INTERNAL"],
  [status.FAILED_PRECONDITION, "INTERNAL"],
] as const)("gRPC status %i without details is %s", (code, reason) => {
  expect(fromServiceError(plain(code)).reason).toBe(reason);
});

test("details of another domain, of an unknown reason, or that do not decode, leave the status to decide", () => {
  for (const bytes of [
    info("example.com", "TAG_PAUSED"),
    info("idmint", "OF_THE_FUTURE"),
    info("idmint", "toString"),
    Uint8Array.of(0xff, 0xff, 0xff),
  ]) {
    expect(fromServiceError(withDetails(bytes)).reason).toBe("SERVER_UNAVAILABLE");
  }
});

function brokenTls(thread: string, time: string): string {
  return `No connection established. Last error: ${thread}:error:0A000086:SSL routines:certificate verify failed (${time})`;
}

test("failures of one cause have one text: times and numbers of threads are in the cause alone", () => {
  const failures = [
    brokenTls("40F7C0C1B27F0000", "2026-11-24T18:07:36.123Z"),
    brokenTls("80A1C0C1B27F0000", "2026-11-24T18:07:37Z"),
  ].map((text) => {
    const error = { code: status.UNAVAILABLE, details: text, metadata: new Metadata() };
    return fromServiceError(error);
  });
  expect(failures[0]!.message).toBe(failures[1]!.message);
  expect(failures[0]!.message).toContain(
    "reached: error:0A000086:SSL routines:certificate verify failed;",
  );
  expect((failures[0]!.cause as { details: string }).details).toContain("40F7C0C1B27F0000");
});
