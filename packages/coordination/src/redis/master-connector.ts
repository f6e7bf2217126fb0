// Leads a connection of ioredis to the master that its Sentinels name, and away from one that they name no more.
import { connect as connectTcp, Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { AbstractConnector, type RedisOptions } from "ioredis";
import {
  addressText,
  agreedMaster,
  disagreementText,
  type RedisAddress,
  wrongSentinelText,
} from "./sentinel-vote.ts";
import { Sentinels } from "./sentinels.ts";

/** How often the Sentinels are asked while there is a connection, besides when one of them tells of a new master. */
const LOOK_EVERY_MS = 1_000;
/** How long a connection that is given up may take to end in order. */
const DISCONNECT_MS = 250;
/** The code of the error that tells of a listed Sentinel that is none. */
export const NOT_A_SENTINEL = "NOT_A_SENTINEL";

type Tell = (type: string, error: Error) => void;

/**
 * ioredis' own connector believes the first Sentinel that answers. This one wants a majority (`sentinel-vote.ts`), and
 * leaves a master that still answers as soon as a majority names another one. Without a majority an open connection
 * stays: Sentinels that are gone promote nobody.
 */
export class MasterConnector extends AbstractConnector {
  readonly #options: RedisOptions;
  #sentinels: Sentinels | undefined;
  #tell: Tell = () => undefined;
  #master = "";
  /** Looks whether the present connection leads to the right master still. */
  #look: () => void = () => undefined;

  /** ioredis passes the options of the connection. */
  constructor(options: unknown) {
    super(DISCONNECT_MS);
    this.#options = options as RedisOptions;
  }

  /** A connection that has ended already makes ioredis try again, by the rules of any other that fails. */
  override async connect(tell: Tell): Promise<Socket> {
    this.connecting = true;
    this.#tell = tell;
    const sentinels = (this.#sentinels ??= new Sentinels(this.#options, () => this.#look()));
    const votes = await sentinels.ask();
    const wrong = wrongSentinelText(votes);
    if (wrong !== undefined && this.connecting) {
      tell("error", Object.assign(new Error(wrong), { code: NOT_A_SENTINEL }));
    }
    const master = agreedMaster(votes);
    if (!this.connecting || master === undefined) {
      this.firstError = new Error(disagreementText(this.#options.name ?? "", votes));
      return new Socket().destroy();
    }
    const { tls } = this.#options;
    const stream = tls === undefined ? connectTcp(master) : connectTls({ ...master, ...tls });
    this.stream = stream;
    this.#master = addressText(master);
    stream.once("error", (error: Error) => {
      this.firstError = error;
    });
    this.#follow(stream, sentinels, master);
    return stream;
  }

  /** ioredis asks this once a connection, with what INFO says. */
  override check({ role }: { readonly role?: string }): boolean {
    if (role === undefined || role === "master") return true;
    const text = `its Sentinels name ${this.#master}, which is a replica: a fail-over is under way, or was not completed`;
    this.#tell("error", new Error(text));
    return false;
  }

  override disconnect(): void {
    this.#sentinels?.close();
    this.#sentinels = undefined;
    super.disconnect();
  }

  #follow(stream: Socket, sentinels: Sentinels, master: RedisAddress): void {
    let timer: NodeJS.Timeout | undefined;
    const look = async (): Promise<void> => {
      const named = agreedMaster(await sentinels.ask());
      if (stream.destroyed) return;
      if (named !== undefined && addressText(named) !== addressText(master)) {
        // Not in order: the old master may hang. What is in flight is lost, as with any connection that breaks.
        stream.destroy();
      } else {
        clearTimeout(timer);
        timer = setTimeout(this.#look, LOOK_EVERY_MS);
      }
    };
    this.#look = () => void look();
    timer = setTimeout(this.#look, LOOK_EVERY_MS);
    stream.once("close", () => clearTimeout(timer));
  }
}
