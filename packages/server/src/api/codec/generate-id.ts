import { GenerateIdRequest, GenerateIdResponse } from "@idmint/proto";
import { type Codec, writtenByHand } from "./codec.ts";
import { KnownRequests } from "./known-requests.ts";
import { varintSize, writeVarint } from "./varint.ts";

// GenerateId is called far more often than anything else, so its messages are read and written by hand where they are as
// usual. Whatever else comes goes to the generated code; a test compares the two.

const known = new KnownRequests<GenerateIdRequest>((bytes) => GenerateIdRequest.decode(bytes));
/** Field 1 and field 2, as varints. */
const ID = 0x08;
const EPOCH = 0x10;

export const generateIdRequest: Codec<GenerateIdRequest> = {
  decode: (bytes) => known.of(bytes, 0, bytes.length),
  decodeAt: (bytes, from, to) => known.of(bytes, from, to),
  encode: (message) => GenerateIdRequest.encode(message),
};

/** An id and its epoch, and nothing else; -1: more than that. */
export function plainIdSize({
  id,
  epoch,
  period,
  text,
  periodEndTime,
}: GenerateIdResponse): number {
  const isPlain =
    id > 0n && epoch > 0n && period === "" && text === "" && periodEndTime === undefined;
  return isPlain ? 2 + varintSize(id) + varintSize(epoch) : -1;
}

export function writePlainId(
  { id, epoch }: GenerateIdResponse,
  bytes: Uint8Array,
  at: number,
): void {
  bytes[at] = ID;
  const next = writeVarint(bytes, at + 1, id);
  bytes[next] = EPOCH;
  writeVarint(bytes, next + 1, epoch);
}

export const generateIdResponse: Codec<GenerateIdResponse> = writtenByHand(GenerateIdResponse, {
  sizeOf: plainIdSize,
  write: writePlainId,
});
