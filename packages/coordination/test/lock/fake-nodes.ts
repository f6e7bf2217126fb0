import { CoordinationError } from "../../src/errors.ts";
import type { LockClaim, LockNode } from "../../src/lock/lock-node.ts";

/** A node in memory: what the scripts do, in plain words. Each call waits for `turn`, so that a test orders them. */
export class FakeNode implements LockNode {
  readonly name: string;
  readonly isReady = true;
  owner: string | undefined;
  counter: bigint;
  isDown = false;
  readonly #turn: (what: string) => Promise<void>;

  constructor(name: string, turn: (what: string) => Promise<void>, counter = 0n) {
    this.name = name;
    this.#turn = turn;
    this.counter = counter;
  }

  readonly take = async (
    { owner }: LockClaim,
    { isMinting }: { readonly isMinting: boolean },
  ): Promise<bigint | undefined> => {
    await this.#reached("take");
    if (this.owner !== undefined) return undefined;
    this.owner = owner;
    if (isMinting) this.counter++;
    return this.counter;
  };

  readonly confirm = async (
    { owner }: LockClaim,
    { value, isNew }: { readonly value: bigint; readonly isNew: boolean },
  ): Promise<boolean> => {
    await this.#reached("confirm");
    if (this.owner !== owner) return false;
    if (isNew ? value <= this.counter : value < this.counter) return false;
    this.counter = value;
    return true;
  };

  readonly extend = async ({ owner }: LockClaim): Promise<boolean> => {
    await this.#reached("extend");
    return this.owner === owner;
  };

  readonly holds = async ({ owner }: LockClaim): Promise<boolean> => {
    await this.#reached("holds");
    return this.owner === owner;
  };

  readonly release = async ({ owner }: LockClaim): Promise<boolean> => {
    await this.#reached("release");
    if (this.owner !== owner) return false;
    this.owner = undefined;
    return true;
  };

  readonly onDisconnect = (): (() => void) => () => undefined;

  async #reached(what: string): Promise<void> {
    await this.#turn(`${this.name} ${what}`);
    if (this.isDown) throw new CoordinationError("NODE_UNAVAILABLE", "down");
  }
}
