// An etcd as its JSON gateway has it, for what tests look at and change by hand: none of the code of the store.
export interface GatewayKey {
  readonly key: string;
  readonly value: string;
}

export class EtcdGateway {
  readonly #url: string;

  /** `address`: host:port of a member. */
  constructor(address: string) {
    this.#url = `http://${address}/v3`;
  }

  async post<T>(method: string, body: object, timeoutMs = 10_000): Promise<T> {
    const answer = await fetch(`${this.#url}/${method}`, {
      method: "POST",
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`etcd: ${method}: ${text}`);
    return JSON.parse(text) as T;
  }

  /** Everything below a prefix. */
  async under(prefix: string): Promise<readonly GatewayKey[]> {
    const { kvs = [] } = await this.post<{ kvs?: { key: string; value?: string }[] }>(
      "kv/range",
      rangeOf(prefix),
    );
    return kvs.map(({ key, value = "" }) => ({ key: fromBase64(key), value: fromBase64(value) }));
  }

  /** Revision at which a key was written last; 0: it is not there. */
  async revisionOf(key: string): Promise<number> {
    const { kvs = [] } = await this.post<{ kvs?: { mod_revision: string }[] }>("kv/range", {
      key: toBase64(key),
    });
    return Number(kvs[0]?.mod_revision ?? 0);
  }

  async put(key: string, value: string): Promise<void> {
    await this.post("kv/put", { key: toBase64(key), value: toBase64(value) });
  }

  async remove(key: string): Promise<void> {
    await this.post("kv/deleterange", { key: toBase64(key) });
  }

  async removeUnder(prefix: string): Promise<void> {
    await this.post("kv/deleterange", rangeOf(prefix));
  }

  /** Writes some keys and removes others in one transaction; a key is in one of both only. */
  async change(put: readonly GatewayKey[], gone: readonly string[] = []): Promise<void> {
    const all = [
      ...put.map(({ key, value }) => ({
        requestPut: { key: toBase64(key), value: toBase64(value) },
      })),
      ...gone.map((key) => ({ requestDeleteRange: { key: toBase64(key) } })),
    ];
    for (let from = 0; from < all.length; from += 100) {
      await this.post("kv/txn", { success: all.slice(from, from + 100) });
    }
  }

  /** Revision of the cluster, as a linearizable read has it. */
  async revision(): Promise<number> {
    const answer = await this.post<{ header: { revision: string } }>("kv/range", {
      key: toBase64("/"),
      countOnly: true,
    });
    return Number(answer.header.revision);
  }

  /** Forgets all revisions before this one. */
  async compact(revision: number): Promise<void> {
    await this.post("kv/compaction", { revision: String(revision), physical: true });
  }

  async status(timeoutMs?: number): Promise<{ leader: string; memberId: string; term: number }> {
    const answer = await this.post<{
      leader?: string;
      raftTerm: string;
      header: { member_id: string };
    }>("maintenance/status", {}, timeoutMs);
    const { leader = "", raftTerm, header } = answer;
    return { leader, memberId: header.member_id, term: Number(raftTerm) };
  }
}

function rangeOf(prefix: string): object {
  const end =
    prefix.slice(0, -1) + String.fromCodePoint((prefix.codePointAt(prefix.length - 1) ?? 0) + 1);
  return { key: toBase64(prefix), range_end: toBase64(end) };
}

function toBase64(text: string): string {
  return Buffer.from(text).toString("base64");
}

function fromBase64(text: string): string {
  return Buffer.from(text, "base64").toString();
}
