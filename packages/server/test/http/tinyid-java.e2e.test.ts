// Tinyid's own Java client, unmodified, against the real server, in a long run. No registry has it: IDMINT_TINYID_JAR names the
// jar of tinyid-client and tinyid-base that your programs use, and a JDK is needed. What always runs does as it does
// (tinyid-client.ts, for drop-in.e2e.test.ts).
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { makeStepTag, startDropIn } from "./drop-in-support.ts";

const jar = process.env["IDMINT_TINYID_JAR"] ?? "";
const isLong = process.env["IDMINT_LONG"] === "1";
const IDS = isLong ? 1_000_000 : 20_000;
const CLIENTS = 4;
const THREADS = 4;

/** A program as Tinyid's users write it: many threads ask for the next id. */
const PROGRAM = `
import com.xiaoju.uemc.tinyid.client.utils.TinyId;

public class Mint {
  public static void main(String[] args) throws Exception {
    java.util.logging.LogManager.getLogManager().reset();
    int each = Integer.parseInt(args[0]);
    Thread[] threads = new Thread[Integer.parseInt(args[1])];
    for (int at = 0; at < threads.length; at++) {
      threads[at] = new Thread(() -> {
        StringBuilder lines = new StringBuilder();
        for (int id = 0; id < each; id++) lines.append(TinyId.nextId("order")).append('\\n');
        System.out.print(lines);
      });
      threads[at].start();
    }
    for (Thread thread : threads) thread.join();
    System.exit(0);
  }
}
`;

function run(command: string, args: readonly string[], cwd: string): Promise<string> {
  const child = spawn(command, args, { cwd, stdio: ["ignore", "pipe", "inherit"] });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve(Buffer.concat(chunks).toString());
      else reject(new Error(`${command} ended with ${code}`));
    });
  });
}

test.runIf(isLong || jar !== "")(
  "several processes of Tinyid's Java client get no id twice",
  async () => {
    expect(jar, "set IDMINT_TINYID_JAR to the jar of tinyid-client and tinyid-base").not.toBe("");
    const it = await startDropIn();
    await makeStepTag(it, "order", 1_000);
    const folder = mkdtempSync(path.join(tmpdir(), "idmint-tinyid-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const { httpAddress } = it.server;
    const properties = `tinyid.server=${httpAddress},${httpAddress}\ntinyid.token=any\n`;
    writeFileSync(path.join(folder, "tinyid_client.properties"), properties);
    writeFileSync(path.join(folder, "Mint.java"), PROGRAM);
    await run("javac", ["-cp", jar, "Mint.java"], folder);
    const each = String(IDS / CLIENTS / THREADS);
    const mint = async (): Promise<string> =>
      run("java", ["-cp", `${jar}${path.delimiter}.`, "Mint", each, String(THREADS)], folder);
    const printed = await Promise.all(Array.from({ length: CLIENTS }, mint));
    const ids = printed.flatMap((lines) => lines.trimEnd().split("\n"));
    expect(ids).toHaveLength(IDS);
    expect(new Set(ids).size).toBe(IDS);
    expect(ids.every((id) => /^[1-9]\d*$/.test(id))).toBe(true);
  },
  300_000,
);
