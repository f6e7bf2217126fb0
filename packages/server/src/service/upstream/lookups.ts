import type { IdmintError } from "@idmint/core";
import type { Patience } from "../call.ts";
import { Lookup, type LookupPorts } from "./lookup.ts";

/** What the directory needs of lookups. */
export type Lookups = Pick<
  Lookup,
  "find" | "overtaken" | "disappeared" | "forgetAll" | "refuseAll"
>;

/**
 * Lookups of a store in several parts: each part has its own, so that names of one that does not answer keep no others
 * waiting. There are as many as the store has parts.
 */
export class GroupedLookups implements Lookups {
  readonly #ports: LookupPorts;
  readonly #groupOf: (tag: string) => string;
  readonly #byGroup = new Map<string, Lookup>();

  constructor(ports: LookupPorts, groupOf: (tag: string) => string) {
    this.#ports = ports;
    this.#groupOf = groupOf;
  }

  async find(name: string, call: Patience): Promise<void> {
    const group = this.#groupOf(name);
    let lookup = this.#byGroup.get(group);
    if (lookup === undefined) {
      lookup = new Lookup(this.#ports);
      this.#byGroup.set(group, lookup);
    }
    return lookup.find(name, call);
  }

  /** All are told: a tag may have been asked for where it was before. */
  overtaken(name: string): void {
    for (const lookup of this.#byGroup.values()) lookup.overtaken(name);
  }

  disappeared(name: string): void {
    for (const lookup of this.#byGroup.values()) lookup.disappeared(name);
  }

  forgetAll(): void {
    for (const lookup of this.#byGroup.values()) lookup.forgetAll();
  }

  refuseAll(error: IdmintError): void {
    for (const lookup of this.#byGroup.values()) lookup.refuseAll(error);
  }
}
