import type { Tag } from "@idmint/proto";
import type { Send } from "../../calls/connection.ts";
import { CommandFailure } from "../../calls/failure.ts";
import { EXIT } from "../../process/exit-code.ts";
import { listPages } from "../../calls/paging.ts";
import { countsToFloor } from "../../text/kind-text.ts";
import type { FloorOf } from "./judge.ts";

/** Periods are kept for ten years at most. */
const MAX_PERIODS = 4_000;

/**
 * The floors that a server's store has. A tag that the store does not have has none of its ids either: its floor is 0.
 * Of tags whose floor says nothing of ids (unguessable ones, and kinds that are counted elsewhere) nothing is answered, nor
 * of periods that the store has forgotten.
 */
export function floorsOf(send: Send): FloorOf {
  const tags = new Map<string, Promise<ReadonlyMap<string, bigint> | undefined>>();
  return async (name, period) => {
    let known = tags.get(name);
    if (known === undefined) tags.set(name, (known = periodsOf(send, name)));
    return (await known)?.get(period);
  };
}

/** The floor of each period of a tag; without periods, that of its one space. */
async function periodsOf(
  send: Send,
  name: string,
): Promise<ReadonlyMap<string, bigint> | undefined> {
  const tag = await tagOf(send, name);
  if (tag === undefined) return new Map([["", 0n]]);
  if (tag.unguessable !== undefined || !countsToFloor(tag)) return undefined;
  const floors = new Map([[tag.period, tag.floor]]);
  if (tag.period === "") return floors;
  const ended = await listPages({ limit: MAX_PERIODS }, async (page) => {
    const { periods, nextPageToken } = await send(({ tags }) => tags.listPeriods.bind(tags), {
      name,
      ...page,
    });
    return { items: periods, nextPageToken };
  });
  for (const { period, lastId } of ended.items) floors.set(period, lastId);
  return floors;
}

/** A tag, or its tombstone, which keeps the floor. */
async function tagOf(send: Send, name: string): Promise<Tag | undefined> {
  try {
    return (await send(({ tags }) => tags.getTag.bind(tags), { name })).tag;
  } catch (thrown) {
    if (!(thrown instanceof CommandFailure) || thrown.failure.exitCode !== EXIT.notFound)
      throw thrown;
  }
  const request = { prefix: name, showDeleted: true, pageSize: 1_000, pageToken: "" };
  const { tags } = await send(({ tags: its }) => its.listTags.bind(its), request);
  return tags.find((tag) => tag.name === name);
}
