// Connect's unary protocol over the real server: JSON and bytes, errors, time-outs.
import { CreateTagRequest, GenerateIdRequest, GenerateIdResponse } from "@idmint/proto";
import { BadRequest, ErrorInfo } from "@idmint/proto/rpc";
import { expect, test } from "vitest";
import { createTag, holdBack, startTest, type TestServer, until } from "../support.ts";

interface Answer {
  readonly status: number;
  readonly json: {
    readonly [key: string]: unknown;
    readonly code?: string;
    readonly message?: string;
    readonly details?: readonly { type: string; value: string; debug: unknown }[];
  };
}

async function post(
  { server }: TestServer,
  method: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(`http://${server.httpAddress}/idmint.v1.${method}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: response.status, json: (await response.json()) as Answer["json"] };
}

/** The violations of a refusal, out of the bytes of its details. */
function violationsOf({
  json,
}: Answer): readonly (readonly [field: string, description: string])[] {
  const detail = json.details?.find(({ type }) => type === "google.rpc.BadRequest");
  const { fieldViolations } = BadRequest.decode(Buffer.from(detail?.value ?? "", "base64"));
  return fieldViolations.map(({ field, description }) => [field, description]);
}

test("JSON in, JSON out; numbers of 64 bits are text", async () => {
  const it = await startTest();
  const made = await post(it, "TagService/CreateTag", { tag: { name: "a", segment: {} } });
  expect(made.status).toBe(200);
  expect(made.json).toMatchObject({ tag: { name: "a", segment: { start: "1", min: 1_000 } } });
  const first = await post(it, "IdService/GenerateId", { tag: "a" });
  expect(first.json).toMatchObject({ id: "1" });
  const many = await post(it, "IdService/GenerateIds", { tag: "a", count: 2, as_list: true });
  expect(many).toMatchObject({ status: 200, json: { ids: ["2", "3"], segments: [], period: "" } });
  expect(it.server.counters.calls).toBe(3);
});

test("the bytes of gRPC in, the same bytes out", async () => {
  const it = await startTest();
  await createTag(it, "a");
  const body = GenerateIdRequest.encode({ tag: "a", name: "" }).finish();
  const response = await fetch(`http://${it.server.httpAddress}/idmint.v1.IdService/GenerateId`, {
    method: "POST",
    headers: { "content-type": "application/proto" },
    body,
  });
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("application/proto");
  const answer = GenerateIdResponse.decode(new Uint8Array(await response.arrayBuffer()));
  expect(answer).toMatchObject({ id: 1n });
});

test("a refusal is JSON with its details as bytes and as text, whatever the request was", async () => {
  const it = await startTest();
  for (const type of ["application/json", "application/proto"]) {
    const body =
      type === "application/json"
        ? '{"tag":"ghost"}'
        : Buffer.from(GenerateIdRequest.encode({ tag: "ghost", name: "" }).finish()).toString();
    const { status, json } = await post(it, "IdService/GenerateId", body, { "content-type": type });
    expect(status).toBe(404);
    expect(json.code).toBe("not_found");
    const [detail] = json.details ?? [];
    expect(detail?.type).toBe("google.rpc.ErrorInfo");
    expect(detail?.value).not.toContain("=");
    expect(ErrorInfo.decode(Buffer.from(detail?.value ?? "", "base64"))).toMatchObject({
      reason: "TAG_NOT_FOUND",
      domain: "idmint",
    });
    expect(detail?.debug).toMatchObject({ reason: "TAG_NOT_FOUND" });
  }
});

