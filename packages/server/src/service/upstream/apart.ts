import { IdmintError } from "@idmint/core";

/** Most questions that one question becomes: several rows that cannot be read are found among 1,000. */
const MAX_ASKED = 100;

/**
 * Asks the store for several tags at once. A row that cannot be read fails the question that it is part of, so that is asked
 * again in halves until the tag is alone: the others have their answers. `unreadable` answers for a tag by itself.
 *
 * INVARIANT: what failed with SCHEMA_MISMATCH has changed nothing. Answers come in the order of what was asked for.
 */
export async function askApart<Asked, Answer>(
  all: readonly Asked[],
  ask: (some: readonly Asked[]) => Promise<readonly Answer[]>,
  unreadable: (one: Asked, error: IdmintError) => readonly Answer[],
): Promise<readonly Answer[]> {
  let left = MAX_ASKED;
  const answersOf = async (some: readonly Asked[]): Promise<readonly Answer[]> => {
    left--;
    try {
      return await ask(some);
    } catch (error) {
      if (!(error instanceof IdmintError) || error.reason !== "SCHEMA_MISMATCH") throw error;
      const [one] = some;
      if (one !== undefined && some.length === 1) return unreadable(one, error);
      if (left < 1) throw error;
      const middle = Math.ceil(some.length / 2);
      // One after the other: the second half takes its turn at the store after what came meanwhile.
      const first = await answersOf(some.slice(0, middle));
      if (left < 1) throw error;
      return [...first, ...(await answersOf(some.slice(middle)))];
    }
  };
  return answersOf(all);
}
