import type { Mutant } from "./mutant.ts";

const metrics = "packages/server/src/telemetry/metrics";
const outages = ["packages/server/test/telemetry/outage-state.test.ts"];
const busiest = ["packages/server/test/telemetry/busiest-state.model.test.ts"];
const tables = ["packages/server/test/telemetry/metrics.test.ts"];

/** Faults in what a server tells of itself. */
export const telemetryMutants: readonly Mutant[] = [
  {
    name: "outage: each failure is a line",
    file: "packages/server/src/telemetry/outage-state.ts",
    find: `if (now - state.toldAt < EVERY_MS) return undefined;`,
    replace: ``,
    tests: outages,
  },
  {
    name: "outage: it is over when one of many things works again",
    file: "packages/server/src/telemetry/outage-state.ts",
    find: `if (!state.failing.delete(subject) || state.failing.size > 0) return false;`,
    replace: `if (!state.failing.delete(subject)) return false;`,
    tests: outages,
  },
  {
    name: "outage: what failed is remembered without a limit",
    file: "packages/server/src/telemetry/outage-state.ts",
    find: `state.failing.size < MAX_FAILING`,
    replace: `MAX_FAILING > 0`,
    tests: outages,
  },
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
    file: "packages/server/src/http/probes.ts",
    find: `  } catch {
    return jsonAnswer(500, { code: "internal", message: "the metrics could not be collected" });`,
    replace: `  } catch (error) {
    return jsonAnswer(500, { code: "internal", message: String(error) });`,
    tests: ["packages/server/test/http/door.test.ts"],
  },
  {
    name: "traces: a caller that is not traced does not decide for its server",
    file: "packages/server/src/telemetry/otel/sampling.ts",
    find: `  if (followsCaller && typeof traceparent`,
    replace: `  if (!followsCaller && typeof traceparent`,
    tests: ["packages/server/test/telemetry/sampling.test.ts"],
  },
  {
    name: "traces: what a call set going stays part of its trace for ever",
    file: "packages/server/src/service/trace.ts",
    find: `  return trace?.isOver === false ? trace : undefined;`,
    replace: `  return trace;`,
    tests: ["packages/server/test/service/trace.test.ts"],
  },
  {
    name: "traces: the polls that a stream set going are part of its trace",
    file: "packages/server/src/main/system.ts",
    find: `nodeTimers.after(delayMs, () => runFor(undefined, run))`,
    replace: `nodeTimers.after(delayMs, run)`,
    tests: ["packages/server/test/service/trace.test.ts"],
  },
  {
    name: "traces: a statement for several calls belongs to whoever was first",
    file: "packages/server/src/service/upstream/grants.ts",
    find: `        runFor(this.#traceOf(batch), () =>`,
    replace: `        runFor(presentTrace(), () =>`,
    tests: ["packages/server/test/service/trace.test.ts"],
  },
  {
    name: "traces: a look at names belongs to whoever was first",
    file: "packages/server/src/service/upstream/lookup.ts",
    find: `        runFor(this.#traceOf(names), () =>`,
    replace: `        runFor(presentTrace(), () =>`,
    tests: ["packages/server/test/service/trace.test.ts"],
  },
  {
    name: "traces: the URL of a collector reaches the log",
    file: "packages/server/src/telemetry/otel/exporting.ts",
    find: `failed ? (result.error?.name ?? "Error") : undefined`,
    replace: `failed ? (result.error?.name ?? "Error") + process.env["OTEL_EXPORTER_OTLP_ENDPOINT"] : undefined`,
    tests: ["packages/server/test/telemetry/traces.pg.test.ts"],
  },
  {
    name: "sdk telemetry: the server does not hear of its caller's trace",
    file: "packages/client/src/servers/channel.ts",
    find: `  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);`,
    replace: ``,
    tests: ["packages/client/test/otel.test.ts"],
  },
  {
    name: "sdk telemetry: every tag gets series of its own",
    file: "packages/client/src/otel.ts",
    find: `    if (this.#names.size >= this.#max) return OTHER_TAGS;`,
    replace: ``,
    tests: ["packages/client/test/otel.test.ts"],
  },
];
