// vitest's global set-up of the tests that need Redis: one server for the whole run, and its program for all of them.
import { shareRedis } from "./shared.ts";

export default async function setup(): Promise<() => Promise<void>> {
  return shareRedis();
}
