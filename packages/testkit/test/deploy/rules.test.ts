// The rules and dashboards of deploy/ against the metrics, the reasons and the pages that they name. Nothing is run.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { CODE_OF_REASON } from "@idmint/core";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { dashboardFiles, dashboards, queriesOf } from "../../src/deploy/dashboards.ts";
import { DEPLOY, metricsOf, rulesFiles } from "../../src/deploy/prometheus.ts";

/** Metrics that no dashboard shows: others say the same, or more. */
const NOT_SHOWN = ["idmint_ids_returned_total", "nodejs_eventloop_delay_p50_seconds"];
const DOCS = path.resolve(DEPLOY, "../docs");
const docs = (name: string): string => readFileSync(path.join(DOCS, name), "utf8");

interface RuleText {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

const rules = rulesFiles().flatMap((name) => {
  const text = readFileSync(path.join(DEPLOY, "prometheus/rules", name), "utf8");
  return (parse(text) as { groups: { rules: RuleText[] }[] }).groups.flatMap(
    (group) => group.rules,
  );
});
const alerts = rules.filter(({ alert }) => alert !== undefined);

test("each alert has its severity, its words, and a runbook and a table that name it", () => {
  const page = docs("monitoring.md");
  for (const { alert = "", labels, annotations = {} } of alerts) {
    const { summary = "", description = "", runbook_url: url = "" } = annotations;
    expect(Object.keys(labels ?? {}), alert).toEqual(["severity"]);
    expect(labels?.["severity"], alert).toMatch(/^(warning|critical)$/);
    for (const words of [summary, description]) expect(words).toMatch(/^[A-Z{].*\.$/s);
    const [, runbook = ""] = /^\{\{ \$externalLabels\.runbooks \}\}\/([\w-]+\.md)$/.exec(url) ?? [];
    expect(existsSync(path.join(DOCS, "runbooks", runbook)), `${alert}: ${url}`).toBe(true);
    const [, seen = ""] = /\*\*You see:\*\* (.*)/.exec(docs(`runbooks/${runbook}`)) ?? [];
    expect(seen, runbook).toMatch(new RegExp(`\\b${alert}\\b`));
    const row = page
      .split("\n")
      .find((line) => line.startsWith(`| ${alert} | ${labels?.["severity"]} |`));
    expect(row, `${alert} in monitoring.md`).toContain(`(runbooks/${runbook})`);
  }
  const named = [...page.matchAll(/^\| (Idmint\w+) /gm)].map(([, name]) => name);
  expect(named).toEqual(alerts.map(({ alert }) => alert));
});

const known = [...docs("metrics.md").matchAll(/^- `(\w+)`: (?:counter|gauge|histogram), /gm)].map(
  ([, name = ""]) => name,
);

test("rules ask only for metrics of docs/metrics.md, and for what other rules record", () => {
  expect(known.length).toBeGreaterThan(30);
  const recorded = rules.flatMap(({ record }) => record ?? []);
  for (const { expr } of rules) {
    const names = metricsOf(expr);
    expect(names, expr).not.toEqual([]);
    for (const name of names) expect(["up", ...known, ...recorded]).toContain(name);
  }
});

test("the dashboards are those that pnpm generate writes, and show every metric there is", () => {
  const folder = path.join(DEPLOY, "grafana/dashboards");
  expect(readdirSync(folder).toSorted()).toEqual([...dashboardFiles().keys()].toSorted());
  for (const [name, text] of dashboardFiles()) {
    expect(readFileSync(path.join(folder, name), "utf8") === text, `pnpm generate: ${name}`).toBe(
      true,
    );
  }
  const queries = [...dashboards().values()].flatMap((dashboard) => queriesOf(dashboard));
  const asked = new Set(
    queries.flatMap(metricsOf).map((name) => name.replace(/_(bucket|count|sum)$/, "")),
  );
  const shown = known.filter((name) => asked.has(name));
  expect([...asked].filter((name) => name !== "up").toSorted()).toEqual(shown.toSorted());
  expect(known.filter((name) => !asked.has(name))).toEqual(NOT_SHOWN);
});

test("no two panels lie upon each other, and each has words, a unit and numbers of its own", () => {
  for (const { panels = [] } of dashboards().values()) {
    const cells = new Set<string>();
    for (const { id, type, title = "", gridPos, ...rest } of panels) {
      expect(id, title).toBe(panels.findIndex((panel) => panel.title === title) + 1);
      const { x = 0, y = 0, w = 0, h = 0 } = gridPos ?? {};
      expect(x + w).toBeLessThanOrEqual(24);
      for (let at = 0; at < w * h; at++) {
        const cell = `${x + (at % w)} ${y + Math.floor(at / w)}`;
        expect(cells.has(cell), `${title} at ${cell}`).toBe(false);
        cells.add(cell);
      }
      if (type !== "row")
        expect(rest).toMatchObject({ description: expect.stringMatching(/^\S.*\.$/) as string });
    }
  }
});

test("every reason is either left out of IdmintRefusals or has its page in the runbook", () => {
  const { expr = "" } = alerts.find(({ alert }) => alert === "IdmintRefusals") ?? {};
  const [, leftOut = ""] = /reason!~"([^"]+)"/.exec(expr) ?? [];
  const isLeftOut = new RegExp(`^(${leftOut})$`);
  const reasons = Object.keys(CODE_OF_REASON);
  const rows = docs("runbooks/refusals.md")
    .split("\n")
    .filter((line) => line.startsWith("   | "));
  const paged = rows.flatMap((row) =>
    [...(row.split("|")[1] ?? "").matchAll(/[A-Z_]{4,}/g)].map(([name]) => name),
  );
  expect(paged.toSorted()).toEqual(reasons.filter((reason) => !isLeftOut.test(reason)).toSorted());
});
