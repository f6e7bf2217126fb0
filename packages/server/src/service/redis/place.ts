import { IdmintError, segmentNotReady } from "@idmint/core";
import type { CountingPlace, Tag } from "@idmint/core/server";
import { redisServerOf } from "@idmint/core/kinds";
import type { Raises } from "../upstream/raises.ts";

/** Where a tag counts and up to where it may, from one reading of its row. */
export interface TagPlace extends CountingPlace {
  readonly floor: bigint;
  readonly epoch: bigint;
}

/** When a newer record of the tag can have been heard of, in milliseconds. */
const RETRY_AFTER_MS = 100;

/** The refusal of who has another record of the tag than it takes. */
export function otherEpoch(tag: string): IdmintError {
  return segmentNotReady(tag, RETRY_AFTER_MS);
}

/** The ways to learn of a tag's row. */
interface RowPorts {
  readonly raises: Pick<Raises, "raise">;
  readonly readPlace: (tag: string) => Promise<TagPlace>;
}

/** The same, for who makes ids by a record of this epoch: they refuse when the row is of a later one. */
export function inEpoch({ raises, readPlace }: RowPorts, epoch: () => bigint): RowPorts {
  const present = <Row extends { readonly epoch: bigint }>(tag: string, row: Row): Row => {
    if (row.epoch > epoch()) throw otherEpoch(tag);
    return row;
  };
  return {
    raises: { raise: async (request) => present(request.tag, await raises.raise(request)) },
    readPlace: async (tag) => present(tag, await readPlace(tag)),
  };
}

/** WRONG_KIND for a tag that does not count in Redis. */
export function placeOf({ name, kind, generation, floor, epoch }: Tag): TagPlace {
  const redisServer = redisServerOf(kind);
  if (redisServer !== undefined) return { redisServer, generation, floor, epoch };
  throw new IdmintError("WRONG_KIND", `tag "${name}" does not count in Redis`, {
    metadata: { tag: name, kind: kind.kind },
  });
}
