import { allWellOr, fail, type Finding, ok, warn } from "./checks.ts";

/** A clock, as this machine saw it. */
export interface ClockSeen {
  readonly of: string;
  /** How far it is ahead of this machine's clock; negative: behind. */
  readonly aheadMs: number;
  /** By how much that may be wrong: half of the time that the answer took. */
  readonly errorMs: number;
}

/** A clock that showed `timeMs` in an answer that came now to what was sent at `sentAt`, both by this machine's clock. */
export function seen(of: string, timeMs: number, sentAt: number): ClockSeen {
  const cameAt = Date.now();
  return { of, aheadMs: timeMs - (sentAt + cameAt) / 2, errorMs: (cameAt - sentAt) / 2 };
}

/** Below this it is the way of the answer, and nothing in idmint minds. */
const WARN_MS = 500;
const FIX =
  "let NTP (chrony, systemd-timesyncd) set its clock, slowly; see docs/runbooks/clock-wrong.md";

/**
 * Which clocks differ from the middle of all, this machine's among them. With two clocks nobody can tell which one is
 * wrong, so both are named.
 */
export function clockFindings(clocks: readonly ClockSeen[], maxMs: number): readonly Finding[] {
  const own: ClockSeen = { of: "this machine", aheadMs: 0, errorMs: 0 };
  const all = [own, ...clocks].toSorted((a, b) => a.aheadMs - b.aheadMs);
  if (clocks.length === 0) return [ok("no clock but this machine's was seen")];
  const [first = own, last = own] = [all[0], all.at(-1)];
  const spread = last.aheadMs - first.aheadMs;
  if (all.length === 2 && spread - first.errorMs - last.errorMs > WARN_MS) {
    const told = spread > maxMs ? fail : warn;
    return [told(`the clocks of ${first.of} and ${last.of} differ by ${textOf(spread)}`, FIX)];
  }
  const middle = all[Math.floor((all.length - 1) / 2)]?.aheadMs ?? 0;
  return allWellOr(
    all.map(({ of, aheadMs, errorMs }) => {
      const off = Math.max(0, Math.abs(aheadMs - middle) - errorMs);
      if (off <= WARN_MS) return undefined;
      const way = aheadMs > middle ? "ahead" : "behind";
      const told = off > maxMs ? fail : warn;
      return told(`the clock of ${of} is ${textOf(off)} ${way} of the others`, FIX);
    }),
    `${all.length} clocks within ${Math.ceil(spread)} ms`,
  );
}

function textOf(ms: number): string {
  return ms < 10_000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 1_000)} s`;
}
