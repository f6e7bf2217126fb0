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
import { createGregorianState, gregorianUuid, nextGregorian } from "./gregorian-state.ts";
import {
  createObjectIdState,
  machineProcess,
  nextObjectId,
  type ObjectIdState,
} from "./object-id-state.ts";
import { pooledRandom } from "./random-pool.ts";
import { hexOf, uuidBytes, uuidText } from "./text.ts";
import { createUnixState, nextUnixUuid } from "./unix-state.ts";

/** What is passed in instead of randomness and a clock of its own. */
export interface TextIdPorts {
  /** That many random bytes, of a source fit for secrets. */
  readonly random: (count: number) => Uint8Array;
  /** The wall clock, milliseconds since 1970. */
  readonly now: () => number;
}

/** What UUIDs need besides. */
export interface UuidPorts extends TextIdPorts {
  /** A UUID of version 4, of a source fit for secrets. */
  readonly randomUuid: () => string;
  /** The hash of bytes with text in UTF-8 behind them, for versions 3 (MD5) and 5 (SHA-1). */
  readonly digest: (algorithm: "md5" | "sha1", bytes: Uint8Array, text: string) => Uint8Array;
}

/**
 * Makes UUIDs of every version. Versions 1, 2 and 6 hold a random node with the multicast bit, never the address of a network
 * card. Those of versions 6 and 7 increase within one maker.
 */
export class UuidMaker {
  readonly #ports: UuidPorts;
  readonly #random: (count: number) => Uint8Array;
  readonly #time = createGregorianState();
  readonly #unix = createUnixState();
  readonly #clockseq: number;
  readonly #node: Uint8Array;
  readonly #dce: DceState;

  constructor(ports: UuidPorts) {
    this.#ports = ports;
    this.#random = pooledRandom(ports.random);
    const [high = 0, low = 0, ...node] = ports.random(8);
    this.#clockseq = ((high << 8) | low) & 0x3fff;
    this.#node = Uint8Array.from(node);
    this.#node[0] = (this.#node[0] ?? 0) | 1;
    this.#dce = createDceState(ports.random);
  }

  /** Time, clock sequence, random node. */
  v1(): string {
    return this.#gregorian(1);
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
    return this.#named(3, name, namespace);
  }

  /** Random. */
  v4(): string {
    return this.#ports.randomUuid();
  }

  /** SHA-1 of a name within a namespace; otherwise like v3. */
  v5(name: string, namespace: string): string {
    return this.#named(5, name, namespace);
  }

  /** Version 1 in an order that sorts; increases within this maker. */
  v6(): string {
    return this.#gregorian(6);
  }

  /** Milliseconds, a counter and random bits; increases within this maker. */
  v7(): string {
    return uuidText(nextUnixUuid(this.#unix, Math.floor(this.#ports.now()), this.#random));
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

  #gregorian(version: 1 | 6): string {
    nextGregorian(this.#time, Math.floor(this.#ports.now()));
    return uuidText(gregorianUuid(version, this.#time, this.#clockseq, this.#node));
  }

  #named(version: 3 | 5, name: string, namespace: string): string {
    // Half a surrogate pair has no UTF-8, so two such names would become the same bytes.
    if (!name.isWellFormed()) throw invalidField("name", "must be text without lone surrogates");
    const uuid = namespaceOf(namespace);
    if (uuid === undefined) {
      throw invalidField("namespace", "must be a UUID, or one of DNS, URL, OID, X500");
    }
    const hash = this.#ports.digest(version === 3 ? "md5" : "sha1", uuidBytes(uuid), name);
    const bytes = Uint8Array.from(hash.subarray(0, 16));
    bytes[6] = (version << 4) | ((bytes[6] ?? 0) & 0x0f);
    bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f);
    return uuidText(bytes);
  }
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
