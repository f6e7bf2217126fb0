// Takes messages and tells the parent each id before it acknowledges it, until the parent kills it or says that it is over.
import { createQueue } from "../../src/queue/queue.ts";

const [url = "", name = ""] = process.argv.slice(2);
const queue = createQueue({ redis: url, name, consumerTtlMs: 1_000 });
const over = new AbortController();

async function consume(): Promise<void> {
  while (!over.signal.aborted) {
    const message = await queue.take({ timeoutMs: 1_000 });
    if (message === undefined) continue;
    await new Promise((resolve) => process.send?.(message.id, resolve));
    await message.ack();
  }
}

process.on("message", () => {
  over.abort();
});
// Several at once, so that a kill finds messages in every state.
await Promise.all([consume(), consume(), consume(), consume()]);
await queue.close();
process.disconnect();
