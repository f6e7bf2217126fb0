// A real Prometheus for tests, with the configuration and the rules of deploy/prometheus.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { debianFiles, programOf } from "../debian.ts";
import { freePort } from "../fleet/ports.ts";
import { until } from "../fleet/until.ts";
import { GuardedServer } from "../guard.ts";

/** Folder of what an operator copies. */
export const DEPLOY: string = path.resolve(import.meta.dirname, "../../../../deploy");

const START_TIMEOUT_MS = 30_000;

/** Paths of Prometheus and its tool. */
export interface PrometheusPrograms {
  readonly prometheus: string;
  readonly promtool: string;
}

let programs: PrometheusPrograms | undefined;

/** The programs to run; unpacked at the first call when the machine has none. */
export function prometheusPrograms(): PrometheusPrograms {
  programs ??= debianFiles({
    name: "prometheus",
    packages: ["prometheus"],
    isUnpacked: true,
    find: (unpacked) => {
      const names = ["prometheus", "promtool"];
      const [prometheus, promtool] = names.map((name) => programOf(unpacked, [name])?.command);
      if (prometheus === undefined || promtool === undefined) return undefined;
      return { prometheus, promtool };
    },
    hint: "no Prometheus for the tests: install Debian's package prometheus (prometheus and promtool, version 2.42 or newer)",
  });
  return programs;
}

/** One series of an answer: its labels, and its value now. */
export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
}

/** An alert as Prometheus tells it. */
export interface Alert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly state: "firing" | "pending";
}

/** A rule as Prometheus has read it. */
export interface Rule {
  readonly name: string;
  readonly query: string;
  readonly type: "alerting" | "recording";
  readonly health: "ok" | "err" | "unknown";
  readonly lastError?: string;
}

/** A Prometheus of a test's own. Close it. */
export class Prometheus implements AsyncDisposable {
  readonly url: string;
  readonly #process: GuardedServer;

  private constructor(url: string, folder: string) {
    this.url = url;
    this.#process = new GuardedServer(folder);
  }

  /**
   * Scrapes the servers at these HTTP addresses each second. Of the files in deploy/prometheus only times are shorter, so
   * that a test need not wait for minutes: see `hurried`.
   */
  static async start(targets: readonly string[]): Promise<Prometheus> {
    const folder = mkdtempSync(path.join(tmpdir(), "idmint-prometheus-"));
    const address = `127.0.0.1:${await freePort()}`;
    const prometheus = new Prometheus(`http://${address}`, folder);
    mkdirSync(path.join(folder, "rules"));
    const files = ["prometheus.yml", ...rulesFiles().map((name) => path.join("rules", name))];
    for (const name of files) {
      const text = readFileSync(path.join(DEPLOY, "prometheus", name), "utf8");
      writeFileSync(path.join(folder, name), hurried(text, targets));
    }
    await prometheus.#process.start([
      prometheusPrograms().prometheus,
      `--config.file=${path.join(folder, "prometheus.yml")}`,
      `--storage.tsdb.path=${path.join(folder, "data")}`,
      `--web.listen-address=${address}`,
      "--log.level=warn",
    ]);
    try {
      await prometheus.#answering();
    } catch (cause) {
      const { log } = prometheus.#process;
      await prometheus.close();
      throw new Error(`Prometheus did not start\n${log.slice(-4_000)}`, { cause });
    }
    return prometheus;
  }

  /** What an expression says now; rejects with Prometheus' own words when it is wrong. */
  async query(expression: string): Promise<readonly Sample[]> {
    const { result } = await this.#ask<Answer>("query", { query: expression });
    return result.map(({ metric, value: [, text] }) => ({ metric, value: Number(text) }));
  }

  async alerts(): Promise<readonly Alert[]> {
    return (await this.#ask<{ alerts: readonly Alert[] }>("alerts")).alerts;
  }

  /** All rules that it runs. */
  async rules(): Promise<readonly Rule[]> {
    const { groups } = await this.#ask<{ groups: readonly { rules: readonly Rule[] }[] }>("rules");
    return groups.flatMap(({ rules }) => rules);
  }

  async close(): Promise<void> {
    if (this.#process.runs) await this.#process.end("SIGKILL");
    rmSync(this.#process.folder, { recursive: true, force: true });
    rmSync(`${this.#process.folder}.log`, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #answering(): Promise<void> {
    const isReady = async (): Promise<boolean> => {
      if (this.#process.hasEnded) return true;
      return (await fetch(`${this.url}/-/ready`)).ok;
    };
    await until("Prometheus is ready", isReady, { withinMs: START_TIMEOUT_MS });
    if (this.#process.hasEnded) throw new Error("it has ended");
  }

  async #ask<Data>(what: string, query: Readonly<Record<string, string>> = {}): Promise<Data> {
    const words = new URLSearchParams(query).toString();
    const response = await fetch(`${this.url}/api/v1/${what}?${words}`);
    const answer = (await response.json()) as { data?: Data; error?: string };
    if (answer.data === undefined || !response.ok)
      throw new Error(`${answer.error ?? response.status}: ${query["query"] ?? what}`);
    return answer.data;
  }
}

interface Answer {
  readonly result: readonly {
    readonly metric: Readonly<Record<string, string>>;
    readonly value: readonly [atS: number, text: string];
  }[];
}

/** Names of the metrics that an expression asks for, and of what rules record. */
export function metricsOf(expression: string): readonly string[] {
  const words = expression
    .replaceAll(/\{[^}]*\}|\b(?:by|on|without|ignoring|group_left) \([^)]*\)/g, "")
    .match(/\b(?:(?:idmint|nodejs|process|rpc|db)_\w+|job\w*:[\w:]+|up)\b/g);
  return words ?? [];
}

/** Names of the files with rules. */
export function rulesFiles(): readonly string[] {
  return readdirSync(path.join(DEPLOY, "prometheus/rules"));
}

/**
 * A file of deploy/prometheus in which minutes are seconds: it scrapes and evaluates each second, waits for 2 s, and looks
 * back 10 s. Thresholds stay as they are, and so does what looks back for days.
 */
function hurried(text: string, targets: readonly string[]): string {
  return text
    .replaceAll(/(_interval): 15s/g, "$1: 1s")
    .replaceAll(/targets: \[[^\]]*\]/g, `targets: ${JSON.stringify(targets)}`)
    .replaceAll(/\bfor: \d+[smh]$/gm, "for: 2s")
    .replaceAll(/\[\d+m\]/g, "[10s]");
}
