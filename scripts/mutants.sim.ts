import { type Mutant, mutantsOf } from "./mutant.ts";

/** Runs simulated fleets, in the place of a test. */
export const SIMULATION = "packages/testkit/sim/main.ts";

// Faults of core, service and SDK that simulated fleets notice, each within so many histories, or models.
export const simMutants: readonly Mutant[] = mutantsOf(`## testkit/sim/main.ts
# client/src/kinds/uncached-ids.ts
sdk: every call of a request is dealt its first ids | 10
- let skip = Number(base);
+ let skip = 0 * Number(base);
# core/src/segment/buffer.ts
check-then-increment across an await | 10
-     const id = this.#issueOne(now);
-     if (id !== undefined) return id;
-     const segments
+     const seen = peekId(this.#state);
+     if (seen !== undefined) {
+       return Promise.resolve().then(() => {
+         this.#issueOne(now);
+         return seen;
+       });
+     }
+     const segments
# core/src/segment/cursor.ts
off by one at a segment's end: one id too many | 10
- const part = Math.min(rest, segment.count - state.offset);
+ const part = Math.min(rest, segment.count - state.offset + 1);
off by one at a segment's end: the warm path runs over it | 20
- let limit = segment.count - 1;
+ let limit = segment.count + 1;
# core/src/sequence/group-commit-state.ts
group commit: ids of a call that ended go to the next one, which another one has | 10
-     base += BigInt(count);
- 
# server/src/service/drain.ts
traffic: a server that was undrained issues no more | 10
-         if (effect.hasRested) directory().resume();
- 
# server/src/service/issue/directory.ts
traffic: a server that was undrained issues from what it gave back | 10
-     const entries = [...this.#entries.values()];
-     this.#entries.clear();
- 
+     const entries = [...this.#entries.values()];
+ 
# server/src/service/issue/release-tokens.ts
service: a release is honoured twice | 30
-     this.#cells[cellOf(token)] = undefined;
# server/src/service/upstream/grants.ts
grants: ids are used that were granted here before | 40
- const verdict = isAbove ? guard.admitIds(tag, ids) : "again";
+ const verdict = isAbove ? "new" : "again";
## core/test/snowflake/snowflake.model.test.ts
# core/src/snowflake/generator-state.ts
snowflake: a worker id is its holder's for the time of a lease, whatever was reserved
- tickAt(layout, reservedUntilMs + 1) - 1;
+ tickAt(layout, reservedUntilMs + 30_000) - 1;
# core/src/server/worker/registry-state.ts
snowflake: who takes a worker id over does not start above what was reserved
- const notBeforeMs = before + 1;
+ const notBeforeMs = rules.layout.timeOriginMs;
snowflake: a reservation is raised without asking whose it is
- if (row?.token === key.token) return row;
+ if (row !== undefined) return row;
# core/src/snowflake/generator-state.ts
snowflake: a used up sequence is not carried to the next tick
-     state.tick++;
- 
## core/test/segment/buffer.model.test.ts
# core/src/segment/buffer-state.ts
two loads in flight
- if (loading.phase === "loading" || state.fenced !== undefined) return;
+ if (state.fenced !== undefined) return;
a segment below after is accepted
- if (segment.base <= last) return false;
the prefetch result of an old epoch is accepted
- const isUsable = count > 0 && load.epoch === state.epoch;
+ const isUsable = count > 0;
the answer of a load that was given up is used
- if (state.loading.phase !== "loading" || state.loading.token !== token) {
+ if (state.loading.phase !== "loading") {
## core/test/sequence/group-commit.model.test.ts
# core/src/sequence/group-commit-state.ts
group commit: the answer of any round trip serves the batch in flight
-   if (flight.phase !== "committing" || flight.token !== token) {
-     return [{ type: "wasted"
+   if (flight.phase !== "committing") {
+     return [{ type: "wasted"
group commit: ids of an older epoch are answered
- if (ids.epoch < state.epoch) {
+ if (ids.epoch < 0n) {
`);

const INSIDE = /^packages\/(?:core\/src|server\/src\/service|client\/src)\//;
const REDIS =
  "Simulated fleets have no Redis: what it forgets, and what its scripts compare then, only a real one shows.";

/** Faults inside that neither a simulated fleet nor a model notices, and why. */
const REAL_ONLY: Readonly<Record<string, string>> = {
  "positions in Redis are compared with what this server saw alone": REDIS,
  "a lower generation is asked for in Redis after a higher one was answered to others": REDIS,
  "changes of workers in Redis are not compared": REDIS,
  "a tag that moved after the raise is started in its old Redis server": REDIS,
};

/** Throws unless a simulated fleet or a model notices each fault of core, service and SDK, or it is said why none can. */
export function assertNoticedInside(mutants: readonly Mutant[]): void {
  const inside = mutants.filter(({ file }) => INSIDE.test(file));
  for (const { name, tests } of inside) {
    const isNoticed = tests.some((test) => test === SIMULATION || test.endsWith(".model.test.ts"));
    const why = REAL_ONLY[name];
    if (isNoticed === (why !== undefined))
      throw new Error(
        `${name}: neither simulated fleets nor a model notice it, or it is said both`,
      );
  }
  const lost = Object.keys(REAL_ONLY).find((name) => !inside.some((one) => one.name === name));
  if (lost !== undefined) throw new Error(`${lost}: there is no such fault`);
}
