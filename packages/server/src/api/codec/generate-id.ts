import { GenerateIdRequest, GenerateIdResponse } from "@idmint/proto";
import type { Codec } from "../method.ts";
import { KnownRequests } from "./known-requests.ts";
import { varintSize, writeVarint } from "./varint.ts";

// GenerateId is called far more often than anything else, so its messages are read and written by hand where they are as
// usual. Whatever else comes goes to the generated code; a test compares the two.

const known = new KnownRequests<GenerateIdRequest>((bytes) => GenerateIdRequest.decode(bytes));
/** Field 1 and field 2, as varints. */
const ID = 0x08;
const EPOCH = 0x10;

export const generateIdRequest: Codec<GenerateIdRequest> = {
  decode: (bytes) => known.of(bytes),
  encode: (message) => GenerateIdRequest.encode(message),
};

export const generateIdResponse: Codec<GenerateIdResponse> = {
  decode: (bytes) => GenerateIdResponse.decode(bytes),
  encode: (message) =>
    isPlain(message) ? new PlainAnswer(message) : GenerateIdResponse.encode(message),
};

/** An id and its epoch, and nothing else. */
function isPlain({ id, epoch, period, text, periodEndTime }: GenerateIdResponse): boolean {
  return id > 0n && epoch > 0n && period === "" && text === "" && periodEndTime === undefined;
}

class PlainAnswer {
  readonly #message: GenerateIdResponse;

  constructor(message: GenerateIdResponse) {
    this.#message = message;
  }

  finish(): Uint8Array {
    const { id, epoch } = this.#message;
    const idSize = varintSize(id);
    const bytes = new Uint8Array(2 + idSize + varintSize(epoch));
    bytes[0] = ID;
    writeVarint(bytes, 1, id);
    bytes[1 + idSize] = EPOCH;
    writeVarint(bytes, 2 + idSize, epoch);
    return bytes;
  }
}
