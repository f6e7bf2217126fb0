import type { Mutant } from "./mutant.ts";

const source = "packages/client/src";
const callers = ["packages/client/test/callers.test.ts"];
const elapsed = ["packages/core/test/elapsed.test.ts"];

/** Faults of how an SDK lives in the process of its callers: errors, contexts, clocks. */
export const callersMutants: readonly Mutant[] = [
  {
    name: "callers: a rejection of an async listener or token ends the process",
    file: `${source}/options.ts`,
    find: `  void Promise.resolve(answer).catch(() => undefined);`,
    replace: ``,
    tests: callers,
  },
  {
    name: "callers: all that wait are refused with one error",
    file: `${source}/tag.ts`,
    find: `if (isOver || turn === MAX_TURNS) throw ownRefusal(thrown);`,
    replace: `if (isOver || turn === MAX_TURNS) throw thrown;`,
    tests: callers,
  },
  {
    name: "callers: a refusal that was kept is given to all that come",
    file: `${source}/tag.ts`,
    find: `if (failure?.retryable === false) return ownRefusal(failure);`,
    replace: `if (failure?.retryable === false) return failure;`,
    tests: callers,
  },
  {
    name: "callers: a copy of an error hides the id that only its caller got",
    file: `${source}/refusals.ts`,
    find: `  if (OF_ONE_CALL.has(reason)) return thrown;
`,
    replace: ``,
    tests: callers,
  },
  {
    name: "callers: a call without its tag fails in an unforeseen way",
    file: `${source}/tag.ts`,
    find: `return BufferedTag.isOne(tag) ? ownRefusal(thrown) : detached(method);`,
    replace: `return method === "" ? detached(String(tag)) : ownRefusal(thrown);`,
    tests: callers,
  },
  {
    name: "callers: unknown options of a call are passed over",
    file: `${source}/calls.ts`,
    find: `if (names.has(name) || given[name] === undefined) continue;`,
    replace: `if (names.size > 0) continue;`,
    tests: callers,
  },
  {
    name: "callers: what is loaded ahead belongs to the request that passed the mark",
    file: `${source}/tag.ts`,
    find: `(this.#within ?? outside)(() => this.#loaded(request))`,
    replace: `this.#loaded(request)`,
    tests: callers,
  },
  {
    name: "callers: the retry of a load that somebody awaits belongs to nobody",
    file: `${source}/tag.ts`,
    find: `else this.#within ??= AsyncLocalStorage.snapshot();`,
    replace: `else this.#within = undefined;`,
    tests: callers,
    only: "its retries too",
  },
  {
    name: "callers: listeners hear in the context of a request",
    file: `${source}/client.ts`,
    find: `    outside(() => {
      tellEvent(event);`,
    replace: `    [0].forEach(() => {
      tellEvent(event);`,
    tests: callers,
  },
  {
    name: "callers: timers keep the context of a request",
    file: `${source}/runtime.ts`,
    find: `const timer = outside(() => setTimeout(due, delayMs));`,
    replace: `const timer = setTimeout(due, delayMs);`,
    tests: callers,
  },
  {
    name: "callers: connections keep the context of the request that made them",
    file: `${source}/servers/channel.ts`,
    find: `outside(() => start({ deadline: Date.now() + timeoutMs }, done))`,
    replace: `start({ deadline: Date.now() + timeoutMs }, done)`,
    tests: callers,
  },
  {
    name: "callers: fake timers of a test stay in a client for good",
    file: `${source}/runtime.ts`,
    find: `const { clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } = globalThis;
`,
    replace: ``,
    tests: callers,
  },
  {
    name: "callers: a faked date stays in a client for good",
    file: `${source}/runtime.ts`,
    find: `  clocks: TimeSources = CLOCKS,`,
    replace: `  clocks: TimeSources = { ...CLOCKS, wallMs: Date.now },`,
    tests: callers,
  },
  {
    name: "callers: ids that were held outlive a leap of the wall clock",
    file: `${source}/client.ts`,
    find: `for (const tag of this.#tags.values()) tag.expireAll();`,
    replace: `void this.#tags;`,
    tests: callers,
  },
  {
    name: "callers: ids on their way outlive a leap of the wall clock",
    file: "packages/core/src/segment/buffer-state.ts",
    find: `  if (state.loading.phase === "loading") state.loading = { phase: "idle" };
  dropLoads(state, () => true, "expired", effects);`,
    replace: `  dropLoads(state, () => true, "expired", effects);`,
    tests: callers,
  },
  {
    name: "callers: a suspend that uptime counts is a leap",
    file: "packages/core/src/elapsed.ts",
    find: `if (aheadMs - countedMs > MAX_LEAP_MS) onLeap?.();`,
    replace: `if (aheadMs > MAX_LEAP_MS) onLeap?.();`,
    tests: elapsed,
  },
  {
    name: "callers: a second instrument() traces everything twice",
    file: `${source}/otel.ts`,
    find: `  endOfAll ??= begin(options);`,
    replace: `  endOfAll = begin(options);`,
    tests: ["packages/client/test/otel.test.ts"],
  },
];
