import { expect } from "vitest";

const LINE = /^([a-z_][a-z0-9_]*(?:\{(?:[a-z_][a-z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)+\})?) (\S+)$/;

/** The series of a text in Prometheus' format, each with its value. Fails for any line that is none. */
export function seriesOf(text: string): ReadonlyMap<string, number> {
  const series = new Map<string, number>();
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("# HELP ") || line.startsWith("# TYPE ")) continue;
    const [, key = "", value = ""] = LINE.exec(line) ?? [];
    expect(key, line).not.toBe("");
    expect(Number.isFinite(Number(value)), line).toBe(true);
    expect(series.has(key), line).toBe(false);
    series.set(key, Number(value));
  }
  return series;
}

/** What a server answers at /metrics. */
export async function scrape(httpAddress: string): Promise<ReadonlyMap<string, number>> {
  const answer = await fetch(`http://${httpAddress}/metrics`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toContain("text/plain; version=0.0.4");
  return seriesOf(await answer.text());
}
