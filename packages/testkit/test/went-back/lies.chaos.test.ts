// A fleet on etcd that is lied to: the address of one member leads to the etcd of another store, so does the only address that
// one server has, and a third server is started while its store is away, with the list of tokens of another time.
import { copyFileSync, readFileSync, renameSync } from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { credentials } from "@grpc/grpc-js";
import { IdmintError } from "@idmint/client";
import { CreateTokenRequest, Role } from "@idmint/proto";
import { AccessServiceClient } from "@idmint/proto/grpc-js";
import { expect, onTestFinished, test } from "vitest";
import { EtcdCluster, type EtcdMember } from "../../src/etcd/index.ts";
import { Api } from "../../src/fleet/api.ts";
import type { Fleet, FleetServer } from "../../src/fleet/fleet.ts";
import { until } from "../../src/fleet/until.ts";
import { TcpProxy } from "../../src/tcp-proxy.ts";
import { isLong, seededRandom, startFleet } from "../fleet-support.ts";
import { fillStores, Given, tagsOf, temporaryFolder } from "./two-stores.ts";

const ROUNDS = isLong ? 10 : 1;
const TAGS = ["segments", "strict", "flakes"] as const;
/** The longest that callers are refused where nothing lies any more. A long run has the machine to itself. */
const MOST_MS = isLong ? 5_000 : 30_000;
const CALL_MS = 2_000;
/** Between two calls of a caller. */
const PACE_MS = 20;
/** For how long callers are watched after the last lie. */
const AFTER_MS = 6_000;

/** A way to a member, which may lead to the other etcd instead. */
class Way {
  readonly proxy: TcpProxy;
  readonly #right: EtcdMember;
  readonly #wrong: EtcdMember;

  constructor(proxy: TcpProxy, right: EtcdMember, wrong: EtcdMember) {
    this.proxy = proxy;
    this.#right = right;
    this.#wrong = wrong;
  }

  static async start(right: EtcdMember, wrong: EtcdMember): Promise<Way> {
    const proxy = await TcpProxy.start({ host: "127.0.0.1", port: right.place.clientPort });
    onTestFinished(() => proxy.close());
    return new Way(proxy, right, wrong);
  }

  get host(): string {
    return `127.0.0.1:${this.proxy.port}`;
  }

