import { storeSuite } from "@idmint/testkit/store-suite";
import { sqliteHarness } from "./harness.ts";

storeSuite("sqlite", sqliteHarness);
