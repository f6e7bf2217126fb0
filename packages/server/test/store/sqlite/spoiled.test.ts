import { sqlInAnotherProcess } from "../children.ts";
import { sqliteHarness } from "../harness.ts";
import { spoiledRowsSuite, sqlHand } from "../spoiled-rows.ts";

spoiledRowsSuite(
  "sqlite",
  sqliteHarness,
  sqlHand("tag", async ({ config }, text) => {
    sqlInAnotherProcess(config.path, text);
  }),
);
