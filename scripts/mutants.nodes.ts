import type { Mutant } from "./mutant.ts";

const core = "packages/core/src/server/node";
const service = "packages/server/src/service";
const presenceTests = ["packages/core/test/server/node/presence-state.test.ts"];
const watchTests = ["packages/core/test/server/node/watch-state.test.ts"];
const pollTests = ["packages/server/test/service/poll.test.ts"];
const nodeTests = ["packages/server/test/service/node-watch.test.ts"];
const onMemory = ["packages/testkit/test/memory-store.test.ts"];
const onSqlite = ["packages/server/test/store/sqlite.test.ts"];

/** Who issues, and by when nobody does any more. */
export const nodeMutants: readonly Mutant[] = [
  {
    name: "the time to issue counts from the answer",
    file: `${core}/presence-state.ts`,
    find: "  return { part, sentAt, isContinuous };",
    replace: "  return { part, sentAt: now, isContinuous };",
    tests: presenceTests,
  },
  {
    name: "a server opens with the renewal that makes its row move again",
    file: `${core}/presence-state.ts`,
    find: "  if (known === undefined || !isContinuous) return;",
    replace: "  if (known === undefined) return;",
    tests: presenceTests,
  },
  {
    name: "an acknowledgement that came too late counts as one in time",
    file: `${core}/presence-state.ts`,
    find: "now < known.visibleUntil",
    replace: "sentAt < known.visibleUntil",
    tests: presenceTests,
  },
  {
    name: "silent rows are timed without the margin",
    file: `${core}/watch-state.ts`,
    find: "sentAt - seenAt >= withClockMargin(maxOfflineMs)",
    replace: "sentAt - seenAt >= maxOfflineMs",
    tests: watchTests,
  },
  {
    name: "silent rows are timed up to the answer of the poll",
    file: `${core}/watch-state.ts`,
    find: "sentAt - seenAt >= withClockMargin(maxOfflineMs)",
    replace: "now - seenAt >= withClockMargin(maxOfflineMs)",
    tests: watchTests,
  },
  {
    name: "a row of another history counts as obedience",
    file: `${core}/watch-state.ts`,
    find: "return row.incarnation === incarnation ? row.obeyed : 0n;",
    replace: "return incarnation === undefined ? 0n : row.obeyed;",
    tests: watchTests,
  },
  {
    name: "a server without a limit is taken to have stopped",
    file: `${core}/watch-state.ts`,
    find: "    if (maxOfflineMs === undefined) return undefined;\n",
    replace: "    if (maxOfflineMs === undefined) continue;\n",
    tests: watchTests,
  },
  {
    name: "what is said of a change goes by rows from before it",
    file: `${core}/watch-state.ts`,
    find: "watched.askedRevision < revision || latest === undefined",
    replace: "latest === undefined",
    tests: watchTests,
  },
  {
    name: "the present max_age is used",
    file: `${service}/node-watch.ts`,
    find: "    if (tag.earlier === undefined) {",
    replace: "    if (tag.earlier !== null) {",
    tests: nodeTests,
  },
  {
    name: "what a row remembers of earlier settings is over at once",
    file: "packages/core/src/server/tag/memory.ts",
    find: "if (was > is) return { memoryMs: Math.max(was, before?.memoryMs ?? 0), revision };",
    replace: "if (was > is) return { memoryMs: was, revision };",
    tests: onMemory,
  },
  {
    name: "callers' time is counted without the margin",
    file: `${service}/node-watch.ts`,
    find: "at + withClockMargin(memoryMs)",
    replace: "at + memoryMs",
    tests: nodeTests,
  },
  {
    name: "a tag that moved is in effect with its own database alone",
    file: `${service}/node-watch.ts`,
    find: ".filter((other) => other !== part);",
    replace: '.filter((other) => other !== part && other === "");',
    tests: nodeTests,
  },
  {
    name: "one database's answer counts for all",
    file: `${service}/presence.ts`,
    find: "      if (now >= issueUntil(this.#state, part)) return this.#refusal(tag, part);",
    replace: "      if (this.isCutOff) return this.#refusal(tag, part);",
    tests: nodeTests,
  },
  {
    name: "obedience is what the answer brought, before it was applied",
    file: `${service}/upstream/poll.ts`,
    find: "    await this.#run(effects);\n    await saved();",
    replace:
      '    this.#obeyed = { incarnation: this.#state.present ?? "", revision: this.#state.since };\n    void this.#run(effects);\n    await saved();',
    tests: pollTests,
  },
  {
    name: "obedience is said before a later life could know of it",
    file: `${service}/upstream/poll.ts`,
    find: "    await saved();\n",
    replace: "    await saved().catch(() => undefined);\n",
    tests: pollTests,
  },
  {
    name: "a page of a poll keeps a server issuing",
    file: `${service}/upstream/poll.ts`,
    find: '    if (effects.some((effect) => effect.type === "poll-again")) return true;\n    presence.obeyed(acknowledged);',
    replace:
      '    presence.obeyed(acknowledged);\n    if (effects.some((effect) => effect.type === "poll-again")) return true;',
    tests: pollTests,
  },
  {
    name: "a refresh is over with a poll that was under way",
    file: `${service}/upstream/poll.ts`,
    find: "    for (const resolve of refreshing) resolve();",
    replace: "    for (const resolve of [...refreshing, ...this.#refreshing]) resolve();",
    tests: pollTests,
  },
  {
    name: "a late renewal lowers what was obeyed",
    file: "packages/server/src/store/shared/node-row.ts",
    find: "THEN ${greatest}(${table}.obeyed, excluded.obeyed) ELSE excluded.obeyed END",
    replace: "THEN excluded.obeyed ELSE excluded.obeyed END",
    tests: onSqlite,
    only: "was obeyed never falls",
  },
  {
    name: "a row that came back is forgotten all the same",
    file: "packages/server/src/store/sqlite/nodes.ts",
    find: "WHERE id = ? AND renewals = coalesce(?, renewals)",
    replace: "WHERE id = ? AND renewals >= coalesce(?, renewals)",
    tests: onSqlite,
    only: "forgotten under its number only",
  },
  {
    name: "an accept leaves no row for lost servers",
    file: "packages/server/src/store/sqlite/accept.ts",
    find: "      addLostNodes(transaction, incarnation, maxOfflineMs);\n",
    replace: "",
    tests: onSqlite,
    only: "an accept leaves a row",
  },
  {
    name: "a suspend is not counted",
    file: "packages/core/src/elapsed.ts",
    find: "      return now + suspendedMs;",
    replace: "      return now + suspendedMs * 0;",
    tests: ["packages/core/test/elapsed.test.ts"],
  },
  {
    name: "a suspend shows a second late",
    file: "packages/core/src/elapsed.ts",
    find: "    if (isSteady && now < lookAt) return;",
    replace: "    if (now < lookAt) return;",
    tests: ["packages/core/test/elapsed.test.ts"],
  },
  {
    name: "presence: of a tag's databases only the first has to be heard",
    file: `${service}/presence.ts`,
    find: `for (const part of partsOf(tag)) {`,
    replace: `for (const part of partsOf(tag).slice(0, 1)) {`,
    tests: ["packages/server/test/service/presence.test.ts"],
  },
  {
    name: "presence: a poll tells of the first database alone",
    file: "packages/server/src/store/spread/merged-changes.ts",
    find: `parts: answers.flatMap(`,
    replace: `parts: answers.slice(0, 1).flatMap(`,
    tests: ["packages/server/test/service/presence.test.ts"],
  },
];
