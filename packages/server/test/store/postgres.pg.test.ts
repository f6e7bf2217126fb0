import { storeSuite } from "@idmint/testkit/store-suite";
import { postgresHarness } from "./harness.ts";

storeSuite("postgres", postgresHarness);
