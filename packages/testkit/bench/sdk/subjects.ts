// What is measured inside one process: each subject makes one id a call. Every subject runs in a process of its own, so
// that the compiler sees nobody else's types.
import type { IdTag } from "@idmint/client";

/** How a subject's ids are taken: the loop that measures it. */
type Kind = "number" | "bigint" | "value" | "string" | "awaited";

/** One way to make an id. */
export interface Subject {
  readonly kind: Kind;
  /** `warm` brings ids into memory, outside of the measured time. */
  readonly make: (address: string, tag: string) => Promise<Made>;
}

export interface Made {
  readonly next: () => unknown;
  readonly warm?: () => Promise<void>;
  readonly close?: () => Promise<void>;
}

/** Ids in one segment: more than one measured slice takes, so that no load falls into it. */
export const SEGMENT = 10_000_000;

async function idmint(
  address: string,
  name: string,
  nextOf: (tag: IdTag) => () => unknown,
): Promise<Made> {
  // Loaded only where it is measured: most subjects do without, and start the faster.
  const { createIdClient } = await import("@idmint/client");
  const client = createIdClient({ address, min: SEGMENT, max: SEGMENT, rpcDeadlineMs: 20_000 });
  const tag = client.tag(name);
  return {
    next: nextOf(tag),
    warm: () => tag.warm({ deadlineMs: 30_000 }),
    close: () => client.close(),
  };
}

/** Ours, with the tag's methods as users call them. */
const ours: Readonly<Record<string, Subject>> = {
  nextNumberSync: {
    kind: "number",
    make: (address, name) => idmint(address, name, (tag) => () => tag.nextNumberSync()),
  },
  nextSync: {
    kind: "bigint",
    make: (address, name) => idmint(address, name, (tag) => () => tag.nextSync()),
  },
  next: {
    kind: "awaited",
    make: (address, name) => idmint(address, name, (tag) => () => tag.next()),
  },
  nextStringSync: {
    kind: "string",
    make: (address, name) => idmint(address, name, (tag) => () => tag.nextStringSync()),
  },
  "String(nextSync)": {
    kind: "string",
    make: (address, name) => idmint(address, name, (tag) => () => String(tag.nextSync())),
  },
};

/** The least that the same kind of id can cost. */
const bare: Readonly<Record<string, Subject>> = {
  "n++": {
    kind: "number",
    make: async () => {
      let n = 1;
      return { next: () => n++ };
    },
  },
  "BigInt(n++)": {
    kind: "bigint",
    make: async () => {
      let n = 1;
      return { next: () => BigInt(n++) };
    },
  },
  "await field": {
    kind: "awaited",
    make: async () => {
      const holder = { field: 1n };
      return { next: async () => holder.field };
    },
  },
};

/** What npm has; `text` where the id comes as something else than a string and can be made one. */
const npm: Readonly<Record<string, () => Promise<{ next: () => unknown; text?: () => string }>>> = {
  hyperid: async () => {
    const { default: hyperid } = await import("hyperid");
    const next = hyperid();
    return { next: () => next() };
  },
  nanoid: async () => {
    const { nanoid } = await import("nanoid");
    return { next: () => nanoid() };
  },
  "bson ObjectId": async () => {
    const { ObjectId } = await import("bson");
    return { next: () => new ObjectId(), text: () => new ObjectId().toHexString() };
  },
  "crypto.randomUUID": async () => {
    const { randomUUID } = await import("node:crypto");
    return { next: () => randomUUID() };
  },
  "uuid v4": async () => {
    const { v4 } = await import("uuid");
    return { next: () => v4() };
  },
  "uuid v7": async () => {
    const { v7 } = await import("uuid");
    return { next: () => v7() };
  },
  ulid: async () => {
    const { ulid } = await import("ulid");
    return { next: () => ulid() };
  },
  "ulid, monotonic": async () => {
    const { monotonicFactory } = await import("ulid");
    const next = monotonicFactory();
    return { next: () => next() };
  },
  cuid2: async () => {
    const { createId } = await import("@paralleldrive/cuid2");
    return { next: () => createId() };
  },
  "@sapphire/snowflake": async () => {
    const { Snowflake } = await import("@sapphire/snowflake");
    const snowflake = new Snowflake(1_700_000_000_000n);
    return { next: () => snowflake.generate(), text: () => String(snowflake.generate()) };
  },
  "nodejs-snowflake": async () => {
    const { Snowflake } = await import("nodejs-snowflake");
    const snowflake = new Snowflake();
    return { next: () => snowflake.getUniqueID(), text: () => String(snowflake.getUniqueID()) };
  },
  "flake-idgen": async () => {
    const { default: FlakeId } = await import("flake-idgen");
    const flake = new FlakeId();
    // It has 4,096 ids a millisecond and throws beyond; who needs more asks again until the next one.
    const next = (): Buffer => {
      for (;;) {
        try {
          return flake.next();
        } catch {
          // The millisecond is used up.
        }
      }
    };
    return { next, text: () => next().toString("hex") };
  },
  "xid-js": async () => {
    const { default: xid } = await import("xid-js");
    return { next: () => xid.next() };
  },
  ksuid: async () => {
    const { default: KSUID } = await import("ksuid");
    return { next: () => KSUID.randomSync(), text: () => KSUID.randomSync().string };
  },
  "typeid-js": async () => {
    const { typeidUnboxed } = await import("typeid-js");
    return { next: () => typeidUnboxed("order") };
  },
};

/** Names of npm's generators, in the order of the issue. */
export const npmNames: readonly string[] = Object.keys(npm);

/** Finds a subject: `ours:next`, `bare:n++`, `npm:ulid`, or `text:ulid` for the id as a string. */
export function subjectOf(name: string): Subject {
  const [family = "", ...rest] = name.split(":");
  const member = rest.join(":");
  const found = family === "ours" ? ours[member] : family === "bare" ? bare[member] : undefined;
  if (found !== undefined) return found;
  const generator = npm[member];
  if (generator === undefined) throw new Error(`no subject ${name}`);
  if (family === "npm") return { kind: "value", make: generator };
  return {
    kind: "string",
    make: async () => {
      const { next, text } = await generator();
      return { next: text ?? next };
    },
  };
}
