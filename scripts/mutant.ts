/** A fault, planted by replacing a text that stands exactly once in a file, and the tests that must notice it. */
export interface Mutant {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  readonly tests: readonly string[];
  /** A pattern for the names of those that are run, where a file takes long; without it all of them are. */
  readonly only?: string;
}
