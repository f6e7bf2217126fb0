import type { Mutant } from "./mutant.ts";

const metrics = "packages/server/src/telemetry/metrics";
const busiest = ["packages/server/test/telemetry/busiest-state.model.test.ts"];
const tables = ["packages/server/test/telemetry/metrics.test.ts"];

/** Faults in what a server tells of itself. */
export const telemetryMutants: readonly Mutant[] = [
  {
    name: "metrics: a tag takes what it issued before it had a place along",
    file: `${metrics}/busiest-state.ts`,
    find: `{ from: tag, seen: issued, ids: 0, wasted: 0, ...rate }`,
    replace: `{ from: tag, seen: 0, ids: 0, wasted: 0, ...rate }`,
    tests: busiest,
  },
  {
    name: "metrics: a tag that was looked up again makes its counter go down",
    file: `${metrics}/busiest-state.ts`,
    find: `  const ids = isSame ? tag.issued - named.seen : tag.issued;`,
    replace: `  const ids = isSame ? tag.issued - named.seen : tag.issued - named.seen;`,
    tests: busiest,
  },
  {
    name: "metrics: more tags have series than are allowed",
    file: `${metrics}/busiest-state.ts`,
    find: `    if (state.named.size >= state.limit) return;`,
    replace: `    if (state.named.size > state.limit) return;`,
    tests: [...busiest, ...tables],
  },
  {
    name: "metrics: tags that are equally busy take turns",
    file: `${metrics}/busiest-state.ts`,
    find: `    if (last === undefined || ids <= 2 * last.ids) return;`,
    replace: `    if (last === undefined || ids < last.ids) return;`,
    tests: busiest,
  },
  {
    name: "metrics: the series of several processes are mixed up",
    file: `${metrics}/several.ts`,
    find: `    attributes: { ...attributes, process: String(process) },
    value,`,
    replace: `    attributes,
    value,`,
    tests: tables,
  },
  {
    name: "metrics: a failed scrape tells what went wrong",
    file: "packages/server/src/http/door.ts",
    find: `  } catch {
    send(response, 500, { error: "the metrics could not be collected" });`,
    replace: `  } catch (error) {
    send(response, 500, { error: String(error) });`,
    tests: ["packages/server/test/http-door.test.ts"],
  },
];
