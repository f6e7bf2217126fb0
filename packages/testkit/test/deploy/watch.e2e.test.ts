// What deploy/prometheus and deploy/grafana have, on a real Prometheus that scrapes a fleet with real faults.
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { dashboards, queriesOf } from "../../src/deploy/dashboards.ts";
import { DEPLOY, metricsOf, prometheusPrograms } from "../../src/deploy/prometheus.ts";
import { until } from "../../src/fleet/until.ts";
import { isLong } from "../fleet-support.ts";
import { type AlertCase, CASES } from "./alert-cases.ts";
import { Runbook } from "./runbook.ts";
import { Stage } from "./stage.ts";

const PATIENT = { withinMs: 60_000, everyMs: 250 };

/** What there is only while something is wrong, or somebody has just changed something. */
const EMPTY = /load_failures|quota_refusals|^max by \((tag|alertname)\) \((changes|ALERTS)/;

const NO_CASE: AlertCase = { fault: () => Promise.reject(new Error("no such alert")) };

/** A fault is mended once, also when the test failed before that, so that it does not stand in the way of the next. */
class Fault implements AsyncDisposable {
  #mend: (() => Promise<void> | void) | undefined;

  constructor(mend: () => Promise<void> | void) {
    this.#mend = mend;
  }

  async mend(): Promise<void> {
    const mend = this.#mend;
    this.#mend = undefined;
    await mend?.();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.mend();
  }
}

let stage: Stage;
let tags = 0;

beforeAll(async () => {
  stage = await Stage.start(isLong ? 3 : 2);
}, 120_000);

afterAll(() => stage?.close());

function promtool(cwd: string, ...words: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync(prometheusPrograms().promtool, words, {
    cwd,
    encoding: "utf8",
  });
  expect([words, status, stdout, stderr]).toEqual([words, 0, stdout, ""]);
}

test("promtool finds nothing wrong, and the rules pass their own tests", () => {
  promtool(DEPLOY, "check", "config", "prometheus/prometheus.yml");
  promtool(DEPLOY, "test", "rules", "prometheus/tests/alerts.yaml", "prometheus/tests/tags.yaml");
});

test("the lines of docs/monitoring.md are a configuration", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-prometheus-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(path.join(DEPLOY, "prometheus/rules"), path.join(folder, "rules"), { recursive: true });
  const page = readFileSync(path.join(DEPLOY, "../docs/monitoring.md"), "utf8");
  const blocks = [...page.matchAll(/^ {3}```(yaml|sh)\n([^]*?)^ {3}```$/gm)];
  const [rules = "", scrape = "", global = "", check = ""] = blocks.map(([, , text]) => text);
  const lines = [rules, scrape, global].join("").replaceAll(/^ {3}/gm, "");
  writeFileSync(path.join(folder, "prometheus.yml"), lines);
  promtool(folder, ...check.trim().split(" ").slice(1));
});

test("every rule is evaluated, and all that it asks for is there; none fires when all is well", async () => {
  const { prometheus } = stage.parts;
  const rules = await until(
    "all rules were evaluated",
    async () => {
      const all = await prometheus.rules();
      return all.every(({ health }) => health !== "unknown") && all;
    },
    PATIENT,
  );
  expect(rules.filter(({ health }) => health !== "ok")).toEqual([]);
  const names = new Set(rules.flatMap(({ query }) => metricsOf(query)));
  expect(names.size).toBeGreaterThan(20);
  for (const name of names) {
    // What is foretold of tags, and rates, take a few looks.
    const has = async (): Promise<boolean> => (await prometheus.query(`count(${name})`)).length > 0;
    await until(`${name} has data`, has, PATIENT);
  }
  await stage.isQuiet();
});

/** What a dashboard asks when everything is chosen, over the time that `hurried` rules look back. */
function chosen(expression: string): string {
  return expression
    .replaceAll("$__rate_interval", "10s")
    .replaceAll("$job", "idmint")
    .replaceAll(/\$(instance|tag)/g, ".+");
}

test("every query of every dashboard is answered, and all that can have data have some", async () => {
  const { prometheus } = stage.parts;
  const queries = [...dashboards().values()].flatMap((dashboard) => queriesOf(dashboard));
  expect(queries.length).toBeGreaterThan(50);
  for (const query of queries.map((each) => chosen(each))) {
    const samples = await until(
      `${query} has data`,
      async () => {
        const found = await prometheus.query(query);
        return (found.some(({ value }) => !Number.isNaN(value)) || EMPTY.test(query)) && found;
      },
      PATIENT,
    );
    expect(JSON.stringify(samples)).not.toContain("$");
  }
});

test("there is a fault for each alert", async () => {
  const rules = await stage.parts.prometheus.rules();
  const alerts = rules.filter(({ type }) => type === "alerting").map(({ name }) => name);
  expect(Object.keys(CASES).toSorted()).toEqual(alerts.toSorted());
});

// With IDMINT_LONG=1 all of them; else one that takes a few seconds.
test.each(isLong ? Object.keys(CASES) : ["IdmintServerNotReady"])(
  "%s fires for its fault, and its runbook ends it",
  async (alertname) => {
    const { fault, labels, server = 3, newTag, before } = CASES[alertname] ?? NO_CASE;
    const tag = newTag === undefined ? "orders" : `${newTag}-${++tags}`;
    await stage.isQuiet();
    await using wrong = new Fault(await fault(stage, tag));
    const about = newTag === undefined ? labels : { ...labels, tag };
    const { annotations } = await stage.fires(alertname, about);
    const [config, { address }] = [stage.config, stage.server(1)];
    const page = path.basename(annotations["runbook_url"] ?? "");
    using runbook = new Runbook(page, { config, address, tag, host: `host-${server}` });
    for (const line of runbook.todo) {
      if (before?.[0].test(line) === true) await before[1](stage);
      await runbook.type(line);
    }
    await wrong.mend();
    await runbook.isWell();
    await stage.ends(alertname);
  },
  PATIENT.withinMs * 5,
);
