// Who asks all servers of a fleet for ids, and what came of it.
import type { IdClient, IdTag } from "@idmint/client";
import type { Fleet, FleetServer } from "../../src/fleet/fleet.ts";
import { until } from "../../src/fleet/until.ts";

const CALL_EVERY_MS = 20;
const DEADLINE_MS = 8_000;

/** A call, when it was sent, and what it brought; nothing for a refusal. */
export interface Sent {
  readonly by: string;
  readonly atMs: number;
  id: bigint | undefined;
}

/** Callers of every server, plainly and by an SDK, that ask all the time. */
export class Callers {
  readonly sent: Sent[] = [];
  readonly #open = new Set<Promise<void>>();
  readonly #sources: readonly (readonly [name: string, next: () => Promise<bigint>])[];
  #timer: NodeJS.Timeout | undefined;

  constructor(fleet: Fleet, clients: ReadonlyMap<FleetServer, IdClient>, tag: string) {
    this.#sources = fleet.servers.flatMap((server) => {
      const sdk: IdTag | undefined = clients.get(server)?.tag(tag);
      return [
        [server.name, () => server.api.id(tag, DEADLINE_MS)] as const,
        [
          `SDK of ${server.name}`,
          async () => {
            if (sdk === undefined) throw new Error("no client");
            return sdk.next({ deadlineMs: DEADLINE_MS });
          },
        ] as const,
      ];
    });
  }

  start(): void {
    this.#timer = setInterval(() => {
      for (const [by, next] of this.#sources) this.#call(by, next);
    }, CALL_EVERY_MS);
  }

  /** Stops asking, and waits for what was asked. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#open);
  }

  #call(by: string, next: () => Promise<bigint>): void {
    const sent: Sent = { by, atMs: Date.now(), id: undefined };
    this.sent.push(sent);
    const call = answerTo(sent, next).finally(() => this.#open.delete(call));
    this.#open.add(call);
  }
}

async function answerTo(sent: Sent, next: () => Promise<bigint>): Promise<void> {
  try {
    sent.id = await next();
  } catch {
    // A refusal; what matters is what is answered.
  }
}

/** Until every server has answered a call that was sent since then, and every SDK. */
export async function allAnswer(callers: Callers, fleet: Fleet, sinceMs = 0): Promise<void> {
  const names = fleet.servers.flatMap(({ name }) => [name, `SDK of ${name}`]);
  const answered = (): boolean => {
    const found = callers.sent.filter(({ id, atMs }) => id !== undefined && atMs >= sinceMs);
    const by = new Set(found.map((call) => call.by));
    return names.every((name) => by.has(name));
  };
  await until("every server and every SDK answers", answered, { withinMs: 30_000, everyMs: 20 });
}
