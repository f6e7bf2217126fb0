// A store in several databases of a real PostgreSQL.
import { storeSuite } from "@idmint/testkit/store-suite";
import { spreadHarness } from "./harness.ts";

storeSuite("spread", () => spreadHarness());
