import { sequenceSuite } from "./suite.ts";
import { postgresHarness } from "../../../store/harness.ts";

sequenceSuite("PostgreSQL", postgresHarness);
