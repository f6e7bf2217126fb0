import { DecodeIdRequest, DecodeIdResponse } from "@idmint/proto";
import type { Decoded, DecodeService } from "../service/issue/decode.ts";
import { type Handler, handlerOf, type HandlerPorts } from "./method.ts";
import { NEEDS } from "./need.ts";

export function decodeHandler(decoder: DecodeService, ports: HandlerPorts): Handler {
  return handlerOf(
    "idmint.v1.IdService",
    {
      name: "DecodeId",
      request: DecodeIdRequest,
      response: DecodeIdResponse,
      need: NEEDS.issueOrObserve,
      about: ({ tag }) => tag,
      call: async ({ tag, value }) => response(await decoder.decode(tag, valueOf(value))),
      cost: ({ tag }) => ({ tag, ids: 0 }),
    },
    ports,
  );
}

/** The id of a request. */
export function valueOf(
  value: DecodeIdRequest["value"],
): { readonly id: bigint } | { readonly text: string } | undefined {
  if (value === undefined) return undefined;
  return value.$case === "id" ? { id: value.value } : { text: value.value };
}

function response({
  number,
  timeMs,
  fields,
  parts,
  uuidVersion,
  keyId,
}: Decoded): DecodeIdResponse {
  return {
    id: number,
    time: timeMs === undefined ? undefined : new Date(timeMs),
    snowflake: fields === undefined ? undefined : { ...fields, ticks: BigInt(fields.ticks) },
    parts: parts.map(({ name, value }) => ({ name, value })),
    uuidVersion,
    keyId,
  };
}
