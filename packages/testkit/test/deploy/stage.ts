// A fleet with everything that is measured, callers, and a Prometheus that scrapes them.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { SequenceBackend, SequenceKind, SnowflakeKind, Tag, TicketKind } from "@idmint/proto";
import { type Alert, Prometheus } from "../../src/deploy/prometheus.ts";
import { FakeWallClock } from "../../src/faketime.ts";
import { runCli } from "../../src/fleet/child.ts";
import { Fleet, type FleetServer } from "../../src/fleet/fleet.ts";
import { freePort } from "../../src/fleet/ports.ts";
import { until } from "../../src/fleet/until.ts";
import { TestPostgres } from "../../src/postgres.ts";
import { RedisServer } from "../../src/redis/server.ts";
import { TcpProxy } from "../../src/tcp-proxy.ts";

const UNSAFE = "fsync,full_page_writes";
/** Prometheus sees a change within two seconds; the rest is for a busy machine. */
const SEEN = { withinMs: 120_000, everyMs: 250 };
const CALL_EVERY_MS = 100;

/** Whoever is told alarms: takes them, or refuses. */
export class Receiver {
  isRefusing = false;
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      request.resume();
      response.writeHead(this.isRefusing ? 500 : 200).end();
    });
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/alarms`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/** All of it. The second server has a way to the store that can be cut, and the third one a clock of its own. */
export class Stage {
  readonly parts: {
    readonly postgres: TestPostgres;
    readonly tickets: TestPostgres;
    readonly redis: RedisServer;
    readonly receiver: Receiver;
    readonly way: TcpProxy;
    readonly clock: FakeWallClock;
    readonly fleet: Fleet;
    readonly prometheus: Prometheus;
  };
  /** For commands that read a server's configuration. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly #stopped = new AbortController();
  readonly #callers: Promise<void>[] = [];

  private constructor(parts: Stage["parts"], config: Stage["config"]) {
    this.parts = parts;
    this.config = config;
  }

  static async start(servers = 3): Promise<Stage> {
    const [postgres, tickets, redis] = await Promise.all([
      TestPostgres.start(),
      TestPostgres.start(),
      RedisServer.start({ settings: { appendonly: "yes" } }),
    ]);
    const way = await TcpProxy.start({ host: "127.0.0.1", port: postgres.port });
    const [receiver, clock] = [new Receiver(), new FakeWallClock(0)];
    const env = {
      IDMINT_ALLOW_UNSAFE_STORE: UNSAFE,
      IDMINT_REDIS_URLS: redis.url,
      IDMINT_TICKET_URLS: `a=${tickets.url()}`,
      IDMINT_ALARM_WEBHOOK_URL: await receiver.listen(),
      IDMINT_ALARM_AFTER: "1s",
      IDMINT_NODE_MAX_OFFLINE: "2min",
      IDMINT_LOG_LEVEL: "warn",
    };
    const storeUrl = postgres.url();
    const https = await Promise.all(
      Array.from({ length: servers }, async () => `127.0.0.1:${await freePort()}`),
    );
    const own = [{}, { IDMINT_STORE_URL: urlThrough(storeUrl, way.port) }, clock.env];
    const envOf = https.map((http, at) => ({
      IDMINT_HTTP_ADDRESS: http,
      IDMINT_INSTANCE: `host-${at + 1}`,
      ...own[at],
    }));
    await migrateTickets({ ...env, IDMINT_STORE_URL: storeUrl });
    const fleet = await Fleet.start({ servers, storeUrl, env, envOf });
    const prometheus = await Prometheus.start(https);
    const parts = { postgres, tickets, redis, receiver, way, clock, fleet, prometheus };
    const stage = new Stage(parts, {
      store: { url: storeUrl },
      allow_unsafe_store: UNSAFE,
      redis: { urls: env.IDMINT_REDIS_URLS },
      ticket: { urls: env.IDMINT_TICKET_URLS },
      alarm: { webhook_url: env.IDMINT_ALARM_WEBHOOK_URL },
      limits: { connections: 1_000 },
    });
    await stage.#open();
    return stage;
  }

  /** A server by its number, from 1. */
  server(number: number): FleetServer {
    const server = this.parts.fleet.servers[number - 1];
    if (server === undefined) throw new Error(`no server ${number}`);
    return server;
  }

  /** Calls a server again and again, whatever it answers, until the test ends or says so. */
  keep(
    call: (server: FleetServer) => Promise<unknown>,
    servers: readonly FleetServer[] = this.parts.fleet.servers,
  ): () => void {
    const told = new AbortController();
    const isOver = (): boolean => told.signal.aborted || this.#stopped.signal.aborted;
    for (const server of servers) {
      const caller = async (): Promise<void> => {
        while (!isOver()) {
          await Promise.all([call(server).catch(() => undefined), pause(CALL_EVERY_MS)]);
        }
      };
      this.#callers.push(caller());
    }
    return () => told.abort();
  }

  /** Runs a command at the first server; fails unless it ends with exit code 0. */
  async cli(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await runCli(args, {
      IDMINT_ADDRESS: this.parts.fleet.first.address,
    });
    if (code !== 0) throw new Error(`idmint ${args.join(" ")}: ${stderr}`);
    return stdout;
  }

  /** Waits until an alert fires with these labels, and answers it. */
  async fires(alertname: string, labels: Readonly<Record<string, string>> = {}): Promise<Alert> {
    const wanted = Object.entries({ alertname, ...labels });
    const isIt = (alert: Alert): boolean =>
      alert.state === "firing" && wanted.every(([name, value]) => alert.labels[name] === value);
    const { prometheus } = this.parts;
    return until(`${alertname} fires`, async () => (await prometheus.alerts()).find(isIt), SEEN);
  }

  /** Waits until no alert of this name fires or is about to. */
  async ends(alertname: string): Promise<void> {
    const { prometheus } = this.parts;
    const isOver = async (): Promise<boolean> =>
      (await prometheus.alerts()).every(({ labels }) => labels["alertname"] !== alertname);
    await until(`${alertname} ends`, isOver, SEEN);
  }

  /** Waits until no alert fires or is about to. */
  async isQuiet(): Promise<void> {
    let last = "";
    try {
      await until(
        "no alert fires",
        async () => {
          const alerts = await this.parts.prometheus.alerts();
          last = JSON.stringify(alerts.map(({ labels }) => labels));
          return alerts.length === 0;
        },
        SEEN,
      );
    } catch (cause) {
      throw new Error(last, { cause });
    }
  }

  /** Makes a tag of each kind that has metrics of its own, and lets callers call. */
  async #open(): Promise<void> {
    const { api } = this.parts.fleet.first;
    const value = { ...SequenceKind.create(), backend: SequenceBackend.REDIS };
    const kinds: Readonly<Record<string, NonNullable<Tag["kind"]>>> = {
      trace: { $case: "snowflake", value: SnowflakeKind.create() },
      tickets: { $case: "ticket", value: TicketKind.create() },
      invoices: { $case: "sequence", value },
    };
    await api.createTag({ name: "orders", min: 100_000 });
    for (const [name, kind] of Object.entries(kinds)) {
      const tag = { ...Tag.create(), name, kind };
      await api.send(api.tags.createTag.bind(api.tags), { tag, validateOnly: false });
    }
    for (const tag of ["orders", ...Object.keys(kinds)]) this.keep(({ api: of }) => of.id(tag));
    this.keep(({ api: of }) => of.id("unknown"), [this.parts.fleet.first]);
  }

  async close(): Promise<void> {
    this.#stopped.abort();
    await Promise.all(this.#callers);
    const { postgres, tickets, redis, receiver, clock, fleet, prometheus, way } = this.parts;
    await Promise.all([fleet.close(), prometheus.close()]);
    await Promise.all([postgres.close(), tickets.close(), redis.close(), way.close()]);
    receiver.close();
    clock[Symbol.dispose]();
  }
}

async function migrateTickets(env: Readonly<Record<string, string>>): Promise<void> {
  const { code, stderr } = await runCli(["ticket", "migrate"], env);
  if (code !== 0) throw new Error(stderr);
}

function urlThrough(url: string, port: number): string {
  const through = new URL(url);
  through.port = String(port);
  return through.href;
}
