/** Calls at once. */
const LANES = 8;

/** Does work for each part, a few at once; answers in the order of the parts. No further one begins once one has failed. */
export async function inLanes<Part, Answer>(
  parts: readonly Part[],
  work: (part: Part) => Promise<Answer>,
): Promise<readonly Answer[]> {
  const answers: Answer[] = [];
  const left = parts.entries();
  let hasFailed = false;
  const lane = async (): Promise<void> => {
    for (const [at, part] of left) {
      if (hasFailed) return;
      try {
        answers[at] = await work(part);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(LANES, parts.length) }, lane));
  return answers;
}

/** Parts of at most `most`. */
export function partsOf<T>(all: readonly T[], most: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(all.length / most) }, (_, at) =>
    all.slice(at * most, (at + 1) * most),
  );
}
