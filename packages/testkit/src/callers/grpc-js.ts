import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import {
  type ChannelOptions,
  Client,
  compressionAlgorithms,
  credentials,
  Metadata,
  status,
} from "@grpc/grpc-js";
import { until } from "../fleet/until.ts";
import {
  type Caller,
  type Seen,
  type Target,
  UNSERVED,
  wholeStep,
  type WholeStep,
} from "./caller.ts";

const REST_MS = 20;

const asIs = (bytes: Buffer): Buffer => bytes;

/** What came of a step so far. */
class Notes {
  readonly answers: Uint8Array[] = [];
  readonly ends: Record<string, number> = {};
  readonly texts = new Set<string>();
  retried = 0;

  ended(code: status, text: string): void {
    const name = status[code] ?? "";
    this.ends[name] = (this.ends[name] ?? 0) + 1;
    if (code !== status.OK) this.texts.add(text);
  }

  get seen(): Seen {
    return {
      answers: this.answers,
      ends: this.ends,
      texts: [...this.texts],
      retried: this.retried,
    };
  }
}

/** What a call needs beside its channel. */
function partsOf({ metadataBytes, timeoutMs }: WholeStep): [Metadata, { deadline: number }] {
  const metadata = new Metadata();
  if (metadataBytes > 0) metadata.set("x-large", "x".repeat(metadataBytes));
  return [metadata, { deadline: Date.now() + timeoutMs }];
}

function unary(client: Client, step: WholeStep, notes: Notes, retries = 0): Promise<void> {
  return new Promise((resolve) => {
    const message = Buffer.from(step.message);
    const path = `/${step.method}`;
    const call = client.makeUnaryRequest(
      path,
      asIs,
      asIs,
      message,
      ...partsOf(step),
      (error, answer) => {
        if (error?.code === status.UNAVAILABLE && retries > 0) {
          notes.retried++;
          resolve(unary(client, step, notes, retries - 1));
          return;
        }
        if (answer !== undefined && error === null) notes.answers.push(answer);
        notes.ended(error?.code ?? status.OK, error?.details ?? "");
        resolve();
      },
    );
    if (step.cancelAfterMs > 0) setTimeout(() => call.cancel(), step.cancelAfterMs);
  });
}

function stream(client: Client, step: WholeStep, notes: Notes): Promise<void> {
  return new Promise((resolve) => {
    const call = client.makeBidiStreamRequest(`/${step.method}`, asIs, asIs, ...partsOf(step));
    call.on("error", () => undefined);
    call.on("data", (answer: Buffer) => {
      notes.answers.push(answer);
      if (notes.answers.length === step.calls) call.end();
    });
    call.on("status", ({ code, details }) => {
      notes.ended(code, details);
      resolve();
    });
    for (let i = 0; i < step.calls; i++) call.write(Buffer.from(step.message));
    if (step.cancelAfterMs > 0) setTimeout(() => call.cancel(), step.cancelAfterMs);
  });
}

async function fly(client: Client, step: WholeStep, notes: Notes): Promise<void> {
  const end = Date.now() + step.forMs;
  while (Date.now() < end) {
    await unary(client, step, notes, step.retries);
    await pause(REST_MS);
  }
}

async function run(client: Client, step: WholeStep): Promise<Seen> {
  const notes = new Notes();
  const once = step.forMs > 0 ? fly : unary;
  if (step.isStream) await stream(client, step, notes);
  else await Promise.all(Array.from({ length: step.calls }, () => once(client, step, notes)));
  if (step.calls === 0) await pause(step.forMs);
  return notes.seen;
}

function clientOf({ address, ca, keepaliveMs = 0 }: Target, options: ChannelOptions): Client {
  const channel =
    ca === undefined ? credentials.createInsecure() : credentials.createSsl(readFileSync(ca));
  return new Client(address, channel, {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.keepalive_permit_without_calls": 1,
    ...(keepaliveMs > 0 ? { "grpc.keepalive_time_ms": keepaliveMs } : {}),
    ...options,
  });
}

/** grpc-js, in this process. It compresses by connection, so what is compressed has one of its own. */
export const grpcJs: Caller = {
  name: "grpc-js",
  retriable: UNSERVED,
  begin: (target, steps) => {
    const plain = clientOf(target, {});
    const zipping = { "grpc.default_compression_algorithm": compressionAlgorithms.gzip };
    const zipped = clientOf(target, zipping);
    let begun = 0;
    const all = async (): Promise<readonly Seen[]> => {
      try {
        const seen: Seen[] = [];
        for (const step of steps.map(wholeStep)) {
          begun++;
          seen.push(await run(step.gzip ? zipped : plain, step));
        }
        return seen;
      } finally {
        plain.close();
        zipped.close();
      }
    };
    return {
      begun: async (count) => {
        await until("grpc-js begins", () => begun >= count, { withinMs: 60_000 });
      },
      seen: all(),
    };
  },
};
