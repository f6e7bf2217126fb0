// The first module of a worker process. What V8 is told must be told before anything else is compiled, so everything
// else is loaded by a module of its own.
import { enableCompileCache } from "node:module";
import { applyPretenuringCure } from "../grpc/pretenuring.ts";

applyPretenuringCure();
// After that, since V8 keeps apart what was compiled under other flags.
enableCompileCache();
// Ctrl-C reaches every process of a terminal's group. It is the parent's to hear, which then tells its workers.
process.on("SIGINT", () => undefined);
const { runWorker } = await import("./run-worker.ts");
await runWorker();
