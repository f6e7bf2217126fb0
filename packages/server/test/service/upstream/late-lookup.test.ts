import { IdmintError } from "@idmint/core";
import type { Tag, TagSettings } from "@idmint/core/server";
import { expect, test } from "vitest";
import { SEQUENCE, SETTINGS, settled, setUp } from "../directory-world.ts";

type World = ReturnType<typeof setUp>;

const SEGMENT = { min: 10, max: 10, holdForMs: 1_000, maxAgeMs: 1_000 };

/**
 * Asks for a tag that is not known here. The store reads its row at once, and its answer is held back until the tag was
 * changed and the poll has shown the change.
 */
async function askedBefore<T>(
  { time, store, directory }: World,
  ask: () => Promise<T> | T,
  change: () => Promise<Tag>,
): Promise<T> {
  const answer = Promise.withResolvers<void>();
  store.faults = { after: (operation) => (operation === "getTags" ? answer.promise : undefined) };
  const asked = Promise.resolve(ask());
  // How it ends is for the test to say.
  asked.catch(() => undefined);
  await settled();
  store.faults = {};
  await directory.apply([await change()], directory.history);
  answer.resolve();
  await settled();
  // Lookups keep a pause between them.
  time.advance(100);
  await settled();
  return asked;
}

/** The tag is deleted and made again with other settings. */
async function remade({ store }: World, settings: TagSettings): Promise<Tag> {
  await store.setTagState(settings.name, "DELETED", undefined);
  return store.createTag(settings);
}

test("a tag that is made anew as another kind while it is looked up is served as what it is now", async () => {
  const world = setUp();
  await world.store.createTag(SETTINGS);
  const one = await askedBefore(
    world,
    () => world.ids.generateId("orders", world.call),
    () => remade(world, SEQUENCE),
  );
  expect(one.id).toBe(1n);
  expect(world.directory.get("orders")?.rules.kind.kind).toBe("sequence");
});

test("a max_age that is lowered while a tag is looked up is the one that is handed out", async () => {
  const world = setUp();
  await world.store.createTag(SETTINGS);
  const kind = { ...SEGMENT, kind: "segment", start: 1n, maxAgeMs: 50 } as const;
  const change = { settings: { ...SETTINGS, kind } };
  const allocation = await askedBefore(
    world,
    () => world.ids.allocateSegment({ tag: "orders", count: 1, after: 0n }, world.call),
    () => world.store.updateTag("orders", change, undefined),
  );
  expect(allocation.maxAgeMs).toBe(50);
});

test("a tag that becomes PER_CLIENT while it is looked up never goes back behind what a client holds", async () => {
  const world = setUp();
  await world.store.createTag(SETTINGS);
  const first = await askedBefore(
    world,
    () => world.ids.allocateSegment({ tag: "orders", count: 1, after: 0n }, world.call),
    () => remade(world, { ...SETTINGS, order: "PER_CLIENT" }),
  );
  expect(first.segments).toMatchObject([{ base: 1n }]);
  // The client goes on with another server, which grants it everything up to 115.
  const request = { tag: "orders", kind: "segment", minCount: 105, after: 0n } as const;
  await world.store.grant([{ ...request, count: 105, seenVersion: 0n }]);
  const next = world.ids.allocateSegment({ tag: "orders", count: 1, after: 115n }, world.call);
  expect((await next).segments[0]?.base).toBeGreaterThan(115n);
});

test("a ticket tag that is advanced while it is looked up issues nothing from below", async () => {
  const world = setUp();
  const made = await world.tickets.makeSlots("orders", { kind: "ticket", start: 1n, slots: 4 });
  await world.store.createTag({ ...SETTINGS, kind: made });
  const one = await askedBefore(
    world,
    () => world.ids.generateId("orders", world.call),
    async () => {
      const options = { maxRaise: 10n ** 9n, validateOnly: false, expectedRevision: undefined };
      return (await world.store.advanceTag("orders", 1_000_000n, options)).tag;
    },
  );
  expect(one.id).toBeGreaterThan(1_000_000n);
});

test("a tag that is deleted while it is looked up is not brought back by the answer of before", async () => {
  const world = setUp();
  await world.store.createTag(SETTINGS);
  const one = askedBefore(
    world,
    () => world.ids.generateId("orders", world.call),
    () => world.store.setTagState("orders", "DELETED", undefined),
  );
  await expect(one).rejects.toMatchObject({ reason: "TAG_NOT_FOUND" });
  expect(world.directory.get("orders")).toBeUndefined();
});

test("a deletion that is told after the tag was made again does not hide the new tag", async () => {
  const world = setUp();
  await world.store.createTag(SETTINGS);
  const deleted = await world.store.setTagState("orders", "DELETED", undefined);
  const made = await world.store.createTag(SETTINGS);
  await world.directory.apply([made], world.directory.history);
  await world.directory.apply([deleted], world.directory.history);
  const one = world.ids.generateId("orders", world.call);
  await settled();
  expect((await one).id).toBe(1n);
});

test("a tag that changes during each of its lookups is not said to be absent", async () => {
  const world = setUp();
  let tag = await world.store.createTag(SETTINGS);
  world.store.faults = {
    after: async (operation) => {
      if (operation !== "getTags") return;
      const change = { description: "again" };
      tag = await world.store.updateTag("orders", change, undefined);
      await world.directory.apply([tag], world.directory.history);
    },
  };
  const one = Promise.resolve(world.ids.generateId("orders", world.call));
  const refused = one.catch((thrown: unknown) => thrown);
  for (let tries = 0; tries < 10; tries++) {
    await settled();
    world.time.advance(100);
  }
  expect(IdmintError.from(await refused)).toMatchObject({
    reason: "STORE_UNAVAILABLE",
    retryable: true,
  });
});

test("a record that is older than the newest one seen changes nothing", async () => {
  const world = setUp();
  const old = await world.store.createTag(SETTINGS);
  const found = world.directory.find("orders", world.call);
  await settled();
  await found;
  const kind = { ...SEGMENT, kind: "segment", start: 1n, maxAgeMs: 50 } as const;
  const change = { settings: { ...SETTINGS, kind } };
  const paused = await world.store.updateTag("orders", change, undefined);
  const now = await world.store.setTagState("orders", "PAUSED", undefined);
  await world.directory.apply([paused, now], world.directory.history);
  await world.directory.apply([old], world.directory.history);
  world.directory.admit([old]);
  const generate = async () => world.ids.generateId("orders", world.call);
  await expect(generate()).rejects.toMatchObject({ reason: "TAG_PAUSED" });
  const entry = world.directory.get("orders");
  expect([entry?.revision, entry?.rules.kind]).toMatchObject([now.revision, { maxAgeMs: 50 }]);
});
