import { type Code as CodeName, IdmintError, invalidField } from "@idmint/core";
import type { Status } from "@idmint/proto/rpc";
import type { UnaryHandler } from "../api/method.ts";
import { rpcStatusOf } from "../api/status/status.ts";
import { codeName } from "../service/call-times.ts";
import { HttpRefusal, JSON_TYPE, jsonAnswer } from "./answers.ts";
import { HttpCallContext } from "./call-context.ts";
import type { HttpCalls } from "./calls.ts";
import type * as Json from "./json.ts";
import type { HttpAnswer, HttpRequest, Route } from "./route.ts";

/** The status of HTTP for each code, as Connect's specification has them. */
const HTTP_STATUS: Readonly<Record<CodeName, number>> = {
  ABORTED: 409,
  ALREADY_EXISTS: 409,
  CANCELLED: 499,
  DEADLINE_EXCEEDED: 504,
  FAILED_PRECONDITION: 400,
  INTERNAL: 500,
  INVALID_ARGUMENT: 400,
  NOT_FOUND: 404,
  OUT_OF_RANGE: 400,
  PERMISSION_DENIED: 403,
  RESOURCE_EXHAUSTED: 429,
  UNAUTHENTICATED: 401,
  UNAVAILABLE: 503,
  UNIMPLEMENTED: 501,
};
const TYPE_PREFIX = "type.googleapis.com/";
const PROTO_TYPE = "application/proto";
const TYPES = `application/json, ${PROTO_TYPE}`;
/** Of all packages with services. Whatever else is not found is no method of the API. */
const METHOD_PATH = /^\/[a-z][\w.]*\.v\d+\.\w+\/\w+$/;
const TIMEOUT = /^\d{1,10}$/;

/** JSON takes the descriptors of the API and what reads them, 5 MB, so it is loaded for the first call. */
let loading: Promise<typeof Json> | undefined;

/** Connect's protocol for unary methods: POST /idmint.v1.Service/Method, with JSON or with the bytes of gRPC. */
export function connectRoute(calls: HttpCalls): Route {
  return {
    matches: (path) => METHOD_PATH.test(path),
    methods: ["POST"],
    takesBody: true,
    answer: (request) => answer(calls, request),
  };
}

async function answer(calls: HttpCalls, request: HttpRequest): Promise<HttpAnswer> {
  const { path } = request;
  try {
    const handler = handlerOf(calls, path);
    const isJson = isJsonType(request.headers["content-type"]);
    const context = new HttpCallContext(request, calls.ports, timeoutOf(request));
    const body = await request.body();
    const json = await loadJson();
    const outcome = await calls.call(handler, request, context, () =>
      isJson ? json.requestOf(path, body) : body,
    );
    if (outcome.refusal !== undefined) return statusAnswer(outcome.refusal, json);
    return isJson
      ? answered(JSON_TYPE, `${json.responseOf(path, outcome.answer)}\n`)
      : answered(PROTO_TYPE, outcome.answer);
  } catch (thrown) {
    if (thrown instanceof HttpRefusal) throw thrown;
    return statusAnswer(rpcStatusOf(thrown, path, calls.ports), await loadJson());
  }
}

function loadJson(): Promise<typeof Json> {
  loading ??= import("./json.ts");
  return loading;
}

function answered(type: string, body: string | Uint8Array): HttpAnswer {
  return { status: 200, headers: { "content-type": type }, body };
}

function handlerOf({ ports: { api } }: HttpCalls, path: string): UnaryHandler {
  const handler = api.get(path);
  if (handler === undefined) {
    throw new IdmintError("METHOD_NOT_FOUND", `${path} is no method of this server`);
  }
  if (handler.kind !== "unary") {
    const text = `${path} is a stream, and streams are served over gRPC only`;
    throw new IdmintError("METHOD_NOT_FOUND", text);
  }
  return handler;
}

/** Whether the request is JSON; else it is bytes. A form of another page can send neither type. */
function isJsonType(header: string | undefined): boolean {
  const [type = "", parameter] = (header ?? "").toLowerCase().split(";", 2);
  const isUtf8 = parameter === undefined || /^\s*charset="?utf-8"?\s*$/.test(parameter);
  if (type.trim() === "application/json" && isUtf8) return true;
  if (type.trim() === PROTO_TYPE && parameter === undefined) return false;
  const got = header === undefined ? "no content-type" : `the content-type ${header.slice(0, 100)}`;
  throw new HttpRefusal(415, "unknown", `${got} is not taken; send one of ${TYPES}`, {
    "accept-post": TYPES,
  });
}

/** How long the caller waits; undefined: it does not say. */
function timeoutOf({ headers }: HttpRequest): number | undefined {
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    throw new IdmintError(
      "METHOD_NOT_FOUND",
      "compressed requests are not taken; send it as it is",
    );
  }
  const version = headers["connect-protocol-version"];
  if (version !== undefined && version !== "1") {
    throw invalidField("Connect-Protocol-Version", 'must be "1", or left out', "INVALID_FORMAT");
  }
  const timeout = headers["connect-timeout-ms"];
  if (timeout === undefined) return undefined;
  if (typeof timeout !== "string" || !TIMEOUT.test(timeout)) {
    throw invalidField("Connect-Timeout-Ms", "must be up to 10 decimal digits", "INVALID_FORMAT");
  }
  return Number(timeout);
}

/** A refusal in the form of Connect's errors, with its details. */
function statusAnswer({ code, message, details }: Status, { detailOf }: typeof Json): HttpAnswer {
  const name = codeName(code);
  return jsonAnswer(HTTP_STATUS[name as CodeName] ?? 500, {
    // One l in Connect.
    code: name === "CANCELLED" ? "canceled" : name.toLowerCase(),
    message,
    details: details.map(({ typeUrl, value }) => {
      const type = typeUrl.slice(TYPE_PREFIX.length);
      const base64 = value.toString("base64").replaceAll("=", "");
      return { type, value: base64, debug: detailOf(type, value) };
    }),
  });
}
