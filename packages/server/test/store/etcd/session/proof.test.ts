// What a member proves itself with, said by a member that is made up.
import { expect, test } from "vitest";
import { CallFailure } from "../../../../src/store/etcd/cluster/failure.ts";
import { GuardState } from "../../../../src/store/etcd/cluster/guard-state.ts";
import type { Member } from "../../../../src/store/etcd/cluster/member.ts";
import type { Ask } from "../../../../src/store/etcd/cluster/members.ts";
import { Keys } from "../../../../src/store/etcd/session/keys.ts";
import { Proof } from "../../../../src/store/etcd/session/proof.ts";
import { valueOfRecord } from "../../../../src/store/etcd/session/rows.ts";
import { passingPins } from "../../../../src/store/pins/pin.ts";

const RECORD = { incarnation: "i", generation: 0n, clusterId: "7", lead: 5n };

/** A member with a store; `between`: what happens between its two answers. */
function madeUp(storeId: string, between: (member: { connection: number }) => void = () => {}) {
  const member = {
    at: "a:1",
    connection: 1,
    isProved: false,
    prove: () => undefined,
    setAside: (trouble: string) => new CallFailure("stranger", "a:1", trouble),
  };
  const value = valueOfRecord({ storeId, ...RECORD });
  const header = { clusterId: "7", memberId: "1", revision: "10", raftTerm: "2" };
  const ask = async (name: string): Promise<object> => {
    if (name === "status") {
      between(member);
      const more = { version: "3.4", dbSize: "1", raftIndex: "20", errors: [] };
      return { header, leader: "1", raftTerm: "2", ...more };
    }
    const kv = { key: Buffer.of(), modRevision: "2", value };
    return { header, succeeded: true, answers: [{ range: { kvs: [kv] } }, {}, {}] };
  };
  return [member as unknown as Member, ask as unknown as Ask] as const;
}

test("what was said over two connections proves nothing", async () => {
  const proof = new Proof(new GuardState(), passingPins().of(""), new Keys("/p/"));
  const torn = madeUp("s", (member) => void member.connection++);
  await expect(proof.prove(...torn)).rejects.toMatchObject({ kind: "not done" });
  expect((await proof.prove(...madeUp("s"))).fenced).toBe("");
});

test("the first store that is found is the one, and a member of another is set aside", async () => {
  const pin = passingPins().of("");
  const proof = new Proof(new GuardState(), pin, new Keys("/p/"));
  await proof.prove(...madeUp("s"));
  expect(pin.id).toBe("s");
  await expect(proof.prove(...madeUp("other"))).rejects.toMatchObject({ kind: "stranger" });
});
