// What a server knows of tokens and stops is in its file, or its file says nothing.
import type { KeptCallers, KeptContents, SeenIssuing } from "@idmint/core/server";
import { expect, test } from "vitest";
import type { ServerEvent } from "../../../src/service/events.ts";
import { LeaseKeeper } from "../../../src/service/worker-ids/lease-keeper.ts";

const NOT_STOPPED: readonly SeenIssuing[] = [];

/** A keeper, its file, and what the store says of tokens. */
class Kept {
  now = 0;
  /** What the next run would find. */
  disk: KeptContents | undefined;
  isFull = false;
  isReadOnly = false;
  callers: KeptCallers = { tokens: [], believedUntil: 60_000 };
  readonly events: ServerEvent[] = [];
  readonly keeper = new LeaseKeeper({
    file: {
      found: undefined,
      write: async (contents) => {
        if (this.isFull || this.isReadOnly) throw new Error("ENOSPC");
        this.disk = contents;
      },
      empty: async () => {
        if (this.isReadOnly) throw new Error("EROFS");
        this.disk = undefined;
      },
    },
    clock: { now: () => this.now },
    timers: { after: () => () => undefined },
    wallClock: () => 1_800_000_000_000 + this.now,
    incarnation: () => "one",
    issuing: () => NOT_STOPPED,
    node: () => ({ id: "n", parts: [] }),
    callers: () => this.callers,
    emit: (event) => this.events.push(event),
  });

  /** The store's list is another one. */
  revoke(): void {
    this.callers = { ...this.callers, tokens: [] };
  }

  get told(): readonly (string | undefined)[] {
    return this.events.map((event) =>
      event.type === "lease-file-failed" ? event.error.message : event.type,
    );
  }
}

test("a file that cannot be written when a token was revoked is emptied", async () => {
  const kept = new Kept();
  await kept.keeper.saved();
  expect(kept.disk?.callers).toBe(kept.callers);
  kept.isFull = true;
  kept.revoke();
  await kept.keeper.saved();
  expect(kept.disk).toBeUndefined();
  kept.now += 60_000;
  expect(kept.keeper.isStale).toBe(false);
  // And it is written as soon as that works.
  kept.isFull = false;
  await kept.keeper.saved();
  expect(kept.disk?.callers).toBe(kept.callers);
});

test("one that can be neither written nor emptied is told of, until it can", async () => {
  const kept = new Kept();
  await kept.keeper.saved();
  kept.isReadOnly = true;
  kept.revoke();
  for (let looks = 0; looks < 5; looks++) {
    await expect(kept.keeper.saved()).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
    kept.now += 1_000;
  }
  expect(kept.keeper.isStale).toBe(true);
  expect(kept.told).toEqual([
    expect.stringContaining("cannot be written"),
    expect.stringContaining("neither written nor emptied"),
  ]);
  kept.isReadOnly = false;
  kept.isFull = true;
  await kept.keeper.saved();
  expect(kept.keeper.isStale).toBe(false);
  expect(kept.disk).toBeUndefined();
});

test("a write that failed and tells nothing new leaves the file as it is", async () => {
  const kept = new Kept();
  await kept.keeper.saved();
  const before = kept.disk;
  kept.isFull = true;
  await kept.keeper.report();
  expect(kept.disk).toBe(before);
});
