// Waits for an id while no server is there: the waiting call must keep the process alive until its refusal.
import { createIdClient, IdmintError } from "@idmint/client";

const client = createIdClient({ address: process.argv[2] ?? "" });
try {
  await client.tag("orders").next({ deadlineMs: 700 });
} catch (error) {
  console.log(IdmintError.from(error).reason);
}
