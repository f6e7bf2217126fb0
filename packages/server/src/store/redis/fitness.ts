/** What a Redis says of itself that matters to those who count in it. */
export interface Fitness {
  /** A Redis of a cluster: scripts that touch two keys fail there, and keys move away. */
  readonly isCluster: boolean;
  readonly isSentinel: boolean;
  readonly isReplica: boolean;
  /** The policy by which it removes keys when its memory is full; undefined: it removes none. */
  readonly evictsBy: string | undefined;
}

/** Reads the answer of INFO. */
export function fitnessOf(info: string): Fitness {
  const fields = new Map<string, string>();
  for (const line of info.split(/\r?\n/)) {
    const at = line.indexOf(":");
    if (at > 0) fields.set(line.slice(0, at), line.slice(at + 1));
  }
  const policy = fields.get("maxmemory_policy") ?? "noeviction";
  const isBounded = (fields.get("maxmemory") ?? "0") !== "0";
  return {
    isCluster: fields.get("cluster_enabled") === "1",
    isSentinel: fields.get("redis_mode") === "sentinel",
    isReplica: fields.get("role") === "slave",
    evictsBy: isBounded && policy !== "noeviction" ? policy : undefined,
  };
}

/** Why nobody can ever count in it, and the way out; undefined: somebody may. */
export function misfitText({ isCluster, isSentinel }: Fitness): string | undefined {
  if (isCluster) return CLUSTER_TEXT;
  return isSentinel ? SENTINEL_TEXT : undefined;
}

/** What is wrong with it and how to mend it; undefined: nothing. */
export function unfitText(fitness: Fitness): string | undefined {
  const { isReplica, evictsBy } = fitness;
  const misfit = misfitText(fitness);
  if (misfit !== undefined) return misfit;
  if (isReplica) return REPLICA_TEXT;
  if (evictsBy === undefined) return undefined;
  return `it may remove keys, by maxmemory-policy ${evictsBy}: each removed key costs its tag a new start; set maxmemory-policy noeviction`;
}

export const CLUSTER_TEXT =
  "it is a Redis Cluster, which is not supported: let redis.urls lead to a single master";
export const SENTINEL_TEXT =
  "it is a Sentinel, which counts nothing: name the master behind it by redis+sentinel://host:port,host:port,host:port/master-name in redis.urls";
export const REPLICA_TEXT =
  "it is a replica, which cannot count: let redis.urls lead to its master";

/** Why a Redis that answers refuses what every script does, with its own words and the way out. */
export function refusalText(said: string): string {
  // Of an error in a script Redis tells the script too.
  const [words = said] = said.split(" script: ");
  const way = RIGHTS.test(said)
    ? "give its user the rights that docs/redis.md lists"
    : "see what keeps this Redis from writing";
  return `it runs no scripts of idmint (${words.replaceAll(/[:;] /gu, ", ")}): ${way}`;
}

/** What Redis says to a user who lacks rights, for a command or in a script. */
export const RIGHTS: RegExp =
  /^NOPERM |^ERR (?:ACL failure in script|The user executing the script)/u;
