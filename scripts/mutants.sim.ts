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
off by one at a segment's end: the warm path runs over it | 10
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
service: a release is honoured twice | 40
-     this.#cells[cellOf(token)] = undefined;
# server/src/service/node-watch.ts
when a change is in effect goes by the present max_age, though it was lowered | 40
-     if (tag.earlier === undefined) {
+     if (tag.earlier !== null) {
# core/src/server/tag/memory.ts
what a row remembers of earlier settings is over at once | 40
- if (was > is) return { memoryMs: Math.max(was, before?.memoryMs ?? 0), revision };
+ if (was > is) return { memoryMs: was, revision };
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
# core/src/server/worker/registry-state.ts
snowflake: worker ids begin again at 0
- if (used >= 2 ** layout.workerBits) return undefined;
+ used %= 2 ** layout.workerBits;
# core/src/worker/lease-state.ts
snowflake: the next extension is taken up before it is saved
-   return [{ type: "renew", call, renewal }];
+   const early = { ...held, extension, reservedUntilMs: reserveUntilMs };
+   if (extension === held.extension) return [{ type: "renew", call, renewal }];
+   return [
+     { type: "take-up", lease: early, notBeforeMs: 0 },
+     { type: "renew", call, renewal },
+   ];
## core/test/server/admission/quota.model.test.ts
# core/src/server/admission/quota-state.ts
admission: each server admits the whole quota
- const perMs = rate / servers / 1_000;
+ const perMs = rate / Math.min(1, servers) / 1_000;
admission: a bucket in debt is forgotten, and its debt with it
- if (isFull(bucket, fill)) table
+ if (isFull(bucket, fill) || bucket.tokens < 0) table
## core/test/server/worker/clock-check.model.test.ts
# core/src/server/worker/clock-check-state.ts
clock: a jump ahead confirms itself
-   if (seen.length === 0 && confirmed !== undefined) {
+   if (confirmed !== undefined && wallMs - timeAt(confirmed, now) <= MAX_JUMP_MS * 2) {
## core/test/segment/seen-ranges.model.test.ts
# core/src/segment/seen-ranges.ts
sdk: ids of long ago are forgotten too soon
- seenAt > oldest || (
+ seenAt > oldest + 1 || (
## core/test/snowflake/clones.model.test.ts
# core/src/server/worker/registry-state.ts
snowflake: a token is good for more than one renewal
-     reservedUntilMs: reserved.reservedUntilMs,
-     token: held.token + 1n,
+     reservedUntilMs: reserved.reservedUntilMs,
+     token: held.token,
## server/test/service/worker-ids/lease-keeper.model.test.ts
# core/src/server/worker/kept-lease-state.ts
clock: the cache file without the reservation
-   const notBeforeMs = kept.usedUntilMs + 1;
+   const notBeforeMs = 0;
clock: the cache file goes beyond what the registry reserved
- Math.min(untilMs, kept.reservedUntilMs)
+ untilMs
## server/test/service/ledger.model.test.ts
# server/src/service/ledger.ts
ledger: released ids are handed out before their row is stored
-     void this.#flush(lane);
-     return promise;
+     void this.#flush(lane);
+     settle(true);
+     return promise;
# server/src/service/issue/directory.ts
ledger: a server gives back without a row
- requests.push({ ...request, giver: this.#ports.ledger?.giver });
+ requests.push(request);
## server/test/service/tags/issuing.model.test.ts
# server/src/service/upstream/poll.ts
a server that hears of a stop when it is over keeps what it held
-           directory.dropHeld();
- 
## server/test/service/issue/give-back.model.test.ts
# server/src/service/issue/give-back.ts
service: a give-back over the hole of another server's grant
- if (lastOf(segment) === from - 1n) from = segment.base;
+ from = segment.base;
## server/test/service/effect.model.test.ts
# core/src/server/node/presence-state.ts
the time to issue counts from the answer
-   return { part, sentAt, isContinuous };
+   return { part, sentAt: now, isContinuous };
a server opens with the renewal that makes its row move again
-   if (known === undefined || !isContinuous) return;
+   if (known === undefined) return;
# core/src/server/node/watch-state.ts
a server without a limit is taken to have stopped
-     if (maxOfflineMs === undefined) return undefined;
- 
+     if (maxOfflineMs === undefined) continue;
+ 
what is said of a change goes by rows from before it
- watched.askedRevision < revision ? undefined
+ watched.askedRevision < 0n ? undefined
# server/src/service/node-watch.ts
callers' time is counted without the margin
- at + withClockMargin(memoryMs)
+ at + memoryMs
## server/test/service/uniqueness.model.test.ts
# server/src/service/upstream/grants.ts
grants: ids are used that were granted here before
- const verdict = isAbove ? guard.admitIds(tag, ids) : "again";
+ const verdict = isAbove ? "new" : "again";
## server/test/service/redis/sequence.model.test.ts
# server/src/service/redis/agreement.ts
a generation that the store gave out and nobody seeded is not heard of
- this.update({ ...this.#place, generation });
+ this.update({ ...this.#place });
## core/test/segment/expiry.model.test.ts
# core/src/segment/cursor.ts
an idle SDK issues an id by the look of its ticker
- state.stride > 1 ? state.stride : 0
+ state.stride
sdk: what a burst left is issued until a ticker runs
- return stride > 1 && 
+ return stride > 1_024 && 
sdk: only a ticker notices that ids have expired
- if (state.loads[0]?.expiresAt !== Infinity) {
+ if (state.loads.length > 2) {
# core/src/segment/buffer-state.ts
sdk: an answer that expired on its way is used
- const isExpired = now >= expiresAt;
+ const isExpired = false;
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
## client/test/servers/servers.model.test.ts
# client/src/servers/servers-state.ts
sdk: a list counts that names a server of this store, whoever answers it
- const isTrusted = isOfStore(state, by.from, list.nodeId);
+ const isTrusted =
+   state.seeds.includes(by.from) || list.servers.some(({ nodeId }) => state.nodeIds.has(nodeId));
`);

/** Core, the SDK, and of the server all that stands above its stores and behind its doors. */
const INSIDE = /^packages\/(?:core\/src|server\/src\/(?:api|main|service)|client\/src)\//;
const REDIS =
  "In 300 histories it changes no answer: only tests that set a real Redis back in between show it.";

/** Faults inside that neither a simulated fleet nor a model notices, and why. */
const REAL_ONLY: Readonly<Record<string, string>> = {
  "positions in Redis are compared with what this server saw alone": REDIS,
  "a lower generation is asked for in Redis after a higher one was answered to others": REDIS,
  "changes of workers in Redis are not compared": REDIS,
  "a tag that moved after the raise is started in its old Redis server":
    "No history has a tag that moves between Redis servers.",
  "who watches raises again and again what Redis does not take":
    "It throws ids away, and changes no answer.",
  "owner: Redis is not told which store counts in it":
    "Histories put a server together without app.ts, which opens files, doors and Redis.",
};

/** Throws unless a simulated fleet or a model notices each fault inside, or it is said why none can. */
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
