import { expect, test } from "vitest";
import { devServer } from "./dev-server.ts";
import { shell, snippet } from "./snippets.ts";

const FILE = "docs/sequences.md";

const server = devServer();

test("the command lines of docs/sequences.md run as printed, and so does its program", async () => {
  const env = { IDMINT_ADDRESS: server.grpcAddress };
  const commands = await shell(snippet(FILE, "Making one", "sh"), { env });
  expect([commands.exitCode, commands.err]).toEqual([0, ""]);
  expect(commands.out).toMatch(/^kind +sequence$/m);
  expect(commands.out).toMatch(/^1\n/m);
  expect(commands.out).toMatch(/^20\d{6}-1\n\{"tag":"invoice","periodIds":\[\{"period":"20/m);
  expect(commands.out).toMatch(/^keep for +400d$/m);
  expect(commands.out).toMatch(/^PERIOD  LAST ID +ENDED$/m);

  const code = snippet(FILE, "In the SDK", "js").replace("127.0.0.1:7600", server.grpcAddress);
  const line = "npx pnpm@10 exec node -C idmint-source --input-type=module -";
  const program = await shell(line, { input: code });
  expect([program.exitCode, program.err]).toEqual([0, ""]);
  expect(program.out).toBe("2n\ntrue true\n");
});
