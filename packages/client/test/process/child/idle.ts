// Uses an id and ends without closing the client: an idle client must not keep the process alive.
import { createIdClient } from "@idmint/client";

const client = createIdClient({ address: process.argv[2] ?? "" });
console.log(String(await client.tag("orders").next()));
