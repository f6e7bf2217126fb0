import type { Mutant } from "./mutant.ts";

const poll = "packages/server/src/service/upstream/poll.ts";
const ownAccept = "packages/server/src/service/upstream/own-accept.ts";
const wentBack = ["packages/server/test/store-went-back.e2e.test.ts"];
const byItself = { tests: wentBack, only: "with epoch_gap" };

/** Faults of servers that accept by themselves a store that went back. */
export const gapMutants: readonly Mutant[] = [
  {
    name: "epoch_gap: a server accepts though nobody told it to",
    file: ownAccept,
    find: `    if (gap === undefined || this.#isRunning || this.#acceptedIn === history) return;
    void this.#run(gap, history);`,
    replace: `    if (this.#isRunning || this.#acceptedIn === history) return;
    void this.#run(gap ?? 0n, history);`,
    tests: wentBack,
    only: "a store that is another one is refused",
  },
  {
    name: "epoch_gap: a server accepts without the gap",
    file: ownAccept,
    find: `await accept(gap, isWanted)`,
    replace: `await accept(0n, isWanted)`,
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
