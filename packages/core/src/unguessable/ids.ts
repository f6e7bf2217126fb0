import { IdmintError, invalidField } from "../errors.ts";
import {
  domainOf,
  hide,
  keyAndRest,
  type Permutation,
  reveal,
  type UnguessableDomain,
} from "./domain.ts";

/** A key, made ready for numerals of a base. */
export type KeyedPermutation = (radix: number) => Permutation;

/** Goes from the numbers of one tag to its unguessable ids and back, with the keys there are. */
export class UnguessableIds {
  readonly #domain: UnguessableDomain;
  readonly #permutations = new Map<number, Permutation>();

  /** Keys by their number; `unguessableViolations` says which ceilings and digits there are. */
  constructor(
    tag: { readonly ceiling: bigint; readonly keyDigits: number },
    keys: Iterable<readonly [keyId: number, key: KeyedPermutation]>,
  ) {
    this.#domain = domainOf(tag.ceiling, tag.keyDigits);
    for (const [keyId, key] of keys) this.#permutations.set(keyId, key(this.#domain.radix));
  }

  /** The id of a number under a key. KEY_UNKNOWN without that key, TAG_EXHAUSTED for a number past the ceiling. */
  hide(number: bigint, keyId: number): bigint {
    const permutation = this.#permutations.get(keyId);
    if (permutation === undefined) throw keyUnknown(keyId);
    return hide(this.#domain, keyId, permutation, number);
  }

  /** Number and key behind an id. INVALID_ARGUMENT for what is no id of the tag, and for one of a key that is not here. */
  reveal(id: bigint, field = "id"): { readonly number: bigint; readonly keyId: number } {
    const found = keyAndRest(this.#domain, id);
    if (found === undefined) throw invalidField(field, `${id} is no id of this tag`, "INVALID_ID");
    const permutation = this.#permutations.get(found.keyId);
    if (permutation === undefined)
      throw invalidField(
        field,
        `is an id of key ${found.keyId}, which this program does not have`,
        "INVALID_ID",
      );
    return { number: reveal(this.#domain, permutation, found.rest), keyId: found.keyId };
  }
}

/** A key that a tag wants and that was not given. */
export function keyUnknown(keyId: number): IdmintError {
  return new IdmintError("KEY_UNKNOWN", `key ${keyId} of unguessable ids is not known here`, {
    metadata: { key_id: String(keyId) },
  });
}
