import { sqlInAnotherProcess } from "./children.ts";
import { sqliteHarness } from "./harness.ts";
import { spoiledRowsSuite } from "./spoiled-rows.ts";

spoiledRowsSuite("sqlite", sqliteHarness, async ({ config }, text) => {
  sqlInAnotherProcess(config.path, text("tag"));
});
