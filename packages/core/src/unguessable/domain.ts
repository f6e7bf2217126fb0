import { type FieldViolation, IdmintError } from "../errors.ts";
import { MAX_ID } from "../limits.ts";
import type { Order } from "../kinds/spec.ts";

/** Fewest numbers that are permuted: with fewer, trying all is no work (NIST SP 800-38G Rev. 1). */
const MIN_DOMAIN = 1_000_000n;
/** Numerals that a number is written in for its permutation. Four of at most 16 bits hold every id. */
const NUMERALS = 4;
/** Most values of `keyDigits`. */
const MAX_KEY_DIGITS = 3;

/**
 * Which numbers are permuted, and where the number of the key stands.
 *
 * INVARIANT: ids of two keys never meet. An id is `key × scale + n` with 1 ≤ n ≤ ceiling < scale, so the decimal digits
 * from `scale` on are the number of the key and nothing else: each key permutes 1 … ceiling into ids of its own. Within one
 * key different numbers have different ids, because a permutation is one-to-one. So a tag may change to another key, and
 * back, without a repeat, as long as its ceiling and key digits stay and the number of a key always means the same key.
 */
export interface UnguessableDomain {
  /** Highest number that is permuted; the lowest is 1. */
  readonly ceiling: bigint;
  /** 10^(decimal digits of the ceiling). */
  readonly scale: bigint;
  /** Highest number of a key: 10^keyDigits − 1. */
  readonly lastKey: number;
  /** Base of the numerals: the smallest whose NUMERALS digits reach the ceiling. */
  readonly radix: number;
}

/** The domain of a tag with this ceiling; see `unguessableViolations` for what is allowed. */
export function domainOf(ceiling: bigint, keyDigits: number): UnguessableDomain {
  let radix = Math.floor(Number(ceiling) ** (1 / NUMERALS)) - 1;
  while (BigInt(radix) ** BigInt(NUMERALS) < ceiling) radix++;
  return {
    ceiling,
    scale: 10n ** BigInt(ceiling.toString().length),
    lastKey: 10 ** keyDigits - 1,
    radix,
  };
}

/** The lowest and the highest id that any key of the domain makes. */
export function idRange(domain: UnguessableDomain): { readonly min: bigint; readonly max: bigint } {
  return {
    min: domain.scale + 1n,
    max: BigInt(domain.lastKey) * domain.scale + domain.ceiling,
  };
}

/**
 * What keeps the ids of a tag from being unguessable, by field below `field`; empty when nothing does. Its kind may: see
 * `hidingViolations`.
 */
export function unguessableViolations(
  field: string,
  settings: {
    readonly order: Order;
    readonly ceiling: bigint;
    readonly unguessable: { readonly keyId: number; readonly keyDigits: number };
  },
): FieldViolation[] {
  const { order, ceiling, unguessable } = settings;
  if (order !== "UNORDERED") {
    const description = `must be empty for order ${order}: unguessable ids have no order`;
    return [{ field, description, reason: "FIELD_CONFLICT" }];
  }
  const { keyId, keyDigits } = unguessable;
  if (!Number.isInteger(keyDigits) || keyDigits < 1 || keyDigits > MAX_KEY_DIGITS) {
    const description = `must be 1 to ${MAX_KEY_DIGITS}, got ${keyDigits}`;
    return [{ field: `${field}.key_digits`, description, reason: "VALUE_OUT_OF_RANGE" }];
  }
  const lastKey = 10 ** keyDigits - 1;
  if (!Number.isInteger(keyId) || keyId < 1 || keyId > lastKey) {
    const description = `must be 1 to ${lastKey}, got ${keyId}`;
    return [{ field: `${field}.key_id`, description, reason: "VALUE_OUT_OF_RANGE" }];
  }
  if (ceiling < MIN_DOMAIN) {
    const description = `must be at least ${MIN_DOMAIN} for unguessable ids, got ${ceiling}: fewer numbers could all be tried`;
    return [{ field: "tag.ceiling", description, reason: "VALUE_OUT_OF_RANGE" }];
  }
  const most = highestCeiling(keyDigits);
  if (ceiling <= most) return [];
  const description = `must be at most ${most} for unguessable ids, to leave room above it for the number of the key, got ${ceiling}`;
  return [{ field: "tag.ceiling", description, reason: "VALUE_OUT_OF_RANGE" }];
}

/** The highest ceiling whose ids fit 2^63 − 1 with every key. */
function highestCeiling(keyDigits: number): bigint {
  const lastKey = 10n ** BigInt(keyDigits) - 1n;
  const digits = MAX_ID.toString().length - keyDigits;
  const scale = 10n ** BigInt(digits);
  const room = MAX_ID - lastKey * scale;
  return room > 0n && room < scale ? room : scale / 10n - 1n;
}

/** One key's permutation of texts of NUMERALS numerals, each 0 … radix − 1. */
export interface Permutation {
  encrypt(numerals: readonly number[]): readonly number[];
  decrypt(numerals: readonly number[]): readonly number[];
}

/** Steps after which a walk is a fault of the permutation: fewer than one in ten leads to another one. */
const MAX_WALK = 100;

/** The id of a number under a key of the domain. The number must be 1 … ceiling, or TAG_EXHAUSTED is thrown. */
export function hide(
  domain: UnguessableDomain,
  keyId: number,
  permutation: Permutation,
  number: bigint,
): bigint {
  if (number < 1n || number > domain.ceiling) {
    throw new IdmintError("TAG_EXHAUSTED", `${number} is not within 1 … ${domain.ceiling}`);
  }
  const hidden = walk(domain, number, (numerals) => permutation.encrypt(numerals));
  return BigInt(keyId) * domain.scale + hidden;
}

/** Key and number behind an id; undefined for what is no id of the domain. */
export function keyAndRest(
  domain: UnguessableDomain,
  id: bigint,
): { readonly keyId: number; readonly rest: bigint } | undefined {
  const keyId = id / domain.scale;
  const rest = id % domain.scale;
  if (keyId < 1n || keyId > BigInt(domain.lastKey) || rest < 1n || rest > domain.ceiling) {
    return undefined;
  }
  return { keyId: Number(keyId), rest };
}

/** The number that `hide` made this rest of, under the same key. */
export function reveal(domain: UnguessableDomain, permutation: Permutation, rest: bigint): bigint {
  return walk(domain, rest, (numerals) => permutation.decrypt(numerals));
}

/**
 * The permutation of 1 … ceiling that one of 0 … radix^NUMERALS − 1 makes: again and again, until it is within. One-to-one,
 * since it goes along a cycle from one number of the domain to the next one on it.
 */
function walk(
  { ceiling, radix }: UnguessableDomain,
  number: bigint,
  step: (numerals: readonly number[]) => readonly number[],
): bigint {
  const base = BigInt(radix);
  let numerals: readonly number[] = numeralsOf(number - 1n, base);
  for (let steps = 0; steps < MAX_WALK; steps++) {
    numerals = step(numerals);
    const value = numerals.reduce((sum, numeral) => sum * base + BigInt(numeral), 0n);
    if (value < ceiling) return value + 1n;
  }
  throw new IdmintError("INTERNAL", `no number of the domain in ${MAX_WALK} permutations`);
}

function numeralsOf(value: bigint, base: bigint): number[] {
  const numerals = Array.from({ length: NUMERALS }, () => 0);
  let rest = value;
  for (let at = NUMERALS - 1; at >= 0; at--) {
    numerals[at] = Number(rest % base);
    rest /= base;
  }
  return numerals;
}