test("garbage in JSON is refused by the name of each field", async () => {
  const it = await startTest();
  const fieldsOf = async (method: string, body: unknown): Promise<readonly string[]> => {
    const answer = await post(it, method, body);
    expect(answer).toMatchObject({ status: 400, json: { code: "invalid_argument" } });
    for (const [, description] of violationsOf(answer)) expect(description).not.toBe("");
    return violationsOf(answer).map(([field]) => field);
  };
  const id = "IdService/GenerateId";
  expect(await fieldsOf(id, { tag: 5 })).toEqual(["tag"]);
  expect(await fieldsOf(id, { tag: "a", colour: "red", size: 1 })).toEqual(["colour", "size"]);
  expect(await fieldsOf(id, '{"tag":"a","tag":"b"}')).toEqual(["tag"]);
  expect(await fieldsOf(id, '{"__proto__":{"tag":"a"}}')).toEqual(["__proto__"]);
  expect(await fieldsOf("IdService/GenerateIds", { tag: "a", count: "0x10" })).toEqual(["count"]);
  expect(await fieldsOf("IdService/GenerateIds", { tag: "a", count: 1.5 })).toEqual(["count"]);
  const tag = { name: "a", segment: { min: "many", holdFor: "5 minutes" }, ceiling: 2 ** 53 };
  expect(await fieldsOf("TagService/CreateTag", { tag })).toEqual([
    "tag.segment.min",
    "tag.segment.holdFor",
    "tag.ceiling",
  ]);
  expect(await fieldsOf("TagService/CreateTag", { tag: [] })).toEqual(["tag"]);
  const twoKinds = { tag: { name: "a", segment: {}, sequence: {} } };
  expect(await fieldsOf("TagService/CreateTag", twoKinds)).toEqual(["kind"]);
  for (const body of ["", "{", "[]", "null", "5", '{"tag":"\\ud800"}']) {
    const answer = await post(it, id, body);
    expect(answer, body).toMatchObject({ status: 400, json: { code: "invalid_argument" } });
  }
  // What the library would have taken for other values.
  const audit = "AuditService/ListAuditEvents";
  expect(await fieldsOf(audit, { startTime: "2026-02-30T00:00:00Z" })).toEqual(["startTime"]);
});

test("names of fields as in the .proto files are taken too", async () => {
  const it = await startTest();
  const request = CreateTagRequest.toJSON(CreateTagRequest.fromPartial({ tag: { name: "a" } }));
  expect(request).toBeDefined();
  const tag = { name: "a", segment: { hold_for: "60s" } };
  const made = await post(it, "TagService/CreateTag", { tag, validate_only: true });
  expect(made.json).toMatchObject({ tag: { segment: { holdFor: "60s" } } });
});

test("streams and unknown methods are UNIMPLEMENTED, and other types are not taken", async () => {
  const it = await startTest();
  const stream = await post(it, "IdService/StreamIds", {});
  expect(stream).toMatchObject({ status: 501, json: { code: "unimplemented" } });
  expect(stream.json.message).toContain("gRPC only");
  expect(await post(it, "IdService/Nothing", {})).toMatchObject({
    status: 501,
    json: { code: "unimplemented" },
  });
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/grpc"]) {
    const answer = await post(it, "IdService/GenerateId", "{}", { "content-type": type });
    expect(answer.status).toBe(415);
  }
  const url = `http://${it.server.httpAddress}/idmint.v1.IdService/GenerateId`;
  for (const method of ["GET", "OPTIONS", "PUT"]) {
    const answer = await fetch(url, { method });
    expect(answer.status).toBe(405);
    expect(answer.headers.get("allow")).toBe("POST");
  }
});

test("headers of the protocol are checked", async () => {
  const it = await startTest();
  await createTag(it, "a");
  const id = "IdService/GenerateId";
  const right = { "connect-protocol-version": "1", "connect-timeout-ms": "5000" };
  expect((await post(it, id, { tag: "a" }, right)).status).toBe(200);
  for (const [header, value] of [
    ["Connect-Protocol-Version", "2"],
    ["Connect-Timeout-Ms", "soon"],
    ["Connect-Timeout-Ms", "12345678901"],
    ["Connect-Timeout-Ms", "-1"],
  ] as const) {
    const answer = await post(it, id, { tag: "a" }, { [header]: value });
    expect(answer.status).toBe(400);
    expect(violationsOf(answer).map(([field]) => field)).toEqual([header]);
  }
  const compressed = await post(it, id, "x", { "content-encoding": "gzip" });
  expect(compressed).toMatchObject({ status: 501, json: { code: "unimplemented" } });
});

test("a call ends at its time-out, and when its caller goes away", async () => {
  const it = await startTest();
  await createTag(it, "a");
  const release = holdBack(it.store, "grant");
  const id = "IdService/GenerateId";
  const late = await post(it, id, { tag: "a" }, { "connect-timeout-ms": "200" });
  expect(late.status).toBe(503);
  expect(late.json.code).toBe("unavailable");
  const { counters } = it.server;
  const { calls } = counters;
  const controller = new AbortController();
  const gone = fetch(`http://${it.server.httpAddress}/idmint.v1.${id}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"tag":"a"}',
    signal: controller.signal,
  });
  await until(() => counters.calls > calls);
  controller.abort();
  await expect(gone).rejects.toThrow("abort");
  await until(() => counters.refusals.get("CALL_CANCELLED") === 1);
  release();
});
