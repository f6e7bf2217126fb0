import type { Mutant } from "./mutant.ts";

const source = "packages/client/src";
const callers = ["packages/client/test/callers.test.ts"];
const names = ["packages/client/test/names.test.ts"];
const waiters = ["packages/core/test/waiters.test.ts"];
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
    find: `if (isLast || turn === MAX_TURNS) throw ownRefusal(thrown);`,
    replace: `if (isLast || turn === MAX_TURNS) throw thrown;`,
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
    name: "callers: a name that is no tag counts for good",
    file: `${source}/tag-table.ts`,
    find: `if (!tag.isEmpty) continue;`,
    replace: `if (tag.name !== "") continue;`,
    tests: names,
  },
  {
    name: "callers: a name that is no tag stays in memory",
    file: `${source}/tag-table.ts`,
    find: `new WeakRef(tag));`,
    replace: `{ deref: () => tag } as WeakRef<T>);`,
    tests: names,
  },
  {
    name: "callers: a tag that is held weakly loads without being counted",
    file: `${source}/tag.ts`,
    find: `      this.#context.hold(this);
`,
    replace: ``,
    tests: names,
  },
  {
    name: "callers: a tag that had ids is forgotten, and its order with it",
    file: `${source}/tag.ts`,
    find: `if (busy || held > 0 || issued > 0 || epoch > 0n || this.#lastSource !== undefined)`,
    replace: `if (busy || held > 0)`,
    tests: names,
  },
  {
    name: "callers: a refusal is forgotten before its back-off is over",
    file: `${source}/tag.ts`,
    find: ` && sinceMs >= KEPT_MS;`,
    replace: ` && sinceMs >= 0;`,
    tests: names,
  },
  {
    name: "callers: servers are asked for ever for a name that is no tag",
    file: `${source}/tag.ts`,
    find: `      if (isOfNoTag(this.#lastFailure)) this.#buffer.rest();
`,
    replace: ``,
    tests: names,
  },
  {
    name: "callers: a tag that is kept ready is forgotten in an outage",
    file: `${source}/refusals.ts`,
    find: `return OF_NO_TAG.has(reason);`,
    replace: `return reason !== "INTERNAL";`,
    tests: names,
  },
  {
    name: "callers: a client that was closed leaves tags that it held weakly open",
    file: `${source}/client.ts`,
    find: `for (const tag of this.#tags.all()) {`,
    replace: `for (const tag of this.#tags.values()) {`,
    tests: names,
  },
  {
    name: "callers: closed clients count as live ones",
    file: `${source}/client.ts`,
    find: `    this.#uncount();
`,
    replace: ``,
    tests: names,
  },
  {
    name: "callers: an abort while a call waits loses its reason",
    file: "packages/core/src/call.ts",
    find: `tell(cancelled(signal));`,
    replace: `tell(cancelled());`,
    tests: waiters,
  },
  {
    name: "callers: a signal looks for each of thousands of listeners that it has let go of",
    file: "packages/core/src/call.ts",
    find: `if (!signal.aborted) signal.removeEventListener`,
    replace: `signal.removeEventListener`,
    tests: waiters,
  },
  {
    name: "callers: whoever goes away ends the wait of its neighbour",
    file: "packages/core/src/segment/waiters.ts",
    find: `  if (waiters[from]?.id !== id) return false;
`,
    replace: `  if (waiters.length === 0) return false;
  from = from > 0 ? from - 1 : from;
`,
    tests: waiters,
  },
  {
    name: "callers: failures of one cause have texts of their own",
    file: `${source}/servers/errors.ts`,
    find: `    .replaceAll(/\\b[0-9A-F]{8,16}:error:/g, "error:")
`,
    replace: ``,
    tests: ["packages/client/test/errors.test.ts"],
  },
  {
    name: "callers: the stand-in takes anything for a name",
    file: `${source}/testing.ts`,
    find: `    assertTagName(name);
`,
    replace: ``,
    tests: ["packages/client/test/testing.test.ts"],
  },
  {
    name: "callers: a second instrument() traces everything twice",
    file: `${source}/otel.ts`,
    find: `  endOfAll ??= begin(options);`,
    replace: `  endOfAll = begin(options);`,
    tests: ["packages/client/test/otel.test.ts"],
  },
];