  lie(): void {
    this.proxy.pointAt({ host: "127.0.0.1", port: this.#wrong.place.clientPort });
  }

  tellTheTruth(): void {
    this.proxy.pointAt({ host: "127.0.0.1", port: this.#right.place.clientPort });
  }
}

/** Everybody who calls one server, and how long nobody was answered there although nothing lied to it. */
class Callers {
  /** On the monotonic clock; Infinity: something lies to the server. */
  truthSince = 0;
  longestMs = 0;
  readonly refusals = new Map<string, number>();
  readonly #server: FleetServer;
  readonly #token: string;
  readonly #given: Given;

  constructor(server: FleetServer, token: string, given: Given) {
    this.#server = server;
    this.#token = token;
    this.#given = given;
  }

  async call(signal: AbortSignal): Promise<void> {
    using api = new Api(this.#server.address, undefined, this.#token);
    await Promise.all(TAGS.map((tag) => this.#draw(api, tag, signal)));
  }

  async #draw(api: Api, tag: string, signal: AbortSignal): Promise<void> {
    let answeredAt = performance.now();
    while (!signal.aborted) {
      try {
        this.#given.add(tag, await api.id(tag, CALL_MS));
        answeredAt = performance.now();
        await pause(PACE_MS);
      } catch (thrown) {
        const { reason } = IdmintError.from(thrown);
        if (reason === "INTERNAL") throw thrown;
        this.refusals.set(reason, (this.refusals.get(reason) ?? 0) + 1);
        const waitedMs = performance.now() - Math.max(answeredAt, this.truthSince);
        this.longestMs = Math.max(this.longestMs, Math.round(waitedMs));
        await pause(PACE_MS);
      }
    }
  }
}

interface Scene {
  readonly fleet: Fleet;
  readonly given: Given;
  /** Of all three servers. */
  readonly member: Way;
  /** The only one that the second server has. */
  readonly address: Way;
  /** The only one that the third server has. */
  readonly store: Way;
  readonly cacheFile: string;
  readonly operator: Operator;
  readonly otherBefore: unknown;
  readonly otherEnv: Readonly<Record<string, string>>;
}

function envOf(hosts: readonly string[]): Readonly<Record<string, string>> {
  return {
    IDMINT_STORE_URL: `etcd://${hosts.join(",")}/lies/`,
    IDMINT_ALLOW_UNSAFE_STORE: "auto_compaction",
  };
}

async function stage(): Promise<Scene> {
  const [ours, other] = [await EtcdCluster.start({ size: 3 }), await EtcdCluster.start()];
  onTestFinished(async () => {
    await ours.close();
    await other.close();
  });
  const [first, second, third] = ours.members as readonly [EtcdMember, EtcdMember, EtcdMember];
  const [wrong] = other.members as readonly [EtcdMember];
  const [member, address, store] = (await Promise.all(
    [second, first, third].map((right) => Way.start(right, wrong)),
  )) as [Way, Way, Way];
  const { below } = seededRandom();
  const direct = { ours: envOf([ours.hosts]), other: envOf([other.hosts]) };
  await fillStores(
    {
      direct,
      told: [direct.ours, direct.ours, direct.ours],
      pointAt: () => undefined,
      make: async (api, start) => {
        await api.createTag({ name: "segments", start, min: 20, max: 40 });
        await api.createSequence("strict", { start });
        await api.createSnowflake("flakes");
      },
    },
    BigInt([1, 500, 100_000][below(3)] ?? 1),
  );
  const otherBefore = await tagsOf(direct.other, TAGS);
  const folder = await temporaryFolder();
  const cacheFile = path.join(folder, "cache-2");
  const told = [
    envOf([first.address, member.host, third.address]),
    envOf([address.host]),
    envOf([store.host]),
  ];
  const fleet = await startFleet({
    servers: 3,
    storeUrl: direct.ours["IDMINT_STORE_URL"] ?? "",
    envOf: told.map((env, at) => ({
      ...env,
      IDMINT_SNOWFLAKE_CACHE_FILE: path.join(folder, `cache-${at}`),
    })),
  });
  const given = new Given();
  const operator = await Operator.of(fleet);
  const lies = { member, address, store, cacheFile };
  return { fleet, given, operator, ...lies, otherBefore, otherEnv: direct.other };
}

/** An operator makes and revokes tokens, at the first server. */
class Operator {
  readonly #api: Api;
  readonly #access: AccessServiceClient;

  private constructor(api: Api) {
    this.#api = api;
    const same = { channelOverride: api.health.getChannel() };
    this.#access = new AccessServiceClient("", credentials.createInsecure(), same);
  }

  static async of(fleet: Fleet): Promise<Operator> {
    const words = ["token", "create", "ops", "--admin", "*", "--expires", "1h", "--store"];
    const token = (await fleet.cli(...words)).trim();
    const api = new Api(fleet.first.address, undefined, token);
    onTestFinished(() => api[Symbol.dispose]());
    await until("the operator is known", async () => (await api.getTag("segments")).floor >= 0n);
    return new Operator(api);
  }

  async makeToken(principal: string): Promise<Made> {
    const request = CreateTokenRequest.fromPartial({
      principal,
      rights: [{ role: Role.ISSUE, tags: "*" }],
      lifetime: { seconds: 3_600n, nanos: 0 },
    });
    const { text, token } = await this.#api.send(
      this.#access.createToken.bind(this.#access),
      request,
    );
    return { text, id: token?.tokenId ?? "" };
  }

  async revoke({ id }: Made): Promise<void> {
    const request = { tokenId: id, validateOnly: false };
    await this.#api.send(this.#access.revokeToken.bind(this.#access), request);
  }
}

interface Made {
  readonly text: string;
  readonly id: string;
}

/** Why a call with this token is refused; empty when it is answered. */
async function refusalOf({ address }: FleetServer, token: Made): Promise<string> {
  using api = new Api(address, undefined, token.text);
  try {
    await api.generateId("segments", CALL_MS);
    return "";
  } catch (thrown) {
    return IdmintError.from(thrown).reason;
  }
}

/** Waits for what a token is told, and answers how long that took; then it stays so. */
async function settles(server: FleetServer, token: Made, reason: string): Promise<number> {
  const start = performance.now();
  const isSo = async (): Promise<boolean> => (await refusalOf(server, token)) === reason;
  await until(`${server.name} says "${reason}"`, isSo, { withinMs: 30_000 });
  return Math.round(performance.now() - start);
}

/**
 * The third server is started while its store is away and tokens were made and revoked meanwhile. Its list is the one that it
 * had, and believed; or its file was put back to an older one, and says nothing.
 */
async function startWithOldList(
  scene: Scene,
  callers: Callers,
  how: { readonly isPutBack: boolean; readonly forMs: number },
): Promise<number[]> {
  const { fleet, operator, store, cacheFile } = scene;
  const server = fleet.servers[2]!;
  const revoked = await operator.makeToken("revoked");
  await settles(server, revoked, "");
  await until("the file knows the token, and has what a start without the store needs", () => {
    const text = readFileSync(cacheFile, "utf8");
    return text.includes(revoked.id) && /"leases":\[\{/u.test(text);
  });
  copyFileSync(cacheFile, `${cacheFile}.old`);
  callers.truthSince = Infinity;
  await server.kill();
  store.proxy.cut();
  await operator.revoke(revoked);
  const made = await operator.makeToken("made");
  if (how.isPutBack) renameSync(`${cacheFile}.old`, cacheFile);
  const child = server.spawn();
  const hasBegun = (): boolean =>
    how.isPutBack ? child.stderr.includes("not ready until it does") : server.listens;
  await until(`${server.name} has begun without its store`, hasBegun, { withinMs: 60_000 });
  if (!how.isPutBack) {
    await settles(server, made, "UNAUTHENTICATED");
    expect(await refusalOf(server, revoked)).not.toBe("UNAUTHENTICATED");
  }
  await pause(how.forMs);
  store.proxy.mend();
  callers.truthSince = performance.now();
  const tookMs = await Promise.all([
    settles(server, made, ""),
    settles(server, revoked, "UNAUTHENTICATED"),
  ]);
  for (const each of fleet.servers) expect(await refusalOf(each, revoked)).toBe("UNAUTHENTICATED");
  return tookMs;
}

async function lieFor(way: Way, forMs: number): Promise<void> {
  way.lie();
  await pause(forMs);
  way.tellTheTruth();
}

test(
  "a member, an address and a list of tokens lie: no id twice, and nobody is refused for long once they do not",
  { timeout: (ROUNDS * 60 + 120) * 1_000 },
  async () => {
    const { seed, below } = seededRandom();
    const scene = await stage();
    const { fleet, given, operator, member, address } = scene;
    const app = await operator.makeToken("app");
    await Promise.all(fleet.servers.map((server) => settles(server, app, "")));
    const stop = new AbortController();
    const all = fleet.servers.map((server) => new Callers(server, app.text, given));
    const [, second, third] = all as [Callers, Callers, Callers];
    const calling = Promise.all(all.map((callers) => callers.call(stop.signal)));
    // An id that was given twice ends the test at once.
    const work = async (): Promise<void> => {
      for (let round = 0; round < ROUNDS; round++) {
        const forMs = (): number => 1_000 + below(4_000);
        const isPutBack = (round + seed) % 2 === 0;
        second.truthSince = Infinity;
        const [, , listMs] = await Promise.all([
          lieFor(member, forMs()),
          lieFor(address, forMs()).then(() => (second.truthSince = performance.now())),
          startWithOldList(scene, third, { isPutBack, forMs: forMs() }),
        ]);
        await pause(AFTER_MS);
        const longest = all.map(({ longestMs }) => longestMs);
        console.log(
          `seed ${seed}, round ${round + 1}${isPutBack ? ", an older file" : ""}: ${given.count} ids; refused for at most ${longest.join(", ")} ms; the list was right after ${listMs.join(", ")} ms`,
          ...all.map(({ refusals }) => Object.fromEntries(refusals)),
        );
        for (const ms of [...longest, ...listMs]) expect(ms).toBeLessThan(MOST_MS);
      }
    };
    try {
      await Promise.race([work(), calling]);
    } finally {
      stop.abort();
    }
    await calling;
    // Nobody wrote to the other store.
    expect(await tagsOf(scene.otherEnv, TAGS)).toEqual(scene.otherBefore);
  },
);
