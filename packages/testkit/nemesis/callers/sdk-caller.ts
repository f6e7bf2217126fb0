// A process that mints by the SDK and writes down what it got: node -C idmint-source sdk-caller.ts '<CallerConfig as JSON>'.
import { createIdClient, IdmintError } from "@idmint/client";
import { answered, pace, refused, runUntilTold } from "../../src/fleet/load.ts";
import type { CallerConfig, CallerLoad } from "./config.ts";
import { type Answer, HistoryWriter } from "./history-writer.ts";

const config = JSON.parse(process.argv[2] ?? "{}") as CallerConfig;
const { addresses, deadlineMs, rpcDeadlineMs, instance } = config;
const writer = new HistoryWriter(config);
const client = createIdClient({ addresses, deadlineMs, rpcDeadlineMs, worker: { instance } });

async function mint(load: CallerLoad): Promise<Answer> {
  const tag = client.tag(load.tag);
  switch (load.call) {
    case "next":
      return { id: await tag.next() };
    case "sync":
      return { id: tag.nextSync() };
    case "take":
      return { segments: await tag.take(load.count ?? 1) };
    case "text":
      return { uuid: await tag.nextString() };
    case "period":
      return tag.nextPeriodId();
    default:
      throw new Error(`no call ${String(load.call satisfies never)}`);
  }
}

// As the documentation advises to all who ask synchronously. When it fails, the calls will say why.
const synchronous = config.loads.filter(({ call }) => call === "sync");
await Promise.all(
  synchronous.map(({ tag }) =>
    client
      .tag(tag)
      .warm()
      .catch(() => undefined),
  ),
);
const callers = config.loads.map((load, stream) =>
  pace(load, async () => {
    const call = writer.begin(load, stream);
    try {
      writer.answered(call, await mint(load));
      answered();
    } catch (thrown) {
      if (!(thrown instanceof IdmintError)) throw thrown;
      writer.refused(call, thrown);
      refused(thrown);
    }
  }),
);
await runUntilTold(callers, async () => {
  await client.close();
  writer.close();
});
