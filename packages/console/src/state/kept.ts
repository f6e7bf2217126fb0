/** A storage of the browser. A person may have switched it off: then nothing is kept, and everything else works. */
export function keptIn(storage: () => Storage, key: string): Kept {
  return {
    read: () => tried(() => storage().getItem(key)) ?? undefined,
    write: (value) => {
      tried(() => {
        if (value === undefined) storage().removeItem(key);
        else storage().setItem(key, value);
      });
    },
  };
}

interface Kept {
  readonly read: () => string | undefined;
  /** `undefined` removes it. */
  readonly write: (value: string | undefined) => void;
}

function tried<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
