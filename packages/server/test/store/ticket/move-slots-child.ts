// An operator's process: carries plans out again and again until it is killed, and writes a line for each moved slot.
import { writeSync } from "node:fs";
import { applyPlan, planTag } from "@idmint/core/server";
import { openTicketDatabases, type TicketConfig } from "../../../src/store/ticket/backend.ts";

const [configs = "", slotsId = "", ...plans] = process.argv.slice(2);
const databases = openTicketDatabases(JSON.parse(configs) as readonly TicketConfig[]);
writeSync(1, "open\n");
for (let turn = 0; ; turn++) {
  const to = plans[turn % plans.length]?.split(",") ?? [];
  try {
    await applyPlan(databases, await planTag(databases, slotsId, to), ({ slot }) =>
      writeSync(1, `moved ${slot}\n`),
    );
    writeSync(1, "done\n");
  } catch (error) {
    writeSync(1, `failed ${String(error)}\n`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
