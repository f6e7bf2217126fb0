// Closes while a load that will never be answered is in flight: the process must end at once.
import { createIdClient } from "@idmint/client";

const client = createIdClient({ address: process.argv[2] ?? "", rpcDeadlineMs: 60_000 });
const refused = client
  .tag("orders")
  .next({ deadlineMs: 60_000 })
  .catch(() => undefined);
setTimeout(() => {
  console.log("closing");
  void client.close();
}, 200);
await refused;
