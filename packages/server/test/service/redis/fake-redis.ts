import type {
  CountingRedis,
  RedisDoubt,
  RedisSeeded,
  RedisSequences,
  SequenceIssued,
  SequenceIssueRequest,
  SequenceSeedRequest,
} from "@idmint/core/server";
import { IdmintError } from "@idmint/core";

interface Hash {
  readonly generation: bigint;
  readonly run: number;
  cur: bigint;
  max: bigint;
  movedAtMs?: number;
}

/** The state of one Redis, with the rules of the scripts. A number stands for run_id and replication id together. */
export class FakeRedis {
  #run = 1;
  #hashes = new Map<string, Hash>();
  /** Tags that are noted down as empty, each under a number of its own. */
  readonly #vacancies = new Map<string, number>();
  #nextVacancy = 1;
  #snapshot = new Map<string, Hash>();
  nowMs = 0;

  get run(): number {
    return this.#run;
  }

  hash(tag: string): Readonly<Hash> | undefined {
    return this.#hashes.get(tag);
  }

  save(): void {
    this.#snapshot = copyOf(this.#hashes);
  }

  flush(): void {
    this.#hashes.clear();
    this.#vacancies.clear();
  }

  /** A new process, or a promoted replica, with the state of the last `save`. */
  restart(): void {
    this.#run++;
    this.#vacancies.clear();
    this.#hashes = copyOf(this.#snapshot);
  }

  /** The same process with the state of the last `save`: a reload, a restored key, a virtual machine set back. */
  setBack(): void {
    this.#vacancies.clear();
    this.#hashes = copyOf(this.#snapshot);
  }

  retire(tag: string): void {
    const hash = this.#hashes.get(tag) ?? { generation: 0n, run: 0, cur: 0n, max: 0n };
    this.#hashes.set(tag, { ...hash, movedAtMs: this.nowMs });
  }

  issue({ tag, generation, count, seen }: SequenceIssueRequest): SequenceIssued {
    const hash = this.#hashes.get(tag);
    if (hash === undefined) return this.#missing(tag);
    const doubt = this.#doubtOf(hash, generation);
    if (doubt !== undefined) return doubt;
    if (hash.cur < seen) return { status: "behind", generation: hash.generation };
    const { cur, max } = hash;
    if (BigInt(count) > max - cur) return { status: "exhausted", cur, max };
    hash.cur += BigInt(count);
    return { status: "issued", before: cur, last: hash.cur, max };
  }

  seed({ tag, generation, cur, max, doubt }: SequenceSeedRequest): RedisSeeded {
    const hash = this.#hashes.get(tag);
    if (hash?.movedAtMs !== undefined && this.nowMs - hash.movedAtMs < 10_000) {
      return this.#doubtOf(hash, generation) ?? this.#missing(tag);
    }
    if (hash === undefined) {
      const vacancy = this.#vacancies.get(tag)?.toString();
      if (doubt.status !== "missing" || doubt.vacancy !== vacancy) return this.#missing(tag);
    }
    if (hash !== undefined && generation <= hash.generation) {
      return { status: "other-generation", generation: hash.generation };
    }
    this.#hashes.set(tag, { generation, run: this.#run, cur, max });
    this.#vacancies.delete(tag);
    return { status: "seeded" };
  }

  raise(tag: string, generation: bigint, max: bigint): boolean {
    const hash = this.#hashes.get(tag);
    if (hash?.generation !== generation || max <= hash.max) return false;
    hash.max = max;
    return true;
  }

  #missing(tag: string): RedisDoubt {
    const vacancy = this.#vacancies.get(tag) ?? this.#nextVacancy++;
    this.#vacancies.set(tag, vacancy);
    return { status: "missing", vacancy: String(vacancy) };
  }

  #doubtOf(hash: Hash, generation: bigint): RedisDoubt | undefined {
    const has = hash.generation;
    if (hash.movedAtMs !== undefined) {
      return { status: "moved", generation: has, agoMs: this.nowMs - hash.movedAtMs };
    }
    if (hash.run !== this.#run) return { status: "restarted", generation: has };
    return has === generation ? undefined : { status: "other-generation", generation: has };
  }
}

/**
 * A server's connection to a fake Redis. `step` passes the time that messages take; a restart meanwhile breaks the
 * connection, and then what was sent may have been done or not.
 */
export function fakeRedisServer(
  name: string,
  redis: () => FakeRedis,
  step: (what: string) => Promise<void>,
  losesAnswer: () => boolean = () => false,
): CountingRedis {
  const call = async <T>(what: string, work: (redis: FakeRedis) => T): Promise<T> => {
    const target = redis();
    const { run } = target;
    await step(`${what} on its way`);
    if (target.run !== run) throw lost();
    const answer = work(target);
    await step(`answer of ${what} on its way`);
    if (target.run !== run || losesAnswer()) throw lost();
    return answer;
  };
  const sequences: Pick<RedisSequences, "issue" | "seed" | "raise"> = {
    issue: (request) => call("issue", (target) => target.issue(request)),
    seed: (request) => call("seed", (target) => target.seed(request)),
    raise: ({ tag, generation, max }) =>
      call("raise", (target) => target.raise(tag, generation, max)),
  };
  // Only what sources call; anything else would be undefined, and fail the test.
  return { name, sequences, reachable: true, refusal: "" } as unknown as CountingRedis;
}

function lost(): IdmintError {
  return new IdmintError("STORE_UNAVAILABLE", "no answer", { retryAfterMs: 1 });
}

function copyOf(hashes: ReadonlyMap<string, Hash>): Map<string, Hash> {
  return new Map([...hashes].map(([tag, hash]) => [tag, { ...hash }]));
}
