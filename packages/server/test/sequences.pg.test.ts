import { sequenceSuite } from "./sequence-suite.ts";
import { postgresHarness } from "./store/harness.ts";

sequenceSuite("PostgreSQL", postgresHarness);
