// What a transaction says of itself at its end.
import { expect, test } from "vitest";
import { Connections } from "../../../src/store/postgres/connections.ts";
import { reasonOf } from "@idmint/testkit/store-suite";
import { postgresHarness } from "../harness.ts";

test("a transaction that PostgreSQL rolled back at its COMMIT has not been done", async () => {
  const harness = await postgresHarness();
  const connections = new Connections(harness.config);
  try {
    const before = await harness.database.query("SELECT count(*) AS n FROM idmint.traffic");
    // Its work goes on after a statement that failed, as code does that takes the failure for an answer.
    const done = connections.run((session) =>
      session.transaction(async () => {
        const text = "INSERT INTO idmint.traffic VALUES ('s', 0, false, 1)";
        await session.query({ text });
        await session.query({ text: "SELECT 1 / 0" }).catch(() => undefined);
        return "done";
      }),
    );
    expect(await reasonOf(done)).toBe("STORE_UNAVAILABLE");
    expect(await harness.database.query("SELECT count(*) AS n FROM idmint.traffic")).toEqual(
      before,
    );
    // The connection is of use for what comes next.
    const next = connections.run((session) => session.transaction(async () => "done"));
    expect(await next).toBe("done");
  } finally {
    await connections.close();
    await harness.remove();
  }
});
