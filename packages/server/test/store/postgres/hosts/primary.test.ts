// The primary among several hosts while it fails over: hosts answer at different moments.
import { expect, test } from "vitest";
import { Primary } from "../../../../src/store/postgres/hosts/primary.ts";
import type { Look } from "../../../../src/store/postgres/hosts/primary-state.ts";

function look(address: string, isPrimary: boolean): Look {
  return { type: "server", address, cluster: "1", startedAt: address, isPrimary };
}

test("a primary that answers and dies, and a standby that is promoted and answers, are not two primaries", async () => {
  let looks = 0;
  const primary = new Primary(["a", "b"], async (url) => {
    if (url === "a") return look("a", looks++ === 0);
    return look("b", true);
  });
  expect(await primary.url()).toBe("b");
  expect(looks).toBe(2);
});

test("two primaries that both say so twice are refused", async () => {
  let looks = 0;
  const primary = new Primary(["a", "b"], async (url) => {
    looks++;
    return look(url, true);
  });
  await expect(primary.url()).rejects.toThrow("a and b of one URL are both primaries");
  expect(looks).toBe(4);
});
