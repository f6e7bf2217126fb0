// What `prisma generate` does, by the package that it does it with. The command itself fetches engines first that neither
// the generator nor the client uses.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

interface Generator {
  readonly getDMMF: (options: { datamodel: readonly [string, string][] }) => Promise<unknown>;
  readonly PrismaClientTsGenerator: new () => { generate(options: unknown): Promise<void> };
}

/** Makes the client of a schema, as TypeScript. */
export async function makePrismaClient(schemaPath: string, output: string): Promise<void> {
  // Its face of ES modules does not load.
  const load = createRequire(import.meta.url);
  const { getDMMF, PrismaClientTsGenerator } = load("@prisma/client-generator-ts") as Generator;
  const datamodel = readFileSync(schemaPath, "utf8");
  await new PrismaClientTsGenerator().generate({
    datamodel,
    dmmf: await getDMMF({ datamodel: [[schemaPath, datamodel]] }),
    schemaPath,
    generator: {
      name: "client",
      provider: { value: "prisma-client", fromEnvVar: null },
      output: { value: output, fromEnvVar: null },
      config: {},
      previewFeatures: [],
      binaryTargets: [],
      sourceFilePath: schemaPath,
    },
    otherGenerators: [],
    datasources: [
      {
        name: "db",
        provider: "postgresql",
        activeProvider: "postgresql",
        url: { value: null, fromEnvVar: null },
        schemas: [],
        sourceFilePath: schemaPath,
      },
    ],
    version: "test",
  });
}
