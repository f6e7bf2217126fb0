import { postgresHarness } from "./harness.ts";
import { spoiledRowsSuite } from "./spoiled-rows.ts";

spoiledRowsSuite("postgres", postgresHarness, async ({ database }, text) => {
  await database.query(text("idmint.tag"));
});
