import type { Mutant } from "./mutant.ts";

const state = "packages/core/src/server/node/issuing-state.ts";
const service = "packages/server/src/service";
const onState = ["packages/core/test/server/node/issuing-state.test.ts"];
const onManyTags = ["packages/server/test/service/give-back.test.ts"];
const onServers = ["packages/server/test/issuing.e2e.test.ts"];

/** What an operator stops for all servers. */
export const stopMutants: readonly Mutant[] = [
  {
    name: "a server that hears of a stop when it is over keeps what it held",
    file: `${service}/upstream/poll.ts`,
    find: "          directory.dropHeld();\n",
    replace: "",
    tests: ["packages/server/test/service/issuing.model.test.ts"],
  },
  {
    name: "a stop and its resumption between two polls are not told",
    file: state,
    find: 'type: was === undefined ? "drop-held" : "resume-issuing"',
    replace: 'type: "resume-issuing"',
    tests: onState,
  },
  {
    name: "one database that was resumed lets servers issue while another is stopped",
    file: state,
    find: "  for (const { name, incarnation, issuing } of news)\n    known.set(",
    replace:
      "  known.clear();\n  for (const { name, incarnation, issuing } of news)\n    known.set(",
    tests: onState,
  },
  {
    name: "a database that went back to before a stop resumes servers",
    file: state,
    find: "issuing.revision > seen.revision",
    replace: "issuing.revision !== seen.revision",
    tests: onState,
  },
  {
    name: "a store that is not the accepted one is believed that nothing is stopped",
    file: `${service}/upstream/poll-state.ts`,
    find: '  if (fenceOf(state) !== "") return effects;\n  const { state: issuing',
    replace: "  const { state: issuing",
    tests: ["packages/server/test/service/poll-state.test.ts"],
  },
  {
    name: "servers that are stopped accept a store that went back by themselves",
    file: `${service}/upstream/poll.ts`,
    find: " || stoppedSince(issuing) !== undefined) return;",
    replace: ") return;",
    tests: onServers,
    only: "left to an operator",
  },
  {
    name: "tags that are made while servers are stopped are issued",
    file: `${service}/issue/directory.ts`,
    find: "    if (this.#stopped !== undefined) return this.#stopped;\n",
    replace: '    if (this.#stopped !== undefined && name !== "new") return this.#stopped;\n',
    tests: onServers,
    only: "old tags and new",
  },
  {
    name: "a lease that was asked for before a stop is answered after it",
    file: `${service}/worker-ids/service.ts`,
    find: "    if (late !== undefined) throw late;\n",
    replace: "",
    tests: onServers,
    only: "on its way when servers stop",
  },
  {
    name: "a stop is not kept with the leases",
    file: `${service}/worker-ids/lease-keeper.ts`,
    find: "!this.#isBehind && !isStopNew && !areCallersNew",
    replace: "!this.#isBehind && !areCallersNew",
    tests: onServers,
    only: "remembers the stop",
  },
  {
    name: "callers of deleted tags are not reckoned with in a stop",
    file: `${service}/tags/issuing.ts`,
    find: "showDeleted: true",
    replace: "showDeleted: false",
    tests: onServers,
    only: "segments are too old",
  },
  {
    name: "a stop in PostgreSQL takes no revision",
    file: "packages/server/src/store/postgres/nodes.ts",
    find: "SET revision = $1::bigint, issuing_revision = $1::bigint",
    replace: "SET issuing_revision = $1::bigint",
    tests: ["packages/server/test/store/postgres.pg.test.ts"],
    only: "a stop is in every poll",
  },
  {
    name: "an SDK goes on with what it holds when it hears that servers are stopped",
    file: "packages/core/src/segment/buffer-state.ts",
    find: '  "ISSUING_STOPPED",\n',
    replace: "",
    tests: ["packages/core/test/buffer.test.ts"],
  },
  {
    name: "a server with many tags gives nothing back",
    file: `${service}/issue/give-back.ts`,
    find: `at += MAX_BATCH) {
    const batch = widest.slice(at, at + MAX_BATCH);`,
    replace: `at += widest.length) {
    const batch = widest.slice(at, at + widest.length);`,
    tests: onManyTags,
  },
  {
    name: "a store that does not answer is asked for each thousand tags of a server that stops",
    file: `${service}/issue/give-back.ts`,
    find: `      break;
`,
    replace: ``,
    tests: onManyTags,
  },
  {
    name: "a server that stops gives back for as long as it takes",
    file: `${service}/issue/give-back.ts`,
    find: `at < widest.length && clock.now() < endAt;`,
    replace: `at < widest.length;`,
    tests: onManyTags,
  },
  {
    name: "what little is unused goes back before what is much",
    file: `${service}/issue/give-back.ts`,
    find: `width(b) - width(a)`,
    replace: `width(a) - width(b)`,
    tests: onManyTags,
  },
];
