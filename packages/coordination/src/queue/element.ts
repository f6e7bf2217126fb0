import type { Message } from "./api.ts";

/**
 * What stands in Redis' lists for a message: `returned:id:data`, where `returned` says how often it was put back. Two
 * messages never have the same element, since their ids differ, whatever their data; and an element that was put back
 * differs from what its earlier holder knows. So removing by value removes exactly the delivery that is meant.
 */
export function elementOf(id: string, data: string): string {
  return `0:${id}:${data}`;
}

const ELEMENT = /^(\d{1,15}):([^:]{1,64}):(.*)$/s;

/** The message of an element; undefined when something else than a queue wrote it. */
export function messageOf(element: string): Message | undefined {
  const [, returned, id, data] = ELEMENT.exec(element) ?? [];
  if (returned === undefined || id === undefined || data === undefined) return undefined;
  return { id, data, deliveries: Number(returned) + 1 };
}
