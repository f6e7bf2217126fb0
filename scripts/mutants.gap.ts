import type { Mutant } from "./mutant.ts";

const poll = "packages/server/src/service/upstream/poll.ts";
const wentBack = ["packages/server/test/store-went-back.e2e.test.ts"];
const byItself = { tests: wentBack, only: "with epoch_gap" };

/** Faults of servers that accept by themselves a store that went back. */
export const gapMutants: readonly Mutant[] = [
  {
    name: "epoch_gap: a server accepts though nobody told it to",
    file: poll,
    find: `if (accept === undefined || epochGap === undefined || this.#acceptedIn === present) return;
    this.#acceptedIn = present;
    const { maxOfflineMs = null } = this.#ports.presence;
    const { tags } = await accept.accept(epochGap, maxOfflineMs);
    emit({ type: "store-accepted", gap: epochGap, tags });`,
    replace: `if (accept === undefined || this.#acceptedIn === present) return;
    this.#acceptedIn = present;
    const { maxOfflineMs = null } = this.#ports.presence;
    const { tags } = await accept.accept(epochGap ?? 0n, maxOfflineMs);
    emit({ type: "store-accepted", gap: epochGap ?? 0n, tags });`,
    tests: wentBack,
    only: "a store that is another one is refused",
  },
  {
    name: "epoch_gap: a server accepts without the gap",
    file: poll,
    find: `accept.accept(epochGap, maxOfflineMs)`,
    replace: `accept.accept(0n, maxOfflineMs)`,
    ...byItself,
  },
  {
    name: "epoch_gap: a server accepts a store that did not go back",
    file: poll,
    find: `if (!this.#detected || this.#stopped ||`,
    replace: `if (this.#stopped ||`,
    ...byItself,
  },
  {
    name: "epoch_gap: a server that sees a whole store go back accepts nothing",
    file: poll,
    find: `          this.#detected = true;
          directory.fenceAll(effect.detail);`,
    replace: `          directory.fenceAll(effect.detail);`,
    ...byItself,
  },
];
