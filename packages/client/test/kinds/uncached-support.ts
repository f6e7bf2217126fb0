// Tags whose ids servers hand out no segments of, against the transport without sockets.
import { IdmintError } from "@idmint/core";
import type { GenerateIdsResponse } from "@idmint/proto";
import { expect } from "vitest";
import { type FakeWorld, fakeWorld, type PendingGenerate, settle } from "../fake-transport.ts";
import { UNTOLD } from "../support.ts";

/** How a server refuses AllocateSegment for a tag of another kind. */
export function wrongKind(kind: string, more: Record<string, string> = {}): IdmintError {
  return new IdmintError("WRONG_KIND", "no segments", { metadata: { tag: "t", kind, ...more } });
}

/** The only AllocateSegment in flight is refused because of the tag's kind. */
export async function learn(
  world: FakeWorld,
  kind: string,
  more: Record<string, string> = {},
): Promise<void> {
  await settle();
  expect(world.transport.pending.length).toBe(1);
  world.transport.pending.shift()!.fail(wrongKind(kind, more));
  await settle();
  await settle();
}

/** The only GenerateIds in flight. */
export async function onlyOne({ transport }: FakeWorld): Promise<PendingGenerate> {
  await settle();
  await settle();
  expect([transport.pending.length, transport.generating.length]).toEqual([0, 1]);
  return transport.generating.shift()!;
}

/** The ids base … base + count − 1. */
export function idsFrom(
  base: bigint,
  count: number,
  more: Partial<GenerateIdsResponse> = {},
): GenerateIdsResponse {
  const segments = [{ base, count, increment: 1 }];
  const none = { ids: [], texts: [], period: "", periodEndTime: undefined };
  return { segments, ...none, epoch: 1n, ...UNTOLD, ...more };
}

/** Answers the only GenerateIds in flight with ids from `base` on, as many as it asks for. */
export async function answerFrom(
  world: FakeWorld,
  base: bigint,
  more: Partial<GenerateIdsResponse> = {},
): Promise<PendingGenerate> {
  const call = await onlyOne(world);
  call.answer(idsFrom(base, call.request.count, more));
  await settle();
  return call;
}

/** A world whose tag "t" is known to be of this kind, and answered the id 1. */
export async function worldOf(kind: string, options: object = {}): Promise<FakeWorld> {
  const world = fakeWorld({ address: "a:1", ...options });
  const first = world.client.tag("t").next();
  await learn(world, kind);
  await answerFrom(world, 1n);
  expect(await first).toBe(1n);
  return world;
}
