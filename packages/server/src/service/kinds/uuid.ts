import { invalidField, type UuidMaker } from "@idmint/core";
import type { UuidKind } from "@idmint/core/kinds";
import { assertNoName, type TextIds } from "./text-source.ts";

/** Longest name of a UUID of version 3 or 5, in bytes of UTF-8. */
const MAX_NAME_BYTES = 4_096;

/** The UUIDs of a server. */
export function uuids(maker: UuidMaker): TextIds<UuidKind> {
  return {
    assertName: ({ version }, count, name) => {
      if (version === 3 || version === 5) assertName(version, count, name);
      else assertNoName(name);
    },
    next: (kind, name) => maker.next(kind, name),
  };
}

function assertName(version: number, count: number, name: string): void {
  if (name === "") {
    const wayOut = count > 1 ? "; ask with GenerateId, once for each" : "";
    throw invalidField(
      "name",
      `is required: the name that an id of version ${version} is made from${wayOut}`,
      "FIELD_REQUIRED",
    );
  }
  const bytes = new TextEncoder().encode(name).length;
  if (bytes <= MAX_NAME_BYTES) return;
  const tooLong = `must be at most ${MAX_NAME_BYTES} bytes, got ${bytes}`;
  throw invalidField("name", tooLong, "VALUE_OUT_OF_RANGE");
}
