// A process that mints by plain gRPC calls: node -C idmint-source load-grpc.ts '<LoadConfig as JSON>'.
import { IdmintError } from "@idmint/client";
import { Api } from "./api.ts";
import { answered, configOf, pace, refused, runUntilTold, signalOf } from "./load.ts";
import type { Activity } from "./load-config.ts";
import { Recorder } from "./record.ts";

const config = configOf(process.argv);
const recorder = new Recorder(config.file);
const servers = config.addresses.map((address) => new Api(address));
let turn = Math.floor(Math.random() * servers.length);

/** One call to the next server, recorded in the turn in which its ids arrived. */
async function mint(stream: number, { kind, count = 1 }: Activity): Promise<void> {
  const server = servers[turn++ % servers.length];
  if (server === undefined) throw new Error("no servers to call");
  const { tag, deadlineMs } = config;
  if (kind === "id") {
    recorder.id(stream, await server.id(tag, deadlineMs, signalOf(config)));
    return;
  }
  const asList = kind === "list";
  if (!asList && kind !== "segments") throw new Error(`${kind} is not a call of gRPC`);
  const { ids, segments } = await server.generateIds({ tag, count, asList }, deadlineMs);
  for (const id of ids) recorder.id(stream, id);
  recorder.segments(stream, segments);
}

const callers = config.activities.map((activity, stream) =>
  pace(activity, async () => {
    const start = performance.now();
    try {
      await mint(stream, activity);
      answered();
    } catch (thrown) {
      if (!(thrown instanceof IdmintError)) throw thrown;
      // Nobody knows whether the server had carved them.
      recorder.askedInVain(stream, activity.count ?? 1);
      refused(thrown, `after ${Math.round(performance.now() - start)} ms`);
    }
  }),
);
await runUntilTold(callers, async () => {
  for (const server of servers) server[Symbol.dispose]();
  recorder.close();
});
