// The rules and dashboards of deploy/ against the metrics, the reasons and the pages that they name. Nothing is run.
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { CODE_OF_REASON } from "@idmint/core";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { DEPLOY, metricsOf, rulesFiles } from "../../src/deploy/prometheus.ts";

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

test("rules ask only for metrics of docs/metrics.md, and for what other rules record", () => {
  const known = [...docs("metrics.md").matchAll(/^- At `\/metrics`: `(\w+)`/gm)].map(
    ([, name = ""]) => name,
  );
  const recorded = rules.flatMap(({ record }) => record ?? []);
  for (const { expr } of rules) {
    const names = metricsOf(expr);
    expect(names, expr).not.toEqual([]);
    for (const name of names) expect(["up", ...known, ...recorded]).toContain(name);
  }
  expect(known.length).toBeGreaterThan(30);
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
