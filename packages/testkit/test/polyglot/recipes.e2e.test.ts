// The recipe of docs/languages.md for buf, followed with the real plugins. Some of them take minutes to compile, so this is for
// the long form only; pages.test.ts looks at the recipe itself.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { debianFiles, programOf } from "../../src/debian.ts";
import { blocksOf, callersOf, page } from "../../src/polyglot/pages.ts";
import { shell, withPackages } from "../../src/polyglot/project.ts";
import { isLong } from "../fleet-support.ts";

const root = path.resolve(import.meta.dirname, "../../../..");
const tools = path.join(root, "node_modules/.cache/idmint-plugins");

/** A file for each language; where the plugin of gRPC was run, one that only it writes. */
const MADE: Readonly<Record<string, string>> = {
  Go: "go/idmint/v1/id_service_grpc.pb.go",
  Java: "java/io/idmint/v1/IdServiceGrpc.java",
  Python: "python/idmint/v1/id_service_pb2_grpc.py",
  PHP: "php/Idmint/V1/IdServiceClient.php",
  Ruby: "ruby/idmint/v1/id_service_services_pb.rb",
  Rust: "rust/idmint/v1/idmint.v1.tonic.rs",
  "C#": "csharp/Idmint/V1/IdService.cs",
};
const PLATFORM = process.arch === "arm64" ? "linux-aarch_64" : "linux-x86_64";

/** The environment in which protoc and the plugins that are had are found. */
function withPlugins(): Readonly<Record<string, string>> {
  mkdirSync(tools, { recursive: true });
  for (const program of ["go", "mvn", "cargo"]) {
    const hint = `no ${program} for the tests: install Go, Maven and Rust`;
    if (spawnSync("which", [program]).status !== 0) throw new Error(hint);
  }
  const modules = readFileSync(path.join(callersOf("go"), "go.mod"), "utf8");
  const versionOf = (module: string): string =>
    new RegExp(`${module} (v\\S+)`).exec(modules)?.[1] ?? "";
  const pom = readFileSync(path.join(callersOf("java"), "pom.xml"), "utf8");
  const grpc = /<grpc\.version>(.+)</.exec(pom)?.[1] ?? "";
  const [go, grpcGo] = [
    "google.golang.org/protobuf",
    "google.golang.org/grpc/cmd/protoc-gen-go-grpc",
  ];
  const copy = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy";
  const java = `io.grpc:protoc-gen-grpc-java:${grpc}:exe:${PLATFORM}`;
  shell(
    tools,
    `
    export GOBIN="$PWD/bin"
    go install ${go}/cmd/protoc-gen-go@${versionOf(go)}
    go install ${grpcGo}@${versionOf(grpcGo)}
    mvn --quiet --batch-mode ${copy} -Dartifact=${java} -DoutputDirectory=java
    install -m 755 java/*.exe bin/protoc-gen-grpc-java
    cargo install --quiet --locked --root . protoc-gen-prost@0.5.0 protoc-gen-tonic@0.5.0`,
  );
  const debian = debianFiles({
    name: "protobuf",
    packages: ["protobuf-compiler", "protobuf-compiler-grpc"],
    libraries: [
      "libprotobuf32",
      "libprotoc32",
      "libgrpc29",
      "libabsl20220623",
      "libc-ares2",
      "libre2-9",
    ],
    find: (unpacked) => programOf(unpacked, ["grpc_ruby_plugin"]),
    hint: "no protoc for the tests: install Debian's packages protobuf-compiler and protobuf-compiler-grpc",
  });
  const folders = [path.join(tools, "bin"), path.dirname(debian.command), process.env["PATH"]];
  return { ...debian.env, PATH: folders.join(path.delimiter) };
}

test.runIf(isLong)(
  "the recipe of docs/languages.md generates for each language",
  { timeout: 1_800_000 },
  () => {
    const folder = mkdtempSync(path.join(tmpdir(), "idmint-recipes-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const recipe = /^```yaml\n([^]*?)^```$/m.exec(page)?.[1] ?? "";
    writeFileSync(path.join(folder, "buf.gen.yaml"), recipe);
    const lines = withPackages(blocksOf("Generate")[0] ?? "", folder);
    shell(folder, lines, withPlugins());
    const files = readdirSync(path.join(folder, "gen"), { recursive: true, encoding: "utf8" });
    expect(files).toEqual(expect.arrayContaining(Object.values(MADE)));
    const languages = [...recipe.matchAll(/^ {2}# (\S+)$/gm)].map(([, language]) => language);
    expect(Object.keys(MADE)).toEqual(languages);
  },
);
