// A process that mints over HTTP by Connect's protocol, and writes down what it got: node -C idmint-source http-caller.ts
// '<CallerConfig as JSON>'.
import { answered, pace, runUntilTold } from "../../src/fleet/load.ts";
import type { CallerConfig, CallerLoad } from "./config.ts";
import { HistoryWriter, type Refusal } from "./history-writer.ts";

const config = JSON.parse(process.argv[2] ?? "{}") as CallerConfig;
const writer = new HistoryWriter(config);
let turn = process.pid % config.addresses.length;

/** An answer in JSON: numbers of 64 bits are texts. */
interface Answer {
  readonly id?: string;
  readonly text?: string;
  readonly epoch?: string;
  readonly period?: string;
  readonly segments?: readonly { base: string; count: number; increment: number }[];
  readonly code?: string;
  readonly message?: string;
  readonly details?: readonly { readonly debug?: { readonly reason?: string } }[];
}

async function ask(method: string, body: object): Promise<Answer> {
  const origin = config.addresses[turn++ % config.addresses.length] ?? "";
  const response = await fetch(`${origin}/idmint.v1.IdService/${method}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "connect-timeout-ms": String(config.deadlineMs),
    },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(config.deadlineMs),
  });
  const answer = (await response.json()) as Answer;
  if (response.status === 200) return answer;
  throw new RefusedByDoor(answer);
}

/** What the door refused. */
class RefusedByDoor extends Error implements Refusal {
  readonly code: string;
  readonly reason: string;

  constructor({ code = "", message = "", details = [] }: Answer) {
    super(message);
    this.code = code.toUpperCase();
    this.reason = details.find(({ debug }) => debug?.reason !== undefined)?.debug?.reason ?? "";
  }
}

async function mint(load: CallerLoad, stream: number): Promise<void> {
  const { tag, count = 1 } = load;
  const call = writer.begin(load, stream);
  try {
    if (load.call === "take") {
      const { segments = [], epoch, period } = await ask("GenerateIds", { tag, count });
      const its = segments.map(({ base, ...more }) => ({ base: BigInt(base), ...more }));
      writer.answered(call, { segments: its, epoch: BigInt(epoch ?? 0), period: period ?? "" });
    } else {
      const { id = "", text = "", epoch, period } = await ask("GenerateId", { tag });
      const its = { epoch: BigInt(epoch ?? 0) };
      if (load.call === "text") writer.answered(call, { ...its, uuid: text });
      else writer.answered(call, { ...its, id: BigInt(id), period: period ?? "" });
    }
    answered();
  } catch (thrown) {
    writer.refused(call, refusalOf(thrown));
  }
}

function refusalOf(thrown: unknown): Refusal {
  if (thrown instanceof RefusedByDoor) return thrown;
  if (!(thrown instanceof Error)) throw thrown;
  const { name, message } = thrown;
  // What Node's fetch says of a time that is over, and of a connection that failed or ended within an answer.
  if (name === "TimeoutError") {
    return { code: "DEADLINE_EXCEEDED", reason: "DEADLINE_EXCEEDED", message };
  }
  if (name === "TypeError") {
    return { code: "UNAVAILABLE", reason: "SERVER_UNAVAILABLE", message };
  }
  throw thrown;
}

const callers = config.loads.map((load, stream) => pace(load, () => mint(load, stream)));
await runUntilTold(callers, async () => writer.close());
