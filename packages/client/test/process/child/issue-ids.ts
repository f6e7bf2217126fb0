// Issues ids with a client of its own and reports them: as a forked child, a cluster worker or a worker thread.
import { parentPort, workerData } from "node:worker_threads";
import { createIdClient } from "@idmint/client";

const [addresses, count] = (workerData as [string, number] | null) ?? [
  process.argv[2] ?? "",
  Number(process.argv[3]),
];
const ids: string[] = [];
{
  await using client = createIdClient({ addresses: addresses.split(","), min: 20, max: 50 });
  const tag = client.tag("orders");
  for (let i = 0; i < count; i++) ids.push(await tag.nextString());
}
if (parentPort === null) process.send?.(ids, () => process.disconnect());
else parentPort.postMessage(ids);
