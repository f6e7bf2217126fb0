// An etcd that several tests share: each keeps to a prefix of its own.
import { EtcdCluster } from "./cluster.ts";

const SHARED_URL = "IDMINT_TEST_ETCD_URL";

let own: Promise<EtcdCluster> | undefined;

/**
 * host:port of an etcd for tests that neither stop nor empty it: that of IDMINT_TEST_ETCD_URL, which the run's set-up sets
 * when nobody else did; without it, of one started for this process.
 */
export async function sharedEtcd(): Promise<string> {
  const shared = process.env[SHARED_URL];
  if (shared !== undefined) return shared.replace(/^etcd:\/\//, "");
  own ??= EtcdCluster.start();
  return (await own).hosts;
}

/** Makes this process's children share one etcd; the answer ends it. */
export async function shareEtcd(): Promise<() => Promise<void>> {
  if (process.env[SHARED_URL] !== undefined) return async () => undefined;
  const cluster = await EtcdCluster.start();
  process.env[SHARED_URL] = `etcd://${cluster.hosts}`;
  return async () => {
    delete process.env[SHARED_URL];
    await cluster.close();
  };
}
