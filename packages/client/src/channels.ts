import { channel, tracingChannel } from "node:diagnostics_channel";
import type { IdClientEvent } from "./events.ts";

// What others may listen to in the process, without being told of any client. Channels that nobody listens to cost a
// comparison for each request, and nothing for each id. Their names and messages are documented in docs/observability.md.

/** One request for ids, or for the right to make them, to one server. */
export interface LoadMessage {
  /** As on the wire: `idmint.v1.IdService/AllocateSegment`. */
  readonly method: string;
  readonly tag: string;
  /** host:port. */
  readonly endpoint: string;
  /** Goes with the request as metadata. Who hears of its start may add to it. */
  readonly headers: Record<string, string>;
  /** Why it failed: an IdmintError. */
  readonly error?: unknown;
}

/** Whatever the client reports to `onEvent`. */
export interface EventMessage {
  readonly event: IdClientEvent;
}

/** What a client has in memory, about once a second; without tags when it is closed. */
export interface StockMessage {
  /** Tells the clients of a process from each other. */
  readonly client: number;
  readonly tags: readonly TagStock[];
}

export interface TagStock {
  readonly tag: string;
  /** Ids in memory that were not issued. */
  readonly ready: number;
  /** Ids of the segments in memory, the issued ones included. */
  readonly held: number;
  /** Calls that wait. */
  readonly waiting: number;
}

const loads = tracingChannel<unknown, LoadMessage>("idmint:load");
const events = channel("idmint:event");
const stocks = channel("idmint:stock");

/** Sends a request, and tells of it whoever listens. */
export function announced<Answer>(
  request: Pick<LoadMessage, "method" | "tag" | "endpoint">,
  send: (headers: Readonly<Record<string, string>> | undefined) => Promise<Answer>,
): Promise<Answer> {
  if (!loads.hasSubscribers) return send(undefined);
  const message: LoadMessage = { ...request, headers: {} };
  return loads.tracePromise(() => send(message.headers), message);
}

export function tellEvent(event: IdClientEvent): void {
  if (events.hasSubscribers) events.publish({ event } satisfies EventMessage);
}

/** `tags` is asked only if somebody listens. */
export function tellStock(client: number, tags: () => readonly TagStock[]): void {
  if (stocks.hasSubscribers) stocks.publish({ client, tags: tags() } satisfies StockMessage);
}
