import { writeSync } from "node:fs";
import { workerData } from "node:worker_threads";
import type { Watched } from "./watchdog.ts";

const { beats, input, hangMs } = workerData as Watched;
const [counter, length] = [new Int32Array(beats, 0, 1), new Int32Array(beats, 4, 1)];
const LOOK_MS = 100;
let [last, still] = [-1, 0];

setInterval(() => {
  const now = Atomics.load(counter, 0);
  // Looks are counted, and not the time, in which the whole machine may have stood still.
  still = now === last ? still + LOOK_MS : 0;
  last = now;
  if (still < hangMs) return;
  const text = Buffer.from(input).toString("utf8", 0, Atomics.load(length, 0));
  writeSync(2, `finding: the event loop stands still for ${still} ms\n  ${text}\n`);
  process.kill(process.pid, "SIGKILL");
}, LOOK_MS);
