// A store in several databases of a real PostgreSQL.
import { storeSuite } from "@idmint/testkit/store-suite";
import { emptied } from "../postgres/emptied.ts";
import { spreadHarness } from "../harness.ts";

const ofSuite = async () => {
  const harness = await spreadHarness();
  return { ...harness, databases: [...harness.databases.values()] };
};
storeSuite("spread", emptied(ofSuite));
