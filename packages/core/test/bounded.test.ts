import { FakeTime } from "@idmint/testkit";
import { expect, test } from "vitest";
import { bounded } from "../src/bounded.ts";

const fail = (): never => {
  throw new Error("too late");
};

test("work that ends in time is answered, and its timer is gone", async () => {
  const time = new FakeTime();
  expect(await bounded(Promise.resolve("done"), 10, time, fail)).toBe("done");
  await expect(bounded(Promise.reject(new Error("broken")), 10, time, fail)).rejects.toThrow(
    "broken",
  );
  expect(time.pending).toBe(0);
});

test("after the bound nobody hears how the work ends", async () => {
  const time = new FakeTime();
  const { promise, reject } = Promise.withResolvers<string>();
  const refused = bounded(promise, 10, time, fail);
  const shrugged = bounded(promise, 10, time, () => undefined);
  time.advance(10);
  await expect(refused).rejects.toThrow("too late");
  expect(await shrugged).toBeUndefined();
  reject(new Error("broken"));
  await promise.catch(() => undefined);
});
