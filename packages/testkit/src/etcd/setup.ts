// vitest's global set-up of the tests that need etcd: one for the whole run, and its program for all of them.
import { shareEtcd } from "./shared.ts";

export default async function setup(): Promise<() => Promise<void>> {
  return shareEtcd();
}
