import { randomUUID } from "node:crypto";
import { checkData } from "../checks.ts";
import type { Signal } from "./api.ts";
import type { Place } from "./count-state.ts";
import { MAX_BYTES } from "./options.ts";

/** A signal on its way: `1:id:data`, behind `2:previous:count:` when it is counted. */
export interface Envelope {
  readonly signal: Signal;
  /** Where it stands among those of its name, when they are counted. */
  readonly place: Place | undefined;
}

/** The text of a signal without a count. */
export function envelopeOf(data: unknown, maxBytes: number): string {
  return `1:${randomUUID()}:${checkData(data, maxBytes)}`;
}

const PLAIN = /^1:([^:]{1,64}):(.*)$/s;
const COUNTED = /^2:(\d{1,16}):(\d{1,16}):(1:.*)$/s;
const MAX_LENGTH = MAX_BYTES + 128;

/** What a text carries; undefined when something else sent it. */
export function envelopeIn(name: string, text: string): Envelope | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const [, previous, count, rest] = COUNTED.exec(text) ?? [];
  const [, id, data] = PLAIN.exec(rest ?? text) ?? [];
  if (id === undefined || data === undefined) return undefined;
  const place =
    count === undefined ? undefined : { count: Number(count), previous: Number(previous) };
  return { signal: { name, id, data }, place };
}
