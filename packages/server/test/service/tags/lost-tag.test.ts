import type { Tag } from "@idmint/core/server";
import { reasonOf } from "@idmint/testkit/store-suite";
import { expect, test } from "vitest";
import { TagService } from "../../../src/service/tags/service.ts";

/** The reason of making a tag, with something else wrong with the request. */
async function reasonOfMaking(hasSeen: boolean, found: readonly Tag[]): Promise<string> {
  const ports = {
    store: { getTags: async () => found },
    directory: { hasSeen: () => hasSeen },
    gate: { run: async (work: () => Promise<unknown>) => work() },
    wallClock: () => 0,
  };
  const service = new TagService(ports as never);
  const wrong = { field: "tag", description: "is wrong", reason: "INVALID_NAME" } as const;
  return reasonOf(service.create({ name: "t", description: "", ceiling: 0n } as never, [wrong]));
}

test("a tag that this server knows and the store has lost is not made anew", async () => {
  expect(await reasonOfMaking(true, [])).toBe("STORE_EPOCH_CHANGED");
  expect(await reasonOfMaking(true, [{ name: "t", state: "DELETED" } as Tag])).toBe(
    "INVALID_ARGUMENT",
  );
  expect(await reasonOfMaking(false, [])).toBe("INVALID_ARGUMENT");
});
