import type { AskTimes } from "@idmint/core/server";
import { acceptStore, type StoreConfig } from "../../src/store/open-store.ts";

/** No time for servers to begin to speak. Who has begun is waited for as ever. */
const AT_ONCE: AskTimes = { leastMs: 1, mostMs: 12_000, longestMs: 55_000, pauseMs: 5_000 };

/** An accept where no server polls, so that nobody could hear that it asks: without the three seconds for that. */
export function acceptAtOnce(
  config: StoreConfig,
  gap: bigint,
  options: Parameters<typeof acceptStore>[2] = {},
): ReturnType<typeof acceptStore> {
  return acceptStore(config, gap, { ...options, askTimes: AT_ONCE });
}
