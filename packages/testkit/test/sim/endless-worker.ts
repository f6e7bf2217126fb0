// A thread in which the history of one seed goes on by promises alone, for ever.
import { Fleet } from "../../sim/fleet.ts";
import { wrapped } from "../../sim/replaced.ts";

async function endless(): Promise<never> {
  for (;;) await Promise.resolve();
}

wrapped(
  Fleet.prototype,
  "startSdk",
  (startSdk) =>
    function endlessly(this: Fleet, target) {
      startSdk.call(this, target);
      if (this.plan.seed === "2") void endless();
    },
);

await import("../../sim/run/worker.ts");
