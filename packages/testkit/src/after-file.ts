// What helpers clean up when a test file is over. A worker runs many files and loads a helper once, so that a hook which a
// helper registers while it is loaded would serve the first file alone.
const cleanups = new Set<() => unknown>();

/** Runs something, once, when the test file is over that runs now, whoever loaded this helper. */
export function afterFile(cleanup: () => unknown): void {
  cleanups.add(cleanup);
}

/** The newest first, as hooks do. */
export async function cleanUpAfterFile(): Promise<void> {
  const due = [...cleanups].toReversed();
  cleanups.clear();
  for (const cleanup of due) await cleanup();
}
