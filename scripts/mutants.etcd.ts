import type { Mutant } from "./mutant.ts";

const etcd = "packages/server/src/store/etcd";
const tests = "packages/server/test/store/etcd";
const onGuard = [`${tests}/guard-state.model.test.ts`];
const onClock = [`${tests}/clocks-state.test.ts`];
const onStore = [`${tests}/store.etcd.test.ts`];
const onFaults = [`${tests}/faults.etcd.test.ts`];
const restored = [`${tests}/restore.etcd.test.ts`];
const onStrangers = [`${tests}/strangers.etcd.test.ts`];
const onAccess = [`${tests}/access.etcd.test.ts`];

/** The store in etcd: its transactions, its guard, its clock and its watch. */
export const etcdMutants: readonly Mutant[] = [
  {
    name: "a row in etcd is written over whatever is there",
    file: `${etcd}/session/kept-rows.ts`,
    find: "      compare: [{ key, modRevision: from.modRevision }],",
    replace: "      compare: [],",
    tests: onStore,
  },
  {
    name: "a grant of etcd with a lost answer counts",
    file: `${etcd}/session/kept-rows.ts`,
    find: "      failure = error;\n",
    replace: "      for (const { change, answer } of changes) done.set(change.name, answer);\n",
    tests: onFaults,
  },
  {
    name: "a refusal rests on a row of etcd that was read long ago",
    file: `${etcd}/session/kept-rows.ts`,
    find: "      } else if (fresh.has(name)) {",
    replace: "      } else if (row.tag !== undefined || fresh.has(name)) {",
    tests: onStore,
  },
  {
    name: "a give-back to etcd with a lost answer is made again",
    file: `${etcd}/session/etcd.ts`,
    find: 'const how = { effect: "once", ...options } as const;\n    const done',
    replace: 'const how = { ...options, effect: "any" } as const;\n    const done',
    tests: onFaults,
  },
  {
    name: "transactions of etcd do not look at the key store",
    file: `${etcd}/session/etcd.ts`,
    find: '    const compare = [{ key: this.keys.one("store"), value }];',
    replace:
      '    const compare = value.length === 0 ? [{ key: this.keys.one("store"), value }] : [];',
    tests: restored,
  },
  {
    name: "transactions of etcd compare the revision of the key store, which another store may have too",
    file: `${etcd}/session/etcd.ts`,
    find: '    const compare = [{ key: this.keys.one("store"), value }];',
    replace:
      '    const compare = [{ key: this.keys.one("store"), ...(value.length === 0 ? { value } : { modRevision: standing.modRevision }) }];',
    tests: onStrangers,
    only: "on its way",
  },
  {
    name: "one wrong member of an etcd stops all",
    file: `${etcd}/cluster/members.ts`,
    find: "        if (!isPassing(error) && !isHopeless(error)) throw error;",
    replace: "        if (!isPassing(error)) throw error;",
    tests: onStrangers,
    only: "passed over",
  },
  {
    name: "an etcd of another store is believed",
    file: `${etcd}/session/proof.ts`,
    find: "      if (error instanceof IdmintError && isForeign(error)) return false;",
    replace: "      if (error instanceof IdmintError && isForeign(error)) return true;",
    tests: [`${tests}/proof.test.ts`],
  },
  {
    name: "an etcd of another store is asked over the same connection for ever",
    file: `${etcd}/cluster/member.ts`,
    find: "      this.#client.close();\n      this.#client = new Client(this.at, this.#creds, CHANNEL_OPTIONS);\n      for",
    replace: "      for",
    tests: onStrangers,
    only: "leads to another store",
  },
  {
    name: "two halves of an etcd's proof come over two connections",
    file: `${etcd}/session/proof.ts`,
    find: "if (member.connection !== connection) {",
    replace: "if (member.connection < connection) {",
    tests: [`${tests}/proof.test.ts`],
  },
  {
    name: "a server starts on members of two etcds",
    file: `${etcd}/session/sight.ts`,
    find: "  if (clusters.size <= 1 && stores.size <= 1) return;",
    replace: "  if (clusters.size <= 2 && stores.size <= 2) return;",
    tests: onStrangers,
    only: "two clusters",
  },
  {
    name: "writes of others hide from a server that an etcd went back",
    file: `${etcd}/cluster/guard-state.ts`,
    find: "revision < sentAt.revision || written < sentAt.written;",
    replace: "revision < sentAt.revision || written < 0n;",
    tests: onGuard,
  },
  {
    name: "a server keeps to itself that an etcd went back",
    file: `${etcd}/changes.ts`,
    find: "    await markWentBack(session, standing);\n",
    replace: "",
    tests: restored,
    only: "hidden",
  },
  {
    name: "a newcomer does not look at the mark of an etcd that went back",
    file: `${etcd}/cluster/guard-state.ts`,
    find: "if (record.wentBack !== undefined) return",
    replace: 'if (record.wentBack === "") return',
    tests: onGuard,
  },
  {
    name: "an etcd is marked over another record than the loss was seen in",
    file: `${etcd}/went-back.ts`,
    find: "    { key, value },\n",
    replace: "",
    tests: restored,
    only: "over no record",
  },
  {
    name: "a server that slept marks an etcd that is well",
    file: `${etcd}/went-back.ts`,
    find: '    { key: keys.one("room"), modRevision: written },\n',
    replace: "",
    tests: restored,
    only: "slept",
  },
  {
    name: "etcd worker leases without the row's compare",
    file: `${etcd}/worker-leases.ts`,
    find: "          { key: place, modRevision: over.modRevision },\n",
    replace: "",
    tests: onStore,
    only: "decided on",
  },
  {
    name: "etcd worker leases without the tag's compare",
    file: `${etcd}/worker-leases.ts`,
    find: "          { key, modRevision: kept.modRevision },\n",
    replace: "",
    tests: onStore,
    only: "decided on",
  },
  {
    name: "a restored snapshot of etcd with the old token is taken for the cluster",
    file: `${etcd}/cluster/guard-state.ts`,
    find: '    if (sight.lead < record.lead) return "the cluster was restored from a snapshot";\n',
    replace: "",
    tests: restored,
  },
  {
    name: "an etcd that went back is forgiven once it is ahead again",
    file: `${etcd}/cluster/guard-state.ts`,
    find: "fenced: seen.fenced || found,",
    replace: "fenced: found,",
    tests: onGuard,
  },
  {
    name: "an answer of etcd is judged by what was seen after it was asked for",
    file: `${etcd}/cluster/guard-state.ts`,
    find: 'isOther ? OTHER_CLUSTER : revision < sentAt.revision ? SEEN_LATER : ""',
    replace: 'isOther ? OTHER_CLUSTER : revision < this.#seen.revision ? SEEN_LATER : ""',
    tests: onGuard,
  },
  {
    name: "the term of a member of etcd that only stands for election is remembered",
    file: `${etcd}/cluster/guard-state.ts`,
    find: '  return status.leader !== "0" && status.header',
    replace: "  return status.header",
    tests: onGuard,
  },
  {
    name: "one clock that jumped is the time of etcd's store",
    file: `${etcd}/session/clocks-state.ts`,
    find: "Math.min(Math.max(ownMs, median), median + CLOCK_BOUND_MS)",
    replace: "Math.max(ownMs, median)",
    tests: onClock,
  },
  {
    name: "a server that is gone tells etcd's store the time",
    file: `${etcd}/session/clocks-state.ts`,
    find: "const aheadMs = isSilent ? undefined : known.aheadMs;",
    replace: "const aheadMs = isSilent ? known.aheadMs : known.aheadMs;",
    tests: onClock,
  },
  {
    name: "transactions escape the quota of etcd",
    file: `${etcd}/session/etcd.ts`,
    find: "transact(this.deadlineMs, [...ops, room],",
    replace: "transact(this.deadlineMs, [...ops, ...[room].slice(1)],",
    tests: onFaults,
  },
  {
    name: "a server that etcd's store refuses asks for leases all the same",
    file: `${etcd}/nodes.ts`,
    find: "    return await write(session, renewal);\n",
    replace: "    await leaseOf(session, renewal);\n    return await write(session, renewal);\n",
    tests: restored,
  },
  {
    name: "an etcd that keeps all revisions is taken",
    file: `${etcd}/history.ts`,
    find: "> KEPT_TOO_LONG_MS",
    replace: "> 10 * KEPT_TOO_LONG_MS",
    tests: onAccess,
  },
  {
    name: "a watch of etcd stays at a member that has lost its leader",
    file: `${etcd}/cluster/member.ts`,
    find: "makeBidiStreamRequest(path, write, read, metadataOf(token));\n    let isOver",
    replace: "makeBidiStreamRequest(path, write, read, new Metadata());\n    let isOver",
    tests: [`${tests}/watch.e2e.test.ts`],
  },
  {
    name: "a watch of etcd that begins again asks for no poll",
    file: `${etcd}/cluster/watch-state.ts`,
    find: '  return hasBegun || changed ? [{ type: "heard" }] : [];',
    replace: '  return (hasBegun && state.failures === 0) || changed ? [{ type: "heard" }] : [];',
    tests: [`${tests}/watch.etcd.test.ts`],
    only: "killed, compacted",
  },
  {
    name: "a watch of etcd that ends is begun again at once",
    file: `${etcd}/cluster/watch-state.ts`,
    find: "  state.failures = hasLasted ? 1 : state.failures + 1;",
    replace: "  state.failures = hasLasted ? 1 : -9;",
    tests: [`${tests}/watch-state.model.test.ts`],
  },
  {
    name: "what an earlier watch of etcd says is heard",
    file: `${etcd}/cluster/watch-state.ts`,
    find: '  if (token !== state.token || (state.phase !== "beginning" && state.phase !== "begun")) return [];\n  let hasBegun',
    replace:
      '  if (state.phase !== "beginning" && state.phase !== "begun") return [];\n  let hasBegun',
    tests: [`${tests}/watch-state.model.test.ts`],
  },
  {
    name: "etcd is asked only at a start whether it compacts",
    file: `${etcd}/session/etcd.ts`,
    find: 'readonly compaction = { lookAt: 0, trouble: "" };',
    replace: 'readonly compaction = { lookAt: Infinity, trouble: "" };',
    tests: [`${tests}/watch.etcd.test.ts`],
    only: "stops compacting",
  },
];
