// A process that mints ids of a sequence by plain gRPC calls, and writes down when: node -C idmint-source load-history.ts
// '<LoadConfig as JSON>'.
import { IdmintError } from "@idmint/client";
import { Api } from "./api.ts";
import { HistoryRecorder } from "./history.ts";
import { answered, configOf, pace, refused, runUntilTold } from "./load.ts";
import type { Activity } from "./load-config.ts";

const config = configOf(process.argv);
const recorder = new HistoryRecorder(config.file);
const servers = config.addresses.map((address) => new Api(address));
let turn = Math.floor(Math.random() * servers.length);

/** One call to the next server, written down in the turn in which it was answered. */
async function mint(stream: number, { kind, count = 1 }: Activity): Promise<void> {
  const server = servers[turn++ % servers.length];
  if (server === undefined) throw new Error("no servers to call");
  const { tag, deadlineMs } = config;
  const asked = process.hrtime.bigint();
  if (kind === "id") {
    const { id, period, text } = await server.generateId(tag, deadlineMs);
    recorder.answer(stream, asked, period, id, 1);
    const compact = period.replaceAll("-", "");
    if (text !== (period === "" ? "" : `${compact}-${id}`)) throw new Error(`text ${text}`);
    return;
  }
  if (kind !== "segments") throw new Error(`${kind} is not for a history`);
  const answer = await server.generateIds({ tag, count, asList: false }, deadlineMs);
  const [segment, ...others] = answer.segments;
  if (segment?.increment !== 1 || segment.count !== count || others.length > 0) {
    throw new Error("ids of a sequence that do not follow each other");
  }
  recorder.answer(stream, asked, answer.period, segment.base, count);
}

const callers = config.activities.map((activity, stream) =>
  pace(activity, async () => {
    const start = performance.now();
    try {
      await mint(stream, activity);
      answered();
    } catch (thrown) {
      if (!(thrown instanceof IdmintError)) throw thrown;
      refused(thrown, `after ${Math.round(performance.now() - start)} ms`);
    }
  }),
);
await runUntilTold(callers, async () => {
  for (const server of servers) server[Symbol.dispose]();
  recorder.close();
});
