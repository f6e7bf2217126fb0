import { debianFiles, programOf } from "../debian.ts";

/** Paths of the programs that the tests run. */
export interface EtcdPrograms {
  readonly etcd: string;
  readonly etcdctl: string;
}

let programs: EtcdPrograms | undefined;

/** The programs to run; installed or unpacked at the first call when the machine has none. */
export function etcdPrograms(): EtcdPrograms {
  programs ??= debianFiles({
    name: "etcd",
    packages: ["etcd-server", "etcd-client"],
    find: (unpacked) => {
      const [etcd, etcdctl] = ["etcd", "etcdctl"].map((name) => programOf(unpacked, [name]));
      if (etcd === undefined || etcdctl === undefined) return undefined;
      return { etcd: etcd.command, etcdctl: etcdctl.command };
    },
    hint: "no etcd for the tests: install etcd-server and etcd-client (etcd and etcdctl, version 3.4), or set IDMINT_TEST_ETCD_URL for those tests that need no server of their own",
  });
  return programs;
}
