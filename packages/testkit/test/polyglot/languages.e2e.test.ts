// Callers in other languages, made as docs/languages.md says from an empty folder, mint beside the SDK from the same tags.
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import { expect, onTestFailed, onTestFinished, test } from "vitest";
import { selfSigned } from "../../src/certificate.ts";
import { Child, runCli } from "../../src/fleet/child.ts";
import { CLI } from "../../src/program.ts";
import type { Fleet } from "../../src/fleet/fleet.ts";
import { freePort } from "../../src/fleet/ports.ts";
import {
  CACHED,
  type Caller,
  type PolyglotLoad,
  staleIds,
  stopCaller,
  TAGS,
  untilAllMint,
  verdictOn,
} from "../../src/polyglot/crew.ts";
import { LANGUAGES, linesOf } from "../../src/polyglot/pages.ts";
import { type Project, setUp, shell } from "../../src/polyglot/project.ts";
import { isLong, sqliteFile, startFleet } from "../fleet-support.ts";

const COUNT = 1_000_000;
/** More than a caller uses before max_age, so that it always has ids in memory which a change must reach. */
const BLOCK = 5_000;
const MAX_AGE = "1s";
/** So long a change waits for servers that were killed. */
const MAX_OFFLINE = "5s";
const WAIT_MS = 300_000;
const PATIENCE = { maxAgeMs: 1_000, withinMs: WAIT_MS };
const SDK = path.join(import.meta.dirname, "sdk-child.ts");

/** A server with TLS on the store of a fleet, and a token that may take ids there. */
class TlsServer {
  readonly address: string;
  readonly token: string;
  readonly ca: string;
  readonly #env: Readonly<Record<string, string>>;
  #child: Child | undefined;

  private constructor(address: string, token: string, ca: string, env: Record<string, string>) {
    this.address = address;
    this.token = token;
    this.ca = ca;
    this.#env = env;
  }

  static async start(storeUrl: string, folder: string): Promise<TlsServer> {
    const { cert, key } = selfSigned("localhost");
    const [ca, keyFile] = [path.join(folder, "tls.crt"), path.join(folder, "tls.key")];
    writeFileSync(ca, cert);
    writeFileSync(keyFile, key, { mode: 0o400 });
    const port = await freePort();
    const env = {
      IDMINT_STORE_URL: storeUrl,
      IDMINT_NODE_MAX_OFFLINE: MAX_OFFLINE,
      IDMINT_GRPC_ADDRESS: `127.0.0.1:${port}`,
      IDMINT_HTTP_ADDRESS: "none",
      IDMINT_TLS_CERT_FILE: ca,
      IDMINT_TLS_KEY_FILE: keyFile,
    };
    const made = await runCli(["token", "create", "callers", "--issue", "*", "--store"], env);
    expect(made.code, made.stderr).toBe(0);
    const server = new TlsServer(`localhost:${port}`, made.stdout.trim(), ca, env);
    await server.start();
    return server;
  }

  async start(): Promise<void> {
    this.#child = new Child(CLI, ["serve", "--json"], { name: "TLS server", env: this.#env });
    await this.#child.waitForOutput("grpcAddress");
  }

  async kill(): Promise<void> {
    await this.#child?.kill();
  }
}

/** Runs the program of a language as the page says, but for the address. */
function follow({ language, folder }: Project, address: string): string {
  const [, lines] = linesOf(language);
  const idmint = `idmint() { '${process.execPath}' -C idmint-source '${CLI}' "$@" > made; }`;
  const here = lines.replaceAll("127.0.0.1:7600", address);
  const printed = shell(folder, `${idmint}\n${here}`, { IDMINT_ADDRESS: address });
  // Maven cleans a terminal that is not there.
  return stripVTControlCharacters(printed);
}

async function begin(
  words: string | readonly string[],
  load: PolyglotLoad,
  env: Readonly<Record<string, string>> = {},
): Promise<Caller> {
  const child = new Child(words, [JSON.stringify(load)], { name: load.name, env });
  onTestFailed(() => console.log(child.describe()));
  await child.waitForOutput("started");
  return { load, child };
}

/** Sets the clock by which callers make snowflakes, so many seconds ahead; libfaketime reaches neither Go nor a JVM safely. */
function setClock(file: string, seconds: number): void {
  writeFileSync(`${file}.next`, String(seconds));
  // Whole or not at all.
  renameSync(`${file}.next`, file);
}

/** Changes a tag, and waits until no caller can have an id in memory any more that the change has ended. */
async function change(fleet: Fleet, ...words: readonly string[]): Promise<number> {
  const { code, stderr } = await runCli(words, { IDMINT_ADDRESS: fleet.first.address });
  expect(code, stderr).toBe(0);
  return Date.now();
}

