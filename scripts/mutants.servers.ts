import type { Mutant } from "./mutant.ts";

const servers = "packages/client/src/servers";
const gate = ["packages/client/test/gate.test.ts"];
const states = ["packages/client/test/endpoints-state.test.ts"];
const gaps = ["packages/testkit/test/sequence-gaps.e2e.test.ts"];
const cold = ["packages/testkit/test/cold-tags.e2e.test.ts"];

/** How an SDK asks its servers when there is much to ask, or few of them are left. */
export const serversMutants: readonly Mutant[] = [
  {
    name: "servers: cold tags ask a server all at once",
    file: `${servers}/pace-state.ts`,
    find: `return inFlight < Math.floor(limit);`,
    replace: `return inFlight < Infinity * limit;`,
    tests: gate,
  },
  {
    name: "servers: requests that were under way together lower the limit again and again",
    file: `${servers}/pace-state.ts`,
    find: `if (sentAtMs <= pace.fellAtMs) return pace;`,
    replace: ``,
    tests: gate,
  },
  {
    name: "servers: the limit of requests falls to nothing",
    file: `${servers}/pace-state.ts`,
    find: `Math.max(LEAST, Math.floor(pace.limit / 2))`,
    replace: `Math.floor(pace.limit / 2)`,
    tests: gate,
  },
  {
    name: "servers: the limit of requests rises beyond what a connection takes",
    file: `${servers}/pace-state.ts`,
    find: `Math.min(MOST, pace.limit + rise)`,
    replace: `pace.limit + rise`,
    tests: gate,
  },
  {
    name: "servers: what waits for a silent server goes on waiting",
    file: `${servers}/gate.ts`,
    find: `    for (const enter of waiting) enter(failure);`,
    replace: `    for (const enter of waiting) this.#waiting.add(enter);`,
    tests: gate,
  },
  {
    name: "servers: what waits for a server that was found away is sent there all the same",
    file: `${servers}/endpoints.ts`,
    find: `        if (isLeft && this.#hasBetter(route, asked)) continue;
`,
    replace: `        void isLeft;
`,
    tests: gate,
  },
  {
    name: "servers: what waits leaves a server though nobody is better",
    file: `${servers}/endpoints.ts`,
    find: `if (isLeft && this.#hasBetter(route, asked)) continue;`,
    replace: `if (isLeft) continue;`,
    tests: gate,
  },
  {
    name: "servers: a slow server loses all that wait for it",
    file: `${servers}/gate.ts`,
    find: `    if (!isSilent(this.#pace, sentAtMs)) return;`,
    replace: ``,
    tests: gate,
  },
  {
    name: "servers: a place at a server is never left",
    file: `${servers}/endpoints.ts`,
    find: `        gate.leave();
`,
    replace: ``,
    tests: gate,
  },
  {
    name: "servers: the renewal of a lease waits behind cold tags",
    file: `${servers}/endpoints.ts`,
    find: `this.#ask(route, send, accept, "at once")`,
    replace: `this.#ask(route, send, accept)`,
    tests: gate,
  },
  {
    name: "servers: a request that was never sent costs a further try",
    file: `${servers}/endpoints.ts`,
    find: `        failures.push(silence);
        continue;`,
    replace: `        failures.push(silence);
        if (!this.#mayRetry()) throw silence;
        continue;`,
    tests: gate,
  },
  {
    name: "servers: a request is given up while its server answers others",
    file: `${servers}/patience.ts`,
    find: `silentMs < timeoutMs / 4 &&`,
    replace: `silentMs < 0 &&`,
    tests: gate,
  },
  {
    name: "servers: a request waits for ever while its server answers others",
    file: `${servers}/patience.ts`,
    find: ` && nowMs - sentAtMs < 2 * timeoutMs`,
    replace: ``,
    tests: gate,
  },
  {
    name: "servers: a server that was heard long ago is taken for alive",
    file: `${servers}/patience.ts`,
    find: `silentMs < timeoutMs / 4 &&`,
    replace: `silentMs < Infinity &&`,
    tests: gate,
  },
  {
    name: "servers: answers that came while the process was busy are thrown away",
    file: `${servers}/patience.ts`,
    find: `setTimeout(() => setImmediate(look), ms)`,
    replace: `setTimeout(look, ms)`,
    tests: cold,
    only: "busy for longer",
  },
  {
    name: "servers: a server is not told how long its caller waits",
    file: `${servers}/channel.ts`,
    find: '"grpc-timeout": `${Math.ceil(timeoutMs)}m`',
    replace: '"x-timeout": `${Math.ceil(timeoutMs)}m`',
    tests: gate,
  },
  {
    name: "servers: loads that fail ask the same servers again",
    file: `${servers}/endpoints-state.ts`,
    find: `others.sort((a, b) => failedAt(a) - failedAt(b));`,
    replace: ``,
    tests: states,
  },
  {
    name: "servers: with nobody well, the one that is back waits for the end of its cool-down",
    file: `${servers}/endpoints-state.ts`,
    find: `    probes.push(...others.filter(`,
    replace: `    void (others.filter(`,
    tests: states,
  },
  {
    name: "servers: with nobody well, servers are looked at all the time",
    file: `${servers}/endpoints-state.ts`,
    find: `nowMs - failedAt(at) >= COOL_DOWN_MIN_MS`,
    replace: `nowMs - failedAt(at) >= 0`,
    tests: states,
  },
  {
    name: "servers: a load asks a server twice",
    file: `${servers}/endpoints-state.ts`,
    find: `=> !asked.has(endpoint);`,
    replace: `=> !asked.has(endpoint) || asked.size > 0;`,
    tests: states,
  },
  {
    name: "servers: a load asks more servers than it may",
    file: `${servers}/endpoints-state.ts`,
    find: `Math.max(0, MAX_ATTEMPTS - asked.size)`,
    replace: `MAX_ATTEMPTS`,
    tests: states,
  },
  {
    name: "servers: two servers that are away cost a request two time-outs",
    file: `${servers}/fleet.ts`,
    find: `else if (mode === "well") void this.#assertThere(endpoint);`,
    replace: ``,
    tests: gaps,
    only: "freeze",
  },
  {
    name: "servers: an id that nobody holds waits behind cold tags",
    file: "packages/client/src/servers/gate.ts",
    find: `(goesFirst ? this.#first : this.#waiting).add(resolve);`,
    replace: `this.#waiting.add(resolve);`,
    tests: ["packages/client/test/uncached.test.ts"],
    only: "before cold tags that wait",
  },
];
