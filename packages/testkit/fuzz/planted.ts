// A fault of each class that the judges have to notice, planted into a server.
import { IdmintError, SegmentBuffer } from "@idmint/core";
import type { Authorise } from "../../server/src/api/method.ts";
import type { Planted } from "./world.ts";

interface PlantedFault {
  /** What a finding says. */
  readonly noticed: RegExp;
  readonly plant: () => Planted;
}

/** Does it for names with a letter that no name has, and for nothing else. */
function onOddName(does: () => void | Promise<void>): Planted {
  const authorise: Authorise = (_, __, request) => {
    const { tag, name } = request as { readonly tag?: unknown; readonly name?: unknown };
    return [tag, name].some((one) => String(one).includes("\0")) ? does() : undefined;
  };
  return { authorise };
}

const VICTIMS = "/idmint.v1.IdService/GenerateId";

/** Every call finds a fault of the store that is of somebody else's making. */
function failingVictim(): Planted {
  let isHurt = false;
  const { authorise: hurt } = onOddName(() => void (isHurt = true));
  return {
    authorise: (context, path, request, rule) => {
      if (isHurt && path === VICTIMS) throw new IdmintError("STORE_UNAVAILABLE", "planted");
      return hurt?.(context, path, request, rule);
    },
  };
}

/** Buffers give each tenth id twice. */
function repeatingBuffers(): Planted {
  // oxlint-disable-next-line typescript/unbound-method -- It is called with its buffer.
  const { next } = SegmentBuffer.prototype;
  const last = new WeakMap<object, bigint>();
  let calls = 0;
  SegmentBuffer.prototype.next = function repeated(call) {
    const [before, id] = [last.get(this), next.call(this, call)];
    if (typeof id === "bigint") last.set(this, id);
    return before !== undefined && ++calls % 10 === 0 ? before : id;
  };
  return { undo: () => void (SegmentBuffer.prototype.next = next) };
}

export const PLANTED = {
  "a fault of the code": {
    noticed: /^INTERNAL|internal-error/,
    plant: () =>
      onOddName(() => {
        throw new TypeError("planted");
      }),
  },
  "a rejection that nobody handles": {
    noticed: /nobody caught.*planted/s,
    plant: () => onOddName(() => void Promise.reject(new Error("planted"))),
  },
  "a throw that ends the process": {
    noticed: /nobody caught.*planted/s,
    plant: () =>
      onOddName(() => {
        setImmediate(() => {
          throw new Error("planted");
        });
      }),
  },
  "a call that does not end": {
    noticed: /no end after|DEADLINE_EXCEEDED|took \d+ ms/,
    plant: () => onOddName(() => new Promise(() => undefined)),
  },
  "memory that is kept": {
    noticed: /MB more after/,
    plant: () => {
      const kept: Buffer[] = [];
      const authorise = (): void => void kept.push(Buffer.alloc(64 * 1_024, 1));
      return { authorise };
    },
  },
  "a refusal that names no field": {
    noticed: /without a field/,
    plant: () =>
      onOddName(() => {
        throw new IdmintError("INVALID_NAME", "planted");
      }),
  },
  "an error of somebody else": { noticed: /the victim: 14/, plant: failingVictim },
  "an id twice": { noticed: /the victim: \d+ twice/, plant: repeatingBuffers },
  // Last of all, since it ends the process.
  "a loop without an end": {
    noticed: /stands still/,
    plant: () =>
      onOddName(() => {
        for (;;);
      }),
  },
} as const satisfies Record<string, PlantedFault>;

export type PlantedName = keyof typeof PLANTED;
