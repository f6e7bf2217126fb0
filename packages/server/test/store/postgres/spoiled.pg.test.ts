import { postgresHarness } from "../harness.ts";
import { spoiledRowsSuite, sqlHand } from "../spoiled-rows.ts";

spoiledRowsSuite(
  "postgres",
  postgresHarness,
  sqlHand("idmint.tag", ({ database }, text) => database.query(text)),
);
