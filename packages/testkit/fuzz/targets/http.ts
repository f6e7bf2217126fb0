// Every RPC over HTTP, as JSON and as bytes, in requests with something wrong about them.
import type { DescMethod } from "@bufbuild/protobuf";
import { CODE_OF_REASON } from "@idmint/core";
import type { Dice } from "../../sim/world/random.ts";
import { type RawConnection, rawConnection } from "../../src/callers/raw-connection.ts";
import { type Drawn, drawRequests } from "../draw/http.ts";
import { METHODS } from "../draw/messages.ts";
import type { Target } from "../target.ts";
import { type World, waited } from "../world.ts";

type Input = Omit<Drawn, "parts"> & { readonly parts: readonly string[] };

const AT_ONCE = 24;
/** Looks after which an answer of a request that came whole is here; of others nobody knows whether they go on. */
const PATIENCE = 40;
const CLOSED_WITHIN = 3_000;
const WITHIN_MS = 90_000;
/** So often somebody looks whether what lay in another request's body was taken for one. */
const LOOK_EVERY = 500;
const REASONS: Readonly<Partial<Record<string, string>>> = CODE_OF_REASON;

/** They would stop everybody, as they should. */
const methods: readonly (readonly [string, DescMethod])[] = [...METHODS].filter(
  ([path]) => !/\/(?:StopIssuing|DrainNode)$/.test(path),
);

function draw(dice: Dice): string {
  const { parts, ...others } = drawRequests(dice, dice.pick(methods));
  return JSON.stringify({ ...others, parts: parts.map((part) => part.toString("latin1")) });
}

interface Refusal {
  /** Leaf's and Tinyid's servers have it, and no code. */
  readonly status?: number;
  readonly code?: string;
  readonly message?: string;
  readonly details?: readonly { readonly debug?: { readonly reason?: string } }[];
}

function faultOfRefusal(status: number, body: string): string | undefined {
  const told = `HTTP ${status}: ${body.slice(0, 300)}`;
  let refusal: Refusal;
  try {
    refusal = JSON.parse(body) as Refusal;
  } catch {
    return `without JSON, ${told}`;
  }
  const { code, message = "", details } = refusal;
  if (refusal.status === status && code === undefined) return undefined;
  // What probes say of a server that is not ready has no code.
  if (status === 503 && code === undefined) return undefined;
  const reason = details?.[0]?.debug?.reason;
  const name = code === "canceled" ? "CANCELLED" : code?.toUpperCase();
  const isOfTable = reason === undefined ? code !== "internal" : REASONS[reason] === name;
  return isOfTable && message !== "" && name !== undefined ? undefined : told;
}

/** Why what came is not as it should be; undefined: it is. */
function faultOf(input: Input, raw: RawConnection): string | undefined {
  const answers = raw.answersFrom(0);
  if (answers.length > input.requests) return `${answers.length} answers`;
  for (const { status, body } of answers) {
    if (status === 200 && input.isFromElsewhere) return "an answer for a page of another origin";
    const fault = status < 400 ? undefined : faultOfRefusal(status, body);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** Looks some 20 ms apart, so that a machine that stands still for a while takes none away. */
async function within(looks: number, holds: () => boolean): Promise<boolean> {
  for (let look = 0; !holds(); look++) {
    if (look > looks) return false;
    await waited(Math.min(20, look));
  }
  return true;
}

/** Sends one, and waits for all its answers, or for the end of the connection. */
async function exchange(raw: RawConnection, input: Input): Promise<string | undefined> {
  for (const [at, part] of input.parts.entries()) {
    if (at > 0) await waited(1);
    if (!raw.socket.destroyed) raw.socket.write(Buffer.from(part, "latin1"));
  }
  const isOver = (): boolean =>
    raw.isClosed() || (!input.isHead && raw.answersFrom(0).length >= input.requests);
  await within(PATIENCE, isOver);
  if (!isOver()) {
    raw.socket.end();
    if (!(await within(CLOSED_WITHIN, raw.isClosed))) return "it is never closed";
  }
  return input.isHead ? undefined : faultOf(input, raw);
}

export function httpTarget(world: World): Target {
  let sent = 0;
  const lookForSmuggled = async (): Promise<string | undefined> => {
    const url = `http://${world.httpAddress}/idmint.v1.TagService/GetTag`;
    const headers = { "content-type": "application/json" };
    const response = await fetch(url, { method: "POST", headers, body: '{"name":"smuggled"}' });
    const { tag } = (await response.json()) as { tag?: { floor?: string } };
    return (tag?.floor ?? "0") === "0" ? undefined : "the body of a request was taken for another";
  };
  return {
    draw,
    run: async (text) => {
      const raw = rawConnection(world.httpAddress);
      try {
        const fault = await exchange(raw, JSON.parse(text) as Input);
        return fault ?? (sent++ % LOOK_EVERY === 0 ? await lookForSmuggled() : undefined);
      } finally {
        raw.socket.destroy();
      }
    },
    faults: world.faults,
    atOnce: AT_ONCE,
    withinMs: WITHIN_MS,
    growMb: 64,
    close: world.close,
  };
}
