// The table of metrics, what becomes of it, and a server with 100,000 tags.
import { readFileSync } from "node:fs";
import path from "node:path";
import { MemoryStore } from "@idmint/testkit";
import { expect, test } from "vitest";
import { loadConfig } from "../../../src/config/load.ts";
import { createServices } from "../../../src/main/services.ts";
import { realSystem } from "../../../src/main/system.ts";
import { Histogram } from "../../../src/service/histogram.ts";
import { metricsDocs } from "../../../src/telemetry/metrics/docs.ts";
import { Metrics } from "../../../src/telemetry/metrics/metrics.ts";
import { prometheusName } from "../../../src/telemetry/metrics/prometheus-name.ts";
import { metricsOfSeveral } from "../../../src/telemetry/metrics/several.ts";
import {
  METRIC_NAMES,
  METRICS,
  type MetricSnapshot,
} from "../../../src/telemetry/metrics/table.ts";
import { Operations } from "../../../src/telemetry/operations.ts";
import { prometheusText } from "../../../src/telemetry/otel/prometheus.ts";
import { SETTINGS } from "../../service/directory-world.ts";
import { seriesOf } from "../scrape.ts";

test("docs/metrics.md is what `pnpm generate` makes of the table of metrics", () => {
  const file = path.resolve(import.meta.dirname, "../../../../../docs/metrics.md");
  expect(readFileSync(file, "utf8")).toBe(metricsDocs());
});

test("every metric has a unit and a sentence, and a name of its own in Prometheus' format", () => {
  for (const name of METRIC_NAMES) {
    const { unit, text } = METRICS[name];
    expect(unit, name).toMatch(/^(?:s|By|1|\{[a-z]+\})$/);
    expect(text, name).toMatch(/^[A-Z1].*\.$/);
    expect(prometheusName(name)).toMatch(/^[a-z][a-z0-9_]*$/);
  }
  expect(new Set(METRIC_NAMES.map(prometheusName)).size).toBe(METRIC_NAMES.length);
});

test("a value counts below the first bound that it does not exceed", () => {
  const histogram = new Histogram([1, 2, 5]);
  for (const value of [0, 1, 1.5, 2, 5, 5.1, 1_000]) histogram.record(value);
  expect(histogram.counts).toEqual([2, 2, 1, 2]);
  expect(histogram.sum).toBeCloseTo(1_014.6);
});

test("the text has each value where Prometheus looks for it", () => {
  const times = { bounds: [0.1, 1], counts: [3, 2, 1], sum: 4.5 };
  const text = prometheusText({
    "idmint.ids.issued": [{ attributes: { tag: "a" }, value: 7 }],
    "idmint.load.duration": [{ attributes: {}, value: times }],
    "idmint.segment.remaining": [{ attributes: { tag: 'a"b\\' }, value: 0.5 }],
  });
  const series = seriesOf(text);
  expect(series.get('idmint_ids_issued_total{tag="a"}')).toBe(7);
  expect(series.get('idmint_segment_remaining_ratio{tag="a\\"b\\\\"}')).toBe(0.5);
  const buckets = ["0.1", "1", "+Inf"].map((le) =>
    series.get(`idmint_load_duration_seconds_bucket{le="${le}"}`),
  );
  expect(buckets).toEqual([3, 5, 6]);
  expect(series.get("idmint_load_duration_seconds_count")).toBe(6);
  expect(series.get("idmint_load_duration_seconds_sum")).toBe(4.5);
  expect(text).toContain("# TYPE idmint_ids_issued_total counter");
});

/** What a process tells that issued so many ids. */
function oneThat(issued: number): MetricSnapshot {
  return {
    "idmint.process.up": [{ attributes: {}, value: 1 }],
    "idmint.ids.issued": [{ attributes: { tag: "a" }, value: issued }],
  };
}

test("each series of several processes is of one of them, and one that does not answer is down", () => {
  const merged = metricsOfSeveral([
    { process: 1, metrics: oneThat(5) },
    { process: 2, metrics: undefined },
    { process: 3, metrics: oneThat(7) },
  ]);
  const series = seriesOf(prometheusText(merged));
  expect(Object.fromEntries(series)).toEqual({
    'idmint_ids_issued_total{tag="a",process="1"}': 5,
    'idmint_ids_issued_total{tag="a",process="3"}': 7,
    'idmint_process_up{process="1"}': 1,
    'idmint_process_up{process="2"}': 0,
    'idmint_process_up{process="3"}': 1,
  });
});

test(
  "100,000 tags give at most 2,000 series, whose counters have every id",
  { timeout: 60_000 },
  async () => {
    const TAGS = 100_000;
    const operations = new Operations();
    const metrics = new Metrics(100, operations);
    const store = operations.observed(new MemoryStore(), "memory");
    const flags = { "store-url": "sqlite:none" };
    const services = createServices(loadConfig({ flags, env: {}, defaults: {} }), {
      store,
      emit: metrics.hear,
      authorise: () => undefined,
    });
    await services.poll.start();
    metrics.start({ ...services, ...realSystem, redisServers: [] });
    const first = await store.createTag(SETTINGS, { validateOnly: false });
    const names = Array.from({ length: TAGS }, (_, at) => `t${at}`);
    services.directory.admit(names.map((name) => ({ ...first, name })));
    const entries = [...services.directory.entries()];
    expect(entries).toHaveLength(TAGS);
    const busy = (many: number): void => {
      for (const [at, entry] of entries.entries()) {
        const count = at % 1_000 === 0 ? many : 1;
        entry.issued += count;
        services.counters.issuedIds += count;
      }
    };
    for (const many of [1, 1_000, 1_000]) {
      busy(many);
      const text = prometheusText(await metrics.collect());
      const series = seriesOf(text);
      expect(series.size).toBeLessThanOrEqual(2_000);
      const issued = [...series].filter(([key]) => key.startsWith("idmint_ids_issued_total"));
      expect(issued).toHaveLength(101);
      expect(issued.reduce((sum, [, value]) => sum + value, 0)).toBe(services.counters.issuedIds);
    }
    metrics.stop();
    services.poll.stop();
  },
);
