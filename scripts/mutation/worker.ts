// A warm Vitest, to which its parent sends one fault after the other.
import { readFileSync } from "node:fs";
import path from "node:path";
import {
  createVitest,
  type TestModule,
  type TestSequencer,
  type TestSpecification,
} from "vitest/node";
import { productPackages, root } from "../lib.ts";
import { type Fault, withFaults } from "./mutator.ts";

/** Faults of one file, each of which has the number `first` + its index. */
export interface Planned {
  readonly file: string;
  readonly first: number;
  readonly faults: readonly Fault[];
}

export interface Task {
  /** The number of a fault; 0: what each test file reaches is noted. */
  readonly fault: number;
  /** Test files, in the order in which they run. */
  readonly tests: readonly string[];
  readonly timeoutMs: number;
}

export interface Outcome {
  /** What failed first, and why. */
  readonly failed: string | undefined;
  readonly ran: readonly {
    readonly test: string;
    readonly ms: number;
    readonly reached: readonly number[];
  }[];
}

interface Manifest {
  readonly name: string;
  readonly exports?: Readonly<Record<string, { readonly "idmint-source"?: string }>>;
}

const conditions = ["idmint-source"];

/** The sources behind each name by which our packages are imported. */
const sources = [...productPackages, "testkit"].flatMap((folder) => {
  const place = path.join(root, "packages", folder);
  const { name, exports } = JSON.parse(
    readFileSync(path.join(place, "package.json"), "utf8"),
  ) as Manifest;
  return Object.entries(exports ?? {}).flatMap(([entry, { "idmint-source": source }]) => {
    const find = new RegExp(`^${path.posix.join(name, entry)}$`);
    return source === undefined ? [] : [{ find, replacement: path.join(place, source) }];
  });
});

/** Keeps the order that it gets. */
class InOrder implements TestSequencer {
  async shard(tests: TestSpecification[]): Promise<TestSpecification[]> {
    return tests;
  }
  async sort(tests: TestSpecification[]): Promise<TestSpecification[]> {
    return tests;
  }
}

async function start(planned: readonly Planned[]): Promise<(task: Task) => Promise<Outcome>> {
  const vitest = await createVitest(
    {
      config: false,
      root,
      watch: false,
      include: ["packages/*/test/**/*.test.ts"],
      pool: "forks",
      // What a module reads when it is loaded is read anew for each fault.
      isolate: true,
      // It knows nothing of which faults were compiled in.
      fsModuleCache: false,
      maxWorkers: 1,
      bail: 1,
      execArgv: ["-C", "idmint-source"],
      expect: { poll: { timeout: 10_000 } },
      setupFiles: ["packages/testkit/src/file-setup.ts", "scripts/mutation/setup.ts"],
      sequence: { sequencer: InOrder },
      reporters: [{}],
    },
    {
      // What a package's own tests import by its name, Vite would leave to Node.
      resolve: { conditions, alias: sources },
      ssr: { resolve: { conditions, externalConditions: conditions } },
      plugins: [
        {
          name: "idmint-faults",
          enforce: "pre",
          transform(text, id) {
            const its = planned.find(({ file }) => id === path.join(root, file));
            return its && { code: withFaults(text, its.faults, its.first), map: null };
          },
        },
      ],
    },
  );
  const project = vitest.getRootProject();
  return async ({ fault, tests, timeoutMs }) => {
    vitest.provide("fault", fault);
    vitest.provide("timeoutMs", timeoutMs);
    const result = await vitest.runTestSpecifications(
      tests.map((test) => project.createSpecification(path.join(root, test))),
    );
    // The files of earlier runs are told again.
    const ran = result.testModules.filter((one) => tests.includes(one.relativeModuleId));
    const [failed] = [...ran.flatMap(failuresOf), ...result.unhandledErrors.map(messageOf)];
    return { failed, ran: ran.map(ranOf) };
  };
}

async function serve(planned: readonly Planned[]): Promise<void> {
  const run = await start(planned);
  process.on("message", (task: Task) => {
    void (async () => process.send?.(await run(task)))();
  });
  process.send?.("ready");
}

function failuresOf(module: TestModule): readonly string[] {
  const failed = [...module.children.allTests("failed")].map(
    (test) => `${test.fullName}: ${test.result().errors?.[0]?.message}`,
  );
  const others = module.errors().map(({ message }) => message);
  return [...failed, ...others].map((text) => `${module.relativeModuleId}: ${text}`);
}

/** It comes from another process, and need not be an Error any more. */
function messageOf(error: unknown): string {
  return `unhandled: ${(error as Partial<Error> | undefined)?.message}`;
}

function ranOf(module: TestModule): Outcome["ran"][number] {
  const { duration, collectDuration, setupDuration } = module.diagnostic();
  return {
    test: module.relativeModuleId,
    ms: Math.round(duration + collectDuration + setupDuration),
    reached: module.meta().reached ?? [],
  };
}

process.once("disconnect", () => process.exit());
process.once("message", (planned: readonly Planned[]) => void serve(planned));
