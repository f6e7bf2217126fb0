// The first module of a process. V8's flags must be set before anything else is compiled, so everything else is
// imported later.
import { enableCompileCache } from "node:module";
import { holdYoungGeneration, setV8Flags } from "../v8-flags.ts";

setV8Flags();
holdYoungGeneration();
// After that, because V8 caches code separately for each set of flags.
enableCompileCache();
// Ctrl-C and the end of a terminal reach every process of it. The parent handles them, and tells its processes.
process.on("SIGINT", () => undefined);
process.on("SIGHUP", () => undefined);
const { runProcess } = await import("./run-process.ts");
await runProcess();
