// A process that mints by the SDK: node -C idmint-source load-sdk.ts '<LoadConfig as JSON>'.
import { createIdClient, type IdClient, IdmintError, type IdTag } from "@idmint/client";
import { answered, configOf, pace, refused, runUntilTold, signalOf } from "./load.ts";
import type { Activity } from "./load-config.ts";
import { Recorder } from "./record.ts";

const config = configOf(process.argv);
const { addresses, deadlineMs, min = 100, max = min, rpcDeadlineMs = 2_000, instances } = config;
const recorder = new Recorder(config.file);
/** Streams from here on are what the SDK itself lost, not a caller. */
const SDK_STREAM = instances?.length ?? config.activities.length;
const largestTake = Math.max(...config.activities.map(({ count = 1 }) => count));
const largestLoad = Math.max(max, largestTake);

function clientOf(instance: string | undefined): IdClient {
  return createIdClient({
    addresses,
    deadlineMs,
    rpcDeadlineMs,
    min,
    max,
    worker: instance === undefined ? {} : { instance },
    onEvent: (event) => {
      // Whatever the SDK was granted and will not issue, and whatever it may have been granted without being told.
      if (event.type === "endpoint-failed") recorder.askedInVain(SDK_STREAM, largestLoad);
      if (event.type === "wasted") recorder.askedInVain(SDK_STREAM, event.count);
      if (event.type === "release-failed") recorder.askedInVain(SDK_STREAM, event.unusedCount);
      if (event.type === "released" && event.reclaimedCount < event.unusedCount) {
        recorder.askedInVain(SDK_STREAM, event.unusedCount - event.reclaimedCount);
      }
    },
  });
}

const clients = (instances ?? [undefined]).map(clientOf);
const tags = clients.map((client) => client.tag(config.tag));

function optionsOf(): { readonly signal?: AbortSignal } {
  const signal = signalOf(config);
  return signal === undefined ? {} : { signal };
}

/** One call, recorded in the turn in which its ids arrived. */
async function mint(stream: number, { kind, count = 1 }: Activity, from: IdTag): Promise<void> {
  switch (kind) {
    case "next":
      recorder.id(stream, await from.next(optionsOf()));
      return;
    case "string":
      recorder.id(stream, BigInt(await from.nextString()));
      return;
    case "sync":
      recorder.id(stream, from.nextSync());
      return;
    case "take":
      recorder.segments(stream, await from.take(count));
      return;
    case "id":
    case "segments":
    case "list":
      throw new Error(`${kind} is not a call of the SDK`);
  }
}

// As the documentation advises to all who ask synchronously. When it fails, the calls will say why. Those who have names
// are looked at from their first call on.
if (instances === undefined)
  await Promise.all(tags.map((tag) => tag.warm().catch(() => undefined)));
const callers = tags.flatMap((tag, client) =>
  config.activities.map((activity, at) => {
    const stream = instances === undefined ? at : client;
    return pace(activity, async () => {
      try {
        await mint(stream, activity, tag);
        answered();
      } catch (thrown) {
        // The ids of a call that the SDK refused are still the SDK's.
        if (!(thrown instanceof IdmintError)) throw thrown;
        refused(thrown);
      }
    });
  }),
);
await runUntilTold(callers, async () => {
  await Promise.all(clients.map((client) => client.close()));
  recorder.close();
});
