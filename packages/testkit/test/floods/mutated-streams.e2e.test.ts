// Bytes of connections that no client would send: the server answers or ends each, goes on, and nobody else notices.
// IDMINT_LONG=1 sends 1,000,000 of them. IDMINT_SEED=… repeats a run.
import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { buildPackages } from "../../bench/lib/build.ts";
import { isLong } from "../fleet-support.ts";
import { Dice, mutatedStream } from "./mutated-streams.ts";
import { Memory, overGrpc, startTarget, TAG, type Target, Victim, warm } from "./target.ts";

const STREAMS = isLong ? 1_000_000 : 1_000;
/** How many come before memory is looked at: the first ones compile what nobody else's calls need. */
const WARM = isLong ? 20_000 : 300;
const AT_ONCE = 32;
const MORE_MEMORY_MB = 64;
/** So many addresses connect in turns, since each has few ports and a closed connection keeps one for a minute. */
const ADDRESSES = 200;
const seed = Number(process.env["IDMINT_SEED"] ?? Math.floor(Math.random() * 2 ** 31));

/** One connection: sends its bytes, in two parts, ends its side, and waits until the server has. */
async function attack(
  host: string,
  port: number,
  bytes: Buffer,
  at: number,
  cut: number,
): Promise<void> {
  const localAddress = `127.0.1.${1 + (at % ADDRESSES)}`;
  const socket = connect({ host, port, localAddress, noDelay: true });
  socket.on("error", () => undefined);
  socket.resume();
  const closed = once(socket, "close").catch(() => undefined);
  socket.write(bytes.subarray(0, cut));
  socket.end(bytes.subarray(cut));
  await closed;
}

async function attackAll({ address }: Target, dice: Dice, streams: number): Promise<void> {
  const [host = "", port = ""] = address.split(":");
  let sent = 0;
  const worker = async (): Promise<void> => {
    while (sent < streams) {
      const at = sent++;
      const bytes = mutatedStream(dice, TAG);
      await attack(host, Number(port), bytes, at, dice.below(bytes.length));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

test("mutated byte streams cost nobody else anything", { timeout: 3_600_000 }, async () => {
  if (isLong) await buildPackages();
  const target = await startTarget("fast", false);
  await warm(target);
  const victim = new Victim(overGrpc(target));
  const dice = new Dice(seed);
  await attackAll(target, dice, WARM);
  const memory = new Memory(target);
  await attackAll(target, dice, STREAMS - WARM);
  const [before, most] = [memory.before, memory.most].map(Math.round) as [number, number];
  await victim.stop();
  const told = `seed ${seed}: ${before} MB before, ${most} MB at most, ${victim.latencies.length} answers`;
  if (isLong) console.log(told);
  expect(target.server.exit, target.server.describe()).toBeUndefined();
  expect(victim.errors, told).toEqual([]);
  expect(victim.latencies.length).toBeGreaterThan(10);
  expect(most, told).toBeLessThanOrEqual(before + MORE_MEMORY_MB);
  expect(target.server.describe()).not.toContain("internal-error");
});
