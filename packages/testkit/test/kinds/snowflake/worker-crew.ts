// A process of the SDK whose clients hold worker ids of one tag.
import { decode, SNOWFLAKE_PRESETS, type SnowflakeLayout } from "@idmint/core";
import { onTestFinished } from "vitest";
import { FakeWallClock } from "../../../src/faketime.ts";
import type { Child } from "../../../src/fleet/child.ts";
import type { Fleet } from "../../../src/fleet/fleet.ts";
import { readRecords, RECORD_BYTES } from "../../../src/fleet/record.ts";
import { until } from "../../../src/fleet/until.ts";
import { recordsSize } from "../../chaos.ts";

export const TAG = "workers";
/** That of the tag: 32 worker ids. */
export const layout: SnowflakeLayout = { ...SNOWFLAKE_PRESETS["41-10-12"], workerBits: 5 };

/** A process of the SDK with one client for each of its worker ids. */
export class Crew {
  readonly instances: readonly string[];
  readonly clock: FakeWallClock;
  readonly #fleet: Fleet;
  #child: Child | undefined;

  constructor(fleet: Fleet, name: string, size: number, skewMs: number) {
    this.#fleet = fleet;
    this.instances = Array.from({ length: size }, (_, at) => `${name}/${at}`);
    this.clock = new FakeWallClock(skewMs);
    onTestFinished(() => this.clock[Symbol.dispose]());
  }

  get child(): Child {
    if (this.#child === undefined) throw new Error("the crew was not started");
    return this.#child;
  }

  async start(): Promise<void> {
    const { instances } = this;
    const activities = [
      { kind: "next", perSecond: 8 },
      { kind: "take", perSecond: 2, count: 300 },
    ] as const;
    const load = { tag: TAG, activities, instances, deadlineMs: 1_000, rpcDeadlineMs: 500 };
    this.#child = await this.#fleet.startCallers("sdk", load, this.clock.env);
  }

  /** How much it has received up to now, for the two below. */
  get mark(): number {
    const size = recordsSize(this.#fleet, this.child);
    return size - (size % RECORD_BYTES);
  }

  /** The worker id of each client's last id after a mark, by client. */
  workers(since: number): ReadonlyMap<number, number> {
    const found = new Map<number, number>();
    for (const { kind, stream, base } of readRecords(this.#fleet.recordsOf(this.child), since)) {
      if (kind === "received") found.set(stream, decode(layout, base).worker);
    }
    return found;
  }

  /** What each client has received after a mark. */
  ids(since: number): readonly { readonly client: number; readonly id: bigint }[] {
    const records = [...readRecords(this.#fleet.recordsOf(this.child), since)];
    return records
      .filter(({ kind }) => kind === "received")
      .flatMap(({ stream: client, base, count }) => [
        { client, id: base },
        { client, id: base + BigInt(count - 1) },
      ]);
  }

  /** Waits until each client has made an id after a mark; answers how long that took, in milliseconds. */
  async resumed(since: number, withinMs = 30_000): Promise<number> {
    const start = performance.now();
    const { child, instances } = this;
    const every = `every client of ${instances[0]} issues`;
    try {
      await until(every, () => this.workers(since).size === instances.length, { withinMs });
    } catch (cause) {
      const issuing = [...this.workers(since).keys()].join(" ");
      throw new Error(`only of ${issuing} there are ids\n${child.describe()}`, { cause });
    }
    return performance.now() - start;
  }

  async refused(reason: string): Promise<void> {
    await this.child.waitForOutput(` ${reason}\n`, 30_000);
  }
}
