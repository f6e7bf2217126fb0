import { invalidField } from "../errors.ts";
import type { ObjectIdKind } from "../kinds/object-id.ts";
import type { UuidKind } from "../kinds/uuid.ts";
import { namespaceOf } from "./decode.ts";
import {
  createDceState,
  DCE_DOMAINS,
  type DceDomain,
  type DceState,
  nextDceUuid,
} from "./dce-state.ts";
import { createGregorianState, nextGregorian } from "./gregorian-state.ts";
import {
  createObjectIdState,
  machineProcess,
  nextObjectId,
  type ObjectIdState,
} from "./object-id-state.ts";
import { hexOf, uuidText } from "./text.ts";

/** What is passed in instead of randomness and a clock of its own. */
export interface TextIdPorts {
  /** That many random bytes, of a source fit for secrets. */
  readonly random: (count: number) => Uint8Array;
  /** The wall clock, milliseconds since 1970. */
  readonly now: () => number;
}

/** Time, clock sequence and node of a UUID of version 1 or 6. */
export interface GregorianOptions {
  msecs: number;
  nsecs: number;
  clockseq: number;
  node: Uint8Array;
}

/** The versions of RFC 9562 that a library makes; npm's uuid is one. */
export interface UuidLibrary {
  v1(options: GregorianOptions): string;
  v3(name: string, namespace: string): string;
  v4(): string;
  v5(name: string, namespace: string): string;
  v6(options: GregorianOptions): string;
  /** Increasing within the process. */
  v7(): string;
}

/**
 * Makes UUIDs of every version. Versions 1, 2 and 6 hold a random node with the multicast bit, never the address of a network
 * card. Those of versions 6 and 7 increase within one maker (7: within the process).
 */
export class UuidMaker {
  readonly #ports: TextIdPorts;
  readonly #library: UuidLibrary;
  readonly #time = createGregorianState();
  readonly #clockseq: number;
  readonly #node: Uint8Array;
  readonly #dce: DceState;

  constructor(library: UuidLibrary, ports: TextIdPorts) {
    this.#library = library;
    this.#ports = ports;
    const [high = 0, low = 0, ...node] = ports.random(8);
    this.#clockseq = ((high << 8) | low) & 0x3fff;
    this.#node = Uint8Array.from(node);
    this.#node[0] = (this.#node[0] ?? 0) | 1;
    this.#dce = createDceState(ports.random);
  }

  /** Time, clock sequence, random node. */
  v1(): string {
    return this.#library.v1(this.#nextTime());
  }

  /** DCE: about seven minutes of time, and the number of a person, group or organization, 0 … 2^32 − 1. */
  v2(domain: DceDomain, number: number): string {
    if (!Object.hasOwn(DCE_DOMAINS, domain)) {
      const names = Object.keys(DCE_DOMAINS).join(", ");
      throw invalidField("domain", `must be one of ${names}, got "${domain}"`);
    }
    if (!Number.isInteger(number) || number < 0 || number >= 2 ** 32)
      throw invalidField("number", `must be an integer, 0 to ${2 ** 32 - 1}, got ${number}`);
    const { random, now } = this.#ports;
    return uuidText(nextDceUuid(this.#dce, domain, number, now(), random));
  }

  /**
   * MD5 of a name within a namespace: the same for the same name. The namespace is a UUID, or DNS, URL, OID or X500.
   * INVALID_ARGUMENT for another one, and for a name that is no text of whole characters.
   */
  v3(name: string, namespace: string): string {
    return this.#library.v3(...named(name, namespace));
  }

  /** Random. */
  v4(): string {
    return this.#library.v4();
  }

  /** SHA-1 of a name within a namespace; otherwise like v3. */
  v5(name: string, namespace: string): string {
    return this.#library.v5(...named(name, namespace));
  }

  /** Version 1 in an order that sorts; increases within this maker. */
  v6(): string {
    return this.#library.v6(this.#nextTime());
  }

  /** Milliseconds and random bits; increases within the process. */
  v7(): string {
    return this.#library.v7();
  }

  /** The next UUID of a tag; versions 3 and 5 are made of `name`, the others leave it aside. */
  next(kind: UuidKind, name = ""): string {
    if (kind.version === 2) return this.v2(kind.domain, kind.number);
    if (kind.version === 3) return this.v3(name, kind.namespace);
    if (kind.version === 5) return this.v5(name, kind.namespace);
    if (kind.version === 1) return this.v1();
    if (kind.version === 4) return this.v4();
    return kind.version === 6 ? this.v6() : this.v7();
  }

  #nextTime(): GregorianOptions {
    nextGregorian(this.#time, this.#ports.now());
    const { ms, steps } = this.#time;
    return { msecs: ms, nsecs: steps, clockseq: this.#clockseq, node: this.#node };
  }
}

function named(name: string, namespace: string): [name: string, namespace: string] {
  // Half a surrogate pair has no UTF-8, so two such names would become the same bytes.
  if (!name.isWellFormed()) throw invalidField("name", "must be text without lone surrogates");
  const uuid = namespaceOf(namespace);
  if (uuid !== undefined) return [name, uuid];
  throw invalidField("namespace", "must be a UUID, or one of DNS, URL, OID, X500");
}

/** Makes ObjectIds, which increase within one maker of a variant. */
export class ObjectIdMaker {
  readonly #ports: TextIdPorts;
  readonly #classic: ObjectIdState;
  readonly #machineProcess: ObjectIdState;

  /** `machine` is three bytes that tell machines apart, `pid` the number of the process. */
  constructor(ports: TextIdPorts, machine: Uint8Array, pid: number) {
    this.#ports = ports;
    this.#classic = createObjectIdState(ports.random(5));
    this.#machineProcess = createObjectIdState(machineProcess(machine, pid));
  }

  next(variant: ObjectIdKind["variant"]): string {
    const state = variant === "CLASSIC" ? this.#classic : this.#machineProcess;
    return hexOf(nextObjectId(state, this.#ports.now(), this.#ports.random));
  }
}
