import { IdmintError, invalidField } from "@idmint/core";
import {
  DecodeIdRequest,
  DecodeIdResponse,
  GenerateIdRequest,
  GenerateIdResponse,
} from "@idmint/proto";
import type { PlainHandlers } from "../api/plain-ids.ts";
import type { Access } from "../service/access/access.ts";
import { HttpCallContext } from "./call-context.ts";
import type { HttpCalls } from "./calls.ts";
import { type Form, formOf } from "./form.ts";
import {
  isLeafPath,
  leafDecoded,
  leafFailure,
  leafId,
  leafIdOf,
  leafNotDecoded,
  leafParts,
  leafPathOf,
  leafRefusal,
} from "./leaf.ts";
import type { HttpAnswer, HttpRequest, Route } from "./route.ts";

const DECODE_PATH = "/idmint.v1.IdService/DecodeId";

export interface DropInPorts {
  readonly calls: HttpCalls;
  readonly handlers: PlainHandlers;
  /** Knows whose the tokens are that Tinyid made. */
  readonly access: Pick<Access, "ofTinyidToken" | "saysNothing">;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
}

/** Leaf's paths, for services that call Leaf today. */
export function leafRoute(ports: DropInPorts): Route {
  return {
    matches: isLeafPath,
    methods: "any",
    answer: (request) => answer(ports, request),
  };
}

function answer(ports: DropInPorts, request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
  const asked = leafPathOf(request.path);
  if (asked.asks === "decode") return decoded(ports, request);
  if (asked.asks === "nothing") {
    return leafRefusal(asked.status, { path: request.path, nowMs: ports.wallClock() });
  }
  return minted(ports, request, asked.asks, asked.tag);
}

async function minted(
  { calls, handlers, wallClock }: DropInPorts,
  request: HttpRequest,
  asks: "segment" | "snowflake",
  tag: string,
): Promise<HttpAnswer> {
  const context = new HttpCallContext(request, calls.ports);
  const handler = asks === "segment" ? handlers.one : handlers.snowflake;
  const outcome = await calls.call(handler, request, context, () =>
    GenerateIdRequest.encode({ tag, name: "" }).finish(),
  );
  if (outcome.refusal === undefined) return leafId(GenerateIdResponse.decode(outcome.answer).id);
  return leafFailure(asks, outcome.error, { path: request.path, nowMs: wallClock() });
}

/** Of a tag, by the tag's layout; without one by Leaf's only layout, which asks nobody. */
async function decoded({ calls }: DropInPorts, request: HttpRequest): Promise<HttpAnswer> {
  let form: Form;
  try {
    form = formOf(request.query);
  } catch (thrown) {
    return leafNotDecoded(IdmintError.from(thrown));
  }
  const id = leafIdOf(form);
  if (id === undefined) {
    const text = "must be an id, 0 to 9223372036854775807";
    return leafNotDecoded(invalidField("snowflakeId", text, "INVALID_ID"));
  }
  const tag = form.get("tag");
  if (tag === undefined) return leafDecoded(leafParts(id));
  return decodedBy(calls, request, tag, id);
}

async function decodedBy(
  calls: HttpCalls,
  request: HttpRequest,
  tag: string,
  id: bigint,
): Promise<HttpAnswer> {
  const handler = calls.ports.api.get(DECODE_PATH);
  if (handler?.kind !== "unary") throw new Error(`${DECODE_PATH} is not there`);
  const context = new HttpCallContext(request, calls.ports);
  const outcome = await calls.call(handler, request, context, () =>
    DecodeIdRequest.encode({ tag, value: { $case: "id", value: id } }).finish(),
  );
  if (outcome.refusal !== undefined) return leafNotDecoded(outcome.error);
  const { snowflake, time } = DecodeIdResponse.decode(outcome.answer);
  if (snowflake === undefined || time === undefined) {
    const text = `tag "${tag}" is of no kind whose ids hold a time and a worker`;
    return leafNotDecoded(new IdmintError("WRONG_KIND", text));
  }
  return leafDecoded({ ...snowflake, timeMs: time.getTime() });
}
