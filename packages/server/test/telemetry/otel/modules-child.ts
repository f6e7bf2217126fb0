// A server that says which modules of OpenTelemetry its process has loaded: when it serves, and after one scrape. Its
// arguments are the flags of the server.
import { registerHooks } from "node:module";
import { loadConfig } from "../../../src/config/load.ts";

const loaded: string[] = [];
registerHooks({
  load: (url, context, next) => {
    if (url.includes("@opentelemetry")) loaded.push(url);
    return next(url, context);
  },
});
const { serverEnv } = await import("@idmint/testkit");
const { startServer } = await import("../../../src/main/app.ts");
const { makeStore } = await import("../../../src/main/stores.ts");
const flags = Object.fromEntries(
  process.argv.slice(2).map((flag) => flag.split("=", 2) as [string, string]),
);
const config = loadConfig({ env: serverEnv(), flags, defaults: {} });
await makeStore(config);
const server = await startServer(config);
const atStart = [...loaded];
const answer = await fetch(`http://${server.httpAddress}/metrics`);
await server.close();
console.log(JSON.stringify({ atStart, status: answer.status, later: loaded.length }));
