// Callers of gRPC by several libraries. All do the same steps, so that one table of cases serves them all.
import { status } from "@grpc/grpc-js";
import { Child } from "../fleet/child.ts";
import { until } from "../fleet/until.ts";

/** What a caller does: calls of one method, all at once. */
export interface Step {
  /** As `package.Service/Method`. */
  readonly method: string;
  /** The one message of all of them. */
  readonly message: Uint8Array;
  readonly calls: number;
  /** One call with so many messages, which ends when as many were answered. Default: false. */
  readonly isStream?: boolean;
  /** Default: false. */
  readonly gzip?: boolean;
  /** Of a header that it sends with each call. Default: 0. */
  readonly metadataBytes?: number;
  /** Default: 60,000 ms. */
  readonly timeoutMs?: number;
  /** Cancels them after so long. Default: 0, not at all. */
  readonly cancelAfterMs?: number;
  /** Calls again and again for so long, so many times at once. Default: 0, each once. */
  readonly forMs?: number;
  /** With `forMs`: how often it makes a call again that was answered UNAVAILABLE, at once. tonic does not. Default: 0. */
  readonly retries?: number;
}

/** What came of a step. */
export interface Seen {
  readonly answers: readonly Uint8Array[];
  /** How many calls ended with which status. */
  readonly ends: Readonly<Record<string, number>>;
  /** What those said that did not end well. */
  readonly texts: readonly string[];
  /** How many calls were made again. */
  readonly retried: number;
}

export interface Target {
  /** As `host:port`. */
  readonly address: string;
  /** File of the authority; with it the connection has TLS. */
  readonly ca: string | undefined;
  /** Default: 0, no keepalive. */
  readonly keepaliveMs?: number;
}

/** Steps under way, over one connection of their own. */
interface Run {
  /** Waits until so many steps have begun. */
  begun(steps: number): Promise<void>;
  readonly seen: Promise<readonly Seen[]>;
}

export interface Caller {
  readonly name: string;
  /** How calls end that reached no handler, so that they may be made again. */
  readonly retriable: readonly string[];
  begin(target: Target, steps: readonly Step[]): Run;
}

/** What gRPC says of calls that reached no handler. */
export const UNSERVED: readonly string[] = ["UNAVAILABLE"];

/** A step as it is sent to a caller, with nothing left out. */
const PLAIN = {
  isStream: false,
  gzip: false,
  metadataBytes: 0,
  timeoutMs: 60_000,
  cancelAfterMs: 0,
  forMs: 0,
  retries: 0,
};

export type WholeStep = Required<Step>;

export function wholeStep(step: Step): WholeStep {
  return { ...PLAIN, ...step };
}

/** Longest time of a step on a machine that does much else. */
const STEP_MS = 120_000;

/** A caller that is a program: it takes its steps as JSON, and prints a line before and a line after each. */
export function programCaller(
  name: string,
  words: readonly string[],
  retriable: readonly string[] = UNSERVED,
): Caller {
  return {
    name,
    retriable,
    begin: ({ address, ca = "", keepaliveMs = 0 }, steps) => {
      const config = {
        address,
        ca,
        keepaliveMs,
        steps: steps.map((step) => ({
          ...wholeStep(step),
          message: Buffer.from(step.message).toString("hex"),
        })),
      };
      const child = new Child(words, [JSON.stringify(config)], { name });
      const lines = (word: string): readonly string[] =>
        child.stdout.split("\n").filter((line) => line.startsWith(word));
      const withinMs = STEP_MS * steps.length;
      return {
        begun: async (count) => {
          const isBegun = (): boolean => lines("begun").length >= count || child.exit !== undefined;
          await until(`${name} begins`, isBegun, { withinMs });
        },
        seen: (async () => {
          const { code } = await child.waitForEnd(withinMs);
          const seen = lines("seen ");
          if (code !== 0 || seen.length !== steps.length) throw new Error(child.describe());
          return seen.map((line) => seenOf(line.slice("seen ".length)));
        })(),
      };
    },
  };
}

function seenOf(json: string): Seen {
  const {
    answers,
    ends,
    texts,
    retried = 0,
  } = JSON.parse(json) as {
    answers: readonly string[] | null;
    ends: Readonly<Record<string, number>>;
    texts: readonly string[];
    retried?: number;
  };
  return {
    answers: (answers ?? []).map((hex) => Buffer.from(hex, "hex")),
    ends: Object.fromEntries(
      Object.entries(ends).map(([code, times]) => [status[Number(code)] ?? code, times]),
    ),
    texts,
    retried,
  };
}
