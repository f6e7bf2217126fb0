// The Sentinels of one master, each asked through a connection of its own.
import { Redis, type RedisOptions } from "ioredis";
import { addressText, type SentinelAnswer, type SentinelVote } from "./sentinel-vote.ts";
import { plainError } from "./plain-error.ts";

/** Longest wait for a Sentinel. One that hangs costs no more than that, since all are asked at once. */
const ASK_TIMEOUT_MS = 1_000;
const MAX_RECONNECT_MS = 500;
/** What a Sentinel publishes when it knows of a new master. */
const SWITCHED = "+switch-master";
const NO_ENTRY = ["NOAUTH", "NOPERM", "WRONGPASS"] as const;

interface Sentinel {
  readonly address: string;
  readonly client: Redis;
  /** What its connection said last. */
  fault: string;
}

export class Sentinels {
  readonly #master: string;
  readonly #all: readonly Sentinel[];

  /** `sentinels`, `name` and what else ioredis has of Sentinels. `onSwitch` hears when one of them knows of a new master. */
  constructor(options: RedisOptions, onSwitch: () => void) {
    const { sentinels, name, sentinelUsername, sentinelPassword, sentinelTLS } = options;
    this.#master = name ?? "";
    this.#all = (sentinels ?? []).map(({ host = "127.0.0.1", port = 26_379 }) => {
      const client = new Redis({
        host,
        port,
        ...(sentinelUsername === undefined ? {} : { username: sentinelUsername }),
        ...(sentinelPassword === undefined ? {} : { password: sentinelPassword }),
        ...(sentinelTLS === undefined ? {} : { tls: sentinelTLS }),
        connectTimeout: ASK_TIMEOUT_MS,
        commandTimeout: ASK_TIMEOUT_MS,
        socketTimeout: ASK_TIMEOUT_MS,
        disconnectTimeout: 100,
        enableReadyCheck: false,
        autoResendUnfulfilledCommands: false,
        // A question that waits for the connection ends with its first failure.
        maxRetriesPerRequest: 0,
        retryStrategy: (attempt) => Math.min(MAX_RECONNECT_MS, 50 * attempt),
        // Ready subscribes again.
        autoResubscribe: false,
        replyMapping: "legacy",
      });
      const sentinel = { address: addressText({ host, port }), client, fault: "" };
      client.on("error", (error: unknown) => {
        sentinel.fault = plainError(error).message;
      });
      client.on("ready", () => {
        sentinel.fault = "";
        // It may not be allowed to; then it is asked now and then, and that is all.
        client.subscribe(SWITCHED).catch(() => undefined);
      });
      client.on("message", onSwitch);
      return sentinel;
    });
  }

  /** Asks all of them where the master is. */
  async ask(): Promise<readonly SentinelVote[]> {
    return Promise.all(
      this.#all.map(async (sentinel) => ({
        sentinel: sentinel.address,
        answer: await this.#askOne(sentinel),
      })),
    );
  }

  close(): void {
    for (const { client } of this.#all) client.disconnect();
  }

  async #askOne(sentinel: Sentinel): Promise<SentinelAnswer> {
    try {
      const answer: unknown = await sentinel.client.call(
        "SENTINEL",
        "GET-MASTER-ADDR-BY-NAME",
        this.#master,
      );
      if (answer === null) return { says: "unknown" };
      const [host, port] = Array.isArray(answer) ? (answer as readonly unknown[]) : [];
      if (typeof host === "string" && host !== "" && Number(port) > 0) {
        return { says: "master", at: { host, port: Number(port) } };
      }
      return { says: "nothing", why: "it answered what no Sentinel answers" };
    } catch (error) {
      const { message } = plainError(error);
      if (/unknown command/i.test(message)) return { says: "not-a-sentinel" };
      // What ended the connection says more than that it ended.
      const why = sentinel.fault === "" ? message : sentinel.fault;
      const entry = NO_ENTRY.find((code) => why.startsWith(code));
      return entry === undefined ? { says: "nothing", why } : { says: "no-entry", why: entry };
    }
  }
}
