import type { Mutant } from "./mutant.ts";

const segment = "packages/core/src/segment";
const buffer = ["packages/core/test/buffer.test.ts"];
const answers = "packages/client/src/answers.ts";
const repeats = ["packages/client/test/repeats.test.ts"];
const dead = ["packages/client/test/dead-address.test.ts"];
const seenRanges = `${segment}/seen-ranges.ts`;
const ranges = ["packages/core/test/seen-ranges.model.test.ts"];

/** Faults of what the SDK believes, and of how long it keeps it. */
export const sdkMutants: readonly Mutant[] = [
  {
    name: "sdk: only a ticker notices that ids have expired",
    file: `${segment}/cursor.ts`,
    find: `if (state.loads[0]?.expiresAt !== Infinity) {`,
    replace: `if (state.loads.length > 2) {`,
    tests: buffer,
  },
  {
    name: "sdk: a long stride outlives the burst that made it",
    file: `${segment}/buffer-state.ts`,
    find: `Math.min(MAX_STRIDE, state.stride * 2) : 1;`,
    replace: `Math.min(MAX_STRIDE, state.stride * 2) : state.stride;`,
    tests: buffer,
  },
  {
    name: "sdk: the stride of a burst has no limit",
    file: `${segment}/buffer-state.ts`,
    find: `Math.min(MAX_STRIDE, state.stride * 2) : 1;`,
    replace: `state.stride * 2 : 1;`,
    tests: buffer,
  },
  {
    name: "sdk: the slow path issues before it looks at the clock",
    file: `${segment}/buffer.ts`,
    find: `    this.#run(look(this.#state, now));
    return now;`,
    replace: `    void Promise.resolve().then(() => this.#run(look(this.#state, now)));
    return now;`,
    tests: buffer,
  },
  {
    name: "sdk: a waiter gets ids that expired while it waited",
    file: `${segment}/buffer-state.ts`,
    find: `const effects: Effect[] = [...look(state, now)];
  state.loading = { phase: "idle" };`,
    replace: `const effects: Effect[] = [];
  state.loading = { phase: "idle" };`,
    tests: buffer,
  },
  {
    name: "sdk: an answer that expired on its way is used",
    file: `${segment}/buffer-state.ts`,
    find: `const isExpired = now >= expiresAt;`,
    replace: `const isExpired = false;`,
    tests: buffer,
  },
  {
    name: "sdk: a direct answer that expired on its way is used",
    file: `${segment}/buffer.ts`,
    find: `if (isExpired) throw`,
    replace: `if (isExpired && this.#directCalls < 0) throw`,
    tests: buffer,
  },
  {
    name: "sdk: segments of one answer may overlap, and come again",
    file: answers,
    find: `id ??= this.#seen.admit(segments);`,
    replace: ``,
    tests: repeats,
  },
  {
    name: "sdk: segments of one answer may be in any order",
    file: answers,
    find: `base >= before.base) continue;`,
    replace: `base >= 0n) continue;`,
    tests: repeats,
  },
  {
    name: "sdk: ids that servers mint one by one are believed",
    file: "packages/client/src/kinds/uncached-ids.ts",
    find: `    else this.#answers.assertNew(segments, endpoint);
`,
    replace: ``,
    tests: repeats,
  },
  {
    name: "sdk: what is held stays after an answer that is not to be believed",
    file: `${segment}/buffer-state.ts`,
    find: `  "SEGMENT_INVALID",
`,
    replace: ``,
    tests: repeats,
  },
  {
    name: "sdk: what is held and no longer remembered may come again",
    file: answers,
    find: `for (const segment of segments) id ??= this.#heldIdOf(segment);`,
    replace: ``,
    tests: repeats,
  },
  {
    name: "sdk: ids of long ago are forgotten too soon",
    file: seenRanges,
    find: `seenAt > oldest || (`,
    replace: `seenAt > oldest + 1 || (`,
    tests: ranges,
  },
  {
    name: "sdk: a range that grows at its start is remembered without what it grew by",
    file: seenRanges,
    find: `after.first = range.first;`,
    replace: `after.first = range.last;`,
    tests: ranges,
  },
  {
    name: "sdk: segments that interleave are never compared",
    file: seenRanges,
    find: `if (apart % divisor !== 0n) return undefined;`,
    replace: `return undefined;`,
    tests: ranges,
  },
  {
    name: "sdk: calls wait for a server that was never reached",
    file: "packages/client/src/servers/endpoints.ts",
    find: `return this.#ports.clock.now() - sinceMs >= FIRST_CONTACT_MS;`,
    replace: `return sinceMs < 0;`,
    tests: dead,
  },
  {
    name: "sdk: calls are refused in an outage as if no server had been reached",
    file: "packages/client/src/servers/endpoints.ts",
    find: `    this.#unreachableSinceMs = undefined;
    gate.`,
    replace: `    gate.`,
    tests: dead,
  },
  {
    name: "sdk: a refusal does not say why no segment came",
    file: "packages/core/src/errors.ts",
    find: `cause instanceof IdmintError ?`,
    replace: `cause instanceof RangeError ?`,
    tests: dead,
  },
  {
    name: "sdk: a URL is taken for an address",
    file: "packages/client/src/servers/addresses.ts",
    find: `if (scheme !== undefined) return schemeFault(scheme);`,
    replace: `if (scheme !== undefined) return undefined;`,
    tests: ["packages/client/test/options.test.ts"],
  },
  {
    name: "sdk: an address without a port is taken for one with port 443",
    file: "packages/client/src/servers/addresses.ts",
    find: `if (port === undefined || port === "") return`,
    replace: `if (port === undefined) return undefined;
  if (port === "") return`,
    tests: ["packages/client/test/options.test.ts"],
  },
  {
    name: "sdk: close cuts the connection while a worker id is given back",
    file: "packages/client/src/client.ts",
    find: `      for (const unused of tag.drain(clientClosed())) addLeftover(unused);
      late.push(tag.lateLoad().then((load) => load && addLeftover(load)));`,
    replace: `      late.push(tag.lateLoad().then((load) => load && addLeftover(load)));
      for (const unused of tag.drain(clientClosed())) addLeftover(unused);`,
    tests: ["packages/client/test/snowflake.test.ts"],
  },
  {
    name: "sdk: what a function of the token says is shown",
    file: "packages/client/src/options.ts",
    find: `"the function of the option token failed; see the cause"`,
    replace: `\`the function of the option token failed: \${String(cause)}\``,
    tests: ["packages/client/test/options.test.ts"],
  },
  {
    name: "sdk: calls and tokens go through a proxy that the environment names",
    file: "packages/client/src/servers/channel.ts",
    find: `  "grpc.enable_http_proxy": 0,
`,
    replace: ``,
    tests: ["packages/client/test/channel.test.ts"],
  },
  {
    name: "sdk: a server shows tokens to a proxy that the environment names",
    file: "packages/server/src/grpc/peers/figures.ts",
    find: `      "grpc.enable_http_proxy": 0,
`,
    replace: ``,
    tests: ["packages/server/test/figures/peer-figures.test.ts"],
  },
  {
    name: "sdk: a path is taken for a certificate",
    file: "packages/client/src/options.ts",
    find: `return typeof value === "string" && value.includes("-----BEGIN ");`,
    replace: `return typeof value === "string";`,
    tests: ["packages/client/test/options.test.ts"],
  },
  {
    name: "sdk: a signal that is none is noticed when it is too late",
    file: "packages/client/src/calls.ts",
    find: `signal !== undefined && typeof signal.addEventListener !== "function"`,
    replace: `false`,
    tests: ["packages/client/test/client.test.ts"],
  },
  {
    name: "core: ids of an older epoch are put back",
    file: "packages/core/src/segment/buffer-state.ts",
    find: ` || state.options.ordered || epoch !== state.epoch) return 0;`,
    replace: ` || state.options.ordered || epoch > state.epoch) return 0;`,
    tests: ["packages/core/test/buffer.test.ts"],
  },
  {
    name: "core: ids of any epoch are put back as of the buffer's",
    file: "packages/core/src/segment/buffer-state.ts",
    find: ` || state.options.ordered || epoch !== state.epoch) return 0;`,
    replace: ` || state.options.ordered) return 0;`,
    tests: ["packages/core/test/buffer.test.ts"],
  },
  {
    name: "core: a load more than the limit is put back",
    file: "packages/core/src/segment/buffer-state.ts",
    find: `if (state.loads.length >= MAX_PUT_BACK_LOADS) return 0;`,
    replace: `if (state.loads.length > MAX_PUT_BACK_LOADS) return 0;`,
    tests: ["packages/core/test/buffer.test.ts"],
  },
  {
    name: "core: ids that were put back break the order of an answer",
    file: `${segment}/cursor.ts`,
    find: `return isAscending(taken) ? taken : taken.toSorted((a, b) => (a.base < b.base ? -1 : 1));`,
    replace: `return taken;`,
    tests: buffer,
  },
];