// Each language downloads and compiles for a minute.
test.runIf(isLong)(
  `${LANGUAGES.join(", ")} and the SDK mint from the same tags, and no id comes twice`,
  { timeout: 1_800_000 },
  async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "idmint-polyglot-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const storeUrl = `sqlite:${await sqliteFile()}`;
    const projects = LANGUAGES.map((language) => setUp(language));
    const env = { IDMINT_ACCESS_ANONYMOUS: "all", IDMINT_NODE_MAX_OFFLINE: MAX_OFFLINE };
    const fleet = await startFleet({ servers: 1, storeUrl, env });
    const tls = await TlsServer.start(storeUrl, folder);
    onTestFinished(() => tls.kill());

    for (const project of projects) {
      const printed = follow(project, fleet.first.address);
      expect(printed).toMatch(
        /^by calls: \d+ 10 1000\n(?:in this process: \d+ \d{18}\n){3}refused: TAG_NOT_FOUND\n$/,
      );
    }
    await change(fleet, "tag", "create", "accounts", "--max-age", MAX_AGE);
    await change(fleet, "tag", "create", "clicks", "--kind", "snowflake");
    await change(fleet, "tag", "create", "ledger", "--order", "per-client", "--max-age", MAX_AGE);
    await change(fleet, "tag", "create", "invoices", "--kind", "sequence");
    await change(fleet, "tag", "create", "streamed", "--kind", "sequence");

    const clock = path.join(folder, "clock");
    setClock(clock, 0);
    const { token, ca } = tls;
    const options = { folder, count: COUNT, block: BLOCK };
    const others = await Promise.all(
      projects.map(({ language, load: words }) =>
        begin(
          words,
          { ...options, address: tls.address, token, ca, name: `${language}-0` },
          { FAKECLOCK_FILE: clock },
        ),
      ),
    );
    const sdk = await begin(SDK, { ...options, address: fleet.first.address, name: "node-0" });
    const callers = [sdk, ...others];
    await untilAllMint(callers, PATIENCE);

    await Promise.all([fleet.first.kill(), tls.kill()]);
    // Shorter than time is reserved for snowflakes, so that they are made all the time.
    await pause(1_000);
    await Promise.all([fleet.first.start(), tls.start()]);
    await untilAllMint(callers, PATIENCE);

    const advanced = await Promise.all(
      CACHED.map(async (tag) => {
        const bound = verdictOn(callers, tag).highest + 10_000_000n;
        const words = ["tag", "advance", tag, "--floor", String(bound), "--yes", "--wait"];
        return { tag, bound, fromMs: await change(fleet, ...words) };
      }),
    );
    await untilAllMint(callers, PATIENCE);
    for (const caller of others) {
      for (const { tag, ...bounds } of advanced) {
        expect(staleIds(caller, tag, bounds)).toEqual([]);
      }
    }

    const pausedMs = await change(fleet, "tag", "pause", "accounts", "--wait");
    await Promise.all(
      others.map(({ child }) => child.waitForOutput("refused TAG_PAUSED", WAIT_MS)),
    );
    const resumedMs = Date.now();
    await change(fleet, "tag", "resume", "accounts");
    await untilAllMint(callers, PATIENCE);
    for (const caller of others) {
      const none = { fromMs: pausedMs, untilMs: resumedMs, bound: 2n ** 63n };
      expect(staleIds(caller, "accounts", none)).toEqual([]);
    }

    setClock(clock, -3_600);
    await Promise.all(
      others.map(({ child }) => child.waitForOutput("refused CLOCK_MOVED_BACKWARDS", WAIT_MS)),
    );
    setClock(clock, 0);
    await untilAllMint(callers, PATIENCE);
    // Ahead of all that is reserved, which the registry does by its own clock.
    setClock(clock, 3_600);
    await Promise.all(
      others.map(({ child }) => child.waitForOutput("refused SEGMENT_NOT_READY", WAIT_MS)),
    );
    setClock(clock, 0);
    await untilAllMint(callers, PATIENCE);

    const refusals = await Promise.all(callers.map(stopCaller));
    for (const reasons of refusals) expect(reasons).toMatchObject({ TAG_NOT_FOUND: 1 });
    const received = Object.fromEntries(
      TAGS.map((tag) => {
        const { repeats, distinct, received: all, firstInversions } = verdictOn(callers, tag);
        expect(repeats, tag).toEqual([]);
        expect(distinct, tag).toBe(all);
        // What one caller asks for one after the other grows.
        if (tag !== "accounts" && tag !== "streamed") expect(firstInversions, tag).toEqual([]);
        return [tag, all];
      }),
    );
    for (const caller of callers) {
      const counts = TAGS.map((tag) => verdictOn([caller], tag).received);
      expect(counts.reduce((sum, each) => sum + each)).toBeGreaterThanOrEqual(COUNT);
    }
    // Each has a worker id of its own, and the time in its ids is right.
    const ids = fleet.first.api.ids;
    const made = await Promise.all(
      callers.map((caller) => {
        const value = { $case: "id", value: verdictOn([caller], "clicks").highest } as const;
        return fleet.first.api.send(ids.decodeId.bind(ids), { tag: "clicks", value });
      }),
    );
    expect(new Set(made.map(({ snowflake }) => snowflake?.worker)).size).toBe(callers.length);
    for (const { time } of made) {
      expect(Math.abs(Date.now() - (time?.getTime() ?? 0))).toBeLessThan(600_000);
    }
    console.log("ids", received, "refusals", refusals);
  },
);
