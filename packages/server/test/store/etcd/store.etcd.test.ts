import { storeSuite } from "@idmint/testkit/store-suite";
import { etcdHarness } from "./harness.ts";

storeSuite("etcd", etcdHarness);
