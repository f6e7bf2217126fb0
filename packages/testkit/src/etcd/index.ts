export { EtcdCluster, type EtcdOptions, type EtcdSnapshot } from "./cluster.ts";
export { EtcdGateway } from "./gateway.ts";
export type { EtcdMember } from "./member.ts";
export { sharedEtcd } from "./shared.ts";
