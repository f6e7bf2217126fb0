// A process that mints by plain gRPC, each call from the next server, and writes down what it got:
// node -C idmint-source raw-caller.ts '<CallerConfig as JSON>'.
import { IdmintError } from "@idmint/client";
import { Api } from "../../src/fleet/api.ts";
import { answered, pace, refused, runUntilTold } from "../../src/fleet/load.ts";
import type { CallerConfig, CallerLoad } from "./config.ts";
import { HistoryWriter } from "./history-writer.ts";

const config = JSON.parse(process.argv[2] ?? "{}") as CallerConfig;
const writer = new HistoryWriter(config);
const servers = config.addresses.map((address) => new Api(address));
let turn = process.pid % servers.length;

async function mint(load: CallerLoad, stream: number): Promise<void> {
  const server = servers[turn++ % servers.length];
  if (server === undefined) throw new Error("no servers to call");
  const { tag, count = 1 } = load;
  const call = writer.begin(load, stream);
  try {
    if (load.call === "take") {
      const answer = await server.generateIds({ tag, count, asList: false }, config.deadlineMs);
      const { segments, epoch, period } = answer;
      writer.answered(call, { segments, epoch, period });
    } else {
      const { id, text, epoch, period } = await server.generateId(tag, config.deadlineMs);
      writer.answered(call, load.call === "text" ? { uuid: text, epoch } : { id, epoch, period });
    }
    answered();
  } catch (thrown) {
    if (!(thrown instanceof IdmintError)) throw thrown;
    writer.refused(call, thrown);
    refused(thrown);
  }
}

const callers = config.loads.map((load, stream) => pace(load, () => mint(load, stream)));
await runUntilTold(callers, async () => {
  for (const server of servers) server[Symbol.dispose]();
  writer.close();
});
