import type { Mutant } from "./mutant.ts";

const src = "packages/console/src";
const tests = "packages/console/test";
const client = [`${tests}/api/client.test.ts`];
const served = ["packages/server/test/http/console.test.ts"];
const fleet = [`${tests}/pages/fleet-state.test.ts`];

/** Faults of the console, its frame, its pages about servers, and how it is served. */
export const consoleMutants: readonly Mutant[] = [
  {
    name: "console: a change that was not answered is made again",
    file: `${src}/api/client.ts`,
    find: `isRead ? waitBeforeRetry(`,
    replace: `isRead || true ? waitBeforeRetry(`,
    tests: client,
  },
  {
    name: "console: a read is made again for ever",
    file: `${src}/api/retry.ts`,
    find: `if (!error.isTransient || attempt >= MAX_ATTEMPTS) return undefined;`,
    replace: `if (!error.isTransient) return undefined;`,
    tests: [...client, `${tests}/api/retry.test.ts`],
  },
  {
    name: "console: an answer to an older token signs out",
    file: `${src}/state/session.ts`,
    find: `if (used === shown.value) asked.value = true;`,
    replace: `asked.value = true;`,
    tests: client,
  },
  {
    name: "console: a view that is left still asks",
    file: `${src}/api/client.ts`,
    find: `signal: signal === undefined ? late : AbortSignal.any([late, signal]),`,
    replace: `signal: late,`,
    tests: client,
  },
  {
    name: "console: a change without an answer counts as not made",
    file: `${src}/api/errors.ts`,
    find: `return this.isNoAnswer || [`,
    replace: `return [`,
    tests: [`${tests}/api/errors.test.ts`],
  },
  {
    name: "console: a right for the beginning of names is one for all of them",
    file: `${src}/state/access.ts`,
    find: `return (tag ?? "").startsWith(right.tags.slice(0, -1));`,
    replace: `return tag === undefined || tag.startsWith(right.tags.slice(0, -1));`,
    tests: [`${tests}/state/access.test.ts`],
  },
  {
    name: "console: a name in an address is not decoded",
    file: `${src}/state/route-state.ts`,
    find: `params[want.slice(1)] = decodeURIComponent(part);`,
    replace: `params[want.slice(1)] = part;`,
    tests: [`${tests}/state/route-state.test.ts`],
  },
  {
    name: "console: a value that begins with a dash is taken for a flag",
    file: `${src}/text/cli.ts`,
    find: `return value.startsWith("-") ? [\`--\${name}=\${value}\`] : [\`--\${name}\`, value];`,
    replace: `return [\`--\${name}\`, value];`,
    tests: [`${tests}/text/cli.test.ts`],
  },
  {
    name: "console: a quote in a line ends the word",
    file: `${src}/text/cli.ts`,
    find: `word.replaceAll("'", \`'\\\\''\`)`,
    replace: `word`,
    tests: [`${tests}/text/cli.test.ts`],
  },
  {
    name: "console: clocks of servers are taken as they are",
    file: `${src}/pages/overview/fleet-state.ts`,
    find: `(Date.parse(run.startTime ?? "") - aheadMillis)`,
    replace: `Date.parse(run.startTime ?? "")`,
    tests: fleet,
  },
  {
    name: "console: a second that nobody knows is zero",
    file: `${src}/pages/overview/fleet-state.ts`,
    find: `Array<number | null>(line.length).fill(null)`,
    replace: `Array<number | null>(line.length).fill(0)`,
    tests: fleet,
  },
  {
    name: "console: a server that stopped counting holds the chart back",
    file: `${src}/pages/overview/fleet-state.ts`,
    find: `ends.filter((one) => one >= newest - MOST_LAG_SECONDS)`,
    replace: `ends`,
    tests: fleet,
  },
  {
    name: "console: a dead server counts as one that takes calls",
    file: `${src}/pages/nodes/nodes-state.ts`,
    find: `alive && !draining && !ids.has(nodeId)`,
    replace: `!draining && !ids.has(nodeId)`,
    tests: [`${tests}/pages/nodes-state.test.ts`],
  },
  {
    name: "console: scripts in the page may run",
    file: "packages/server/src/http/console.ts",
    find: `"script-src 'self'",`,
    replace: `"script-src 'self' 'unsafe-inline'",`,
    tests: served,
  },
  {
    name: "console: a script of another release is answered with the page",
    file: "packages/server/src/http/console.ts",
    find: `asked.startsWith(ASSETS) ? undefined : files.get(INDEX)`,
    replace: `files.get(INDEX)`,
    tests: served,
  },
  {
    name: "console: a form that the caller refuses is sent",
    file: "packages/server/src/http/console.ts",
    find: `return isRefused ? [] : [name];`,
    replace: `return [name];`,
    tests: served,
  },
  {
    name: "console: all forms of a file have one tag",
    file: "packages/server/src/http/console.ts",
    find: `etag: \`"\${hash}-\${name}"\``,
    replace: `etag: \`"\${hash}"\``,
    tests: served,
  },
  {
    name: "access: GetAccess answers strangers",
    file: "packages/server/src/api/access-service.ts",
    find: `need: NEEDS.known,`,
    replace: `need: NEEDS.nothing,`,
    tests: ["packages/server/test/api/needs.test.ts"],
  },
];
