// Begins two processes as tests do, says their pids, and waits to be ended.
import { Child } from "../../src/fleet/child.ts";

const script = process.argv[2] ?? "";
const children = [1, 2].map((at) => new Child(script, [], { name: `sleeper ${at}` }));
await Promise.all(children.map((child) => child.waitForOutput("asleep")));
process.stdout.write(`${children.map(({ pid }) => pid).join(" ")}\n`);
