// Faults that the judges must find: each is planted into the sources while a program is bundled.
import type { Point } from "./library.ts";
import type { NamedPoint } from "./life.ts";

/** Another text in the place of one that a file of the sources has once. */
export interface Change {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

export interface PlantedFault {
  readonly changes: readonly Change[];
  readonly points: readonly (NamedPoint | Point)[];
  /** What is said of it. */
  readonly noticed: RegExp;
}

const DATABASE = "packages/server/src/store/sqlite/file/database.ts";

/** On SQLite, whose statements are the server's own. */
export const PLANTED: Readonly<Record<string, PlantedFault>> = {
  "a grant is answered up to a tenth of a second before its commit": {
    changes: [
      {
        file: DATABASE,
        from: '    try {\n      // failpoint: sqlite-committing\n      handle.sqlite.exec("COMMIT");\n',
        to: '    try {\n      late = () => {\n        late = undefined;\n        handle.sqlite.exec("COMMIT");\n      };\n      setTimeout(() => late?.(), 100);\n',
      },
      {
        file: DATABASE,
        from: "  #begin(sql: string, deadlineMs: number): Handle {\n",
        to: "  #begin(sql: string, deadlineMs: number): Handle {\n    late?.();\n",
      },
      {
        file: DATABASE,
        from: "export class Database {\n",
        to: "let late: (() => void) | undefined;\n\nexport class Database {\n",
      },
    ],
    points: [9, 10, 11, 12, 13, 14].map((at) => ({ failpoint: "grant-arrived", at })),
    // What the server wrote down of its grants shows that the store lacks one, so it refuses to go on.
    noticed: /STORE_EPOCH_CHANGED/u,
  },
  "a grant takes three segments for one": {
    changes: [
      {
        file: "packages/server/src/store/sqlite/grant.ts",
        from: "  transaction.run(GRANT, floor + count, version, nowMs, tag);\n  moved.changes++;\n  moved.floors += floor + count - old.floor;\n",
        to: "  transaction.run(GRANT, floor + count * 3n, version, nowMs, tag);\n  moved.changes++;\n  moved.floors += floor + count * 3n - old.floor;\n",
      },
    ],
    points: [{ call: "send", at: 60, isTorn: false }],
    noticed: /: a gap of \d+ ids, of segments of/u,
  },
  "a server that stops gives ids back that it has issued": {
    changes: [
      {
        file: "packages/server/src/service/issue/give-back.ts",
        from: "    if (lastOf(segment) === from - 1n) from = segment.base;\n",
        to: "    if (lastOf(segment) === from - 1n) from = segment.base - 10n;\n",
      },
    ],
    // More than it makes, so that it is told to stop.
    points: [{ call: "send", at: 100_000, isTorn: false }],
    noticed: /: twice$|and \d+ was answered$|is above the floor/u,
  },
  "what a caller gave back is handed out twice": {
    changes: [
      {
        file: "packages/server/src/service/issue/ids.ts",
        from: "    const accepted = isFit && isNoted ? entry.buffer.putBack(segments, generation) : 0;\n",
        to: "    if (isFit && isNoted) entry.buffer.putBack(segments, generation);\n    const accepted = isFit && isNoted ? entry.buffer.putBack(segments, generation) : 0;\n",
      },
    ],
    points: [100_000, 100_000].map((at) => ({ call: "send", at, isTorn: false })),
    noticed: /^orders \d+: twice$/u,
  },
};
