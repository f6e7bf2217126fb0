import { IdmintError } from "@idmint/core";
import { type Store, wrapStore } from "@idmint/core/server";
import { MemoryStore } from "@idmint/testkit";
import { expect, test } from "vitest";
import { lateStore } from "../../src/store/late-store.ts";

/** A late store whose opening the test ends. */
function late() {
  const attempts: PromiseWithResolvers<Store>[] = [];
  const store = lateStore("sqlite", () => {
    const attempt = Promise.withResolvers<Store>();
    attempts.push(attempt);
    return attempt.promise;
  });
  return { store, attempts };
}

test("it opens for the first call, once for all that come meanwhile, and stays open", async () => {
  const { store, attempts } = late();
  expect([store.backend, store.schemaVersion, attempts.length]).toEqual(["sqlite", 0, 0]);
  const calls = [store.getTags(["t"]), store.getTags(["u"])];
  expect(attempts).toHaveLength(1);
  const inner = new MemoryStore();
  attempts[0]?.resolve(inner);
  expect(await Promise.all(calls)).toEqual([[], []]);
  expect(store.schemaVersion).toBe(1);
  await store.getTags(["t"]);
  expect([attempts.length, inner.count("getTags")]).toEqual([1, 3]);
});

test("while it cannot be opened calls hear that it is away, and each later one tries again", async () => {
  const { store, attempts } = late();
  for (const reason of ["STORE_REFUSED", "STORE_UNAVAILABLE"] as const) {
    const call = store.getTags(["t"]);
    attempts.at(-1)?.reject(new IdmintError(reason, "of a test"));
    await expect(call).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
  }
  const call = store.getTags(["t"]);
  attempts.at(-1)?.reject(new IdmintError("SCHEMA_MISMATCH", "of a test"));
  await expect(call).rejects.toMatchObject({ reason: "SCHEMA_MISMATCH" });
  expect(attempts).toHaveLength(3);
});

test("a store that lets the server in and refuses what it asks may be asked again", async () => {
  const { store, attempts } = late();
  const call = store.getTags(["t"]);
  const refusing = wrapStore(new MemoryStore(), async () => {
    throw new IdmintError("STORE_REFUSED", "PostgreSQL says no");
  });
  attempts[0]?.resolve(refusing);
  const refusal = { reason: "STORE_UNAVAILABLE", retryable: true };
  await expect(call).rejects.toMatchObject(refusal);
  await expect(store.getTags(["t"])).rejects.toThrow("PostgreSQL says no");
});

test("one that is closed while it opens is closed when it is open, and opens no more", async () => {
  const { store, attempts } = late();
  const call = store.getTags(["t"]);
  await store.close();
  const inner = new MemoryStore();
  attempts[0]?.resolve(inner);
  await expect(call).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
  expect(inner.isClosed).toBe(true);
  await expect(store.getTags(["t"])).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
  expect(attempts).toHaveLength(1);
});
