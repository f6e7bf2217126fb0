// Pages of docs/runbooks, typed at a fleet.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DEPLOY } from "../../src/deploy/prometheus.ts";
import { runCli } from "../../src/fleet/child.ts";
import { until } from "../../src/fleet/until.ts";

const USAGE = 2;
const WELL = { withinMs: 60_000, everyMs: 500 };

/** What the names of a page are here. */
export interface Names {
  /** Address of the server that is asked. */
  readonly address: string;
  /** Instance of the server that is not well. */
  readonly host: string;
  /** The tag; default: as the page has it. */
  readonly tag?: string;
  /** For commands that read a server's configuration. */
  readonly config: Readonly<Record<string, unknown>>;
}

/** One page: the commands that are to be typed, and those that show whether it is well. */
export class Runbook implements Disposable {
  readonly todo: readonly string[];
  readonly #well: readonly string[];
  readonly #names: Names;
  readonly #folder: string;

  constructor(page: string, names: Names) {
    const text = readFileSync(path.join(DEPLOY, "../docs/runbooks", page), "utf8");
    const [todo = "", well] = text.split("**It is well when**");
    if (well === undefined) throw new Error(`${page} does not say when it is well`);
    this.todo = commandsOf(todo);
    this.#well = commandsOf(well);
    this.#names = names;
    this.#folder = mkdtempSync(path.join(tmpdir(), "idmint-runbook-"));
    writeFileSync(this.#config, JSON.stringify(names.config), { mode: 0o600 });
  }

  get #config(): string {
    return path.join(this.#folder, "idmint.yaml");
  }

  /** Types a command, whatever it finds; fails when there is no such command. */
  async type(line: string): Promise<number | null> {
    const { address, host, tag = "orders" } = this.#names;
    const here = line
      .replaceAll("/etc/idmint.yaml", this.#config)
      .replaceAll("127.0.0.1:7600", address)
      .replaceAll("host-1:7600", host)
      .replaceAll(/\borders\b/g, tag);
    const { code, stderr } = await runCli(here.split(" ").slice(1), { IDMINT_ADDRESS: address });
    if (code === USAGE || code === null) throw new Error(`${here}: exit code ${code}\n${stderr}`);
    return code;
  }

  /** Types what shows that it is well, until it does. */
  async isWell(): Promise<void> {
    for (const line of this.#well) {
      // As somebody reads the page: one after the other.
      await until(line, async () => (await this.type(line)) === 0, WELL);
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true });
  }
}

/** Those of idmint; other programs are what the page's machine has, such as cp. */
function commandsOf(text: string): readonly string[] {
  const blocks = [...text.matchAll(/^ *```sh\n([^]*?)^ *```$/gm)].map(([, code = ""]) => code);
  const lines = blocks.flatMap((block) => block.split("\n")).map((line) => line.trim());
  return lines.filter((line) => line.startsWith("idmint "));
}
