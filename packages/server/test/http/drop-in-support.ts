import { Agent, request as send } from "node:http";
import { CreateTagRequest, TagServiceService } from "@idmint/proto";
import { onTestFinished } from "vitest";
import { call, startTest, type TestServer } from "../support.ts";

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly body: string;
}

/** Asks as callers of Leaf and Tinyid do: a path of their making, sent as it is. */
export type Ask = (
  path: string,
  method?: string,
  headers?: Record<string, string>,
) => Promise<Answer>;

export function asking(address: string, connections = 4): Ask {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  onTestFinished(() => agent.destroy());
  const [host = "", port = ""] = address.split(":");
  return (path, method = "GET", headers = {}) =>
    new Promise((resolve, reject) => {
      const request = send({ host, port, agent, path, method, headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.once("error", reject);
        response.once("end", () => {
          const text = (name: string): string | undefined => {
            const value = response.headers[name];
            return value === undefined ? undefined : String(value);
          };
          resolve({
            status: response.statusCode ?? 0,
            type: text("content-type") ?? "",
            reason: text("idmint-reason"),
            message: text("idmint-message"),
            body: Buffer.concat(chunks).toString(),
          });
        });
      });
      request.once("error", reject);
      request.end();
    });
}

export interface DropIn extends TestServer {
  readonly ask: Ask;
}

/** A server that answers as Leaf and Tinyid do. */
export async function startDropIn(
  options: Parameters<typeof startTest>[0] = {},
  connections?: number,
): Promise<DropIn> {
  const flags = { "http-leaf": "true", "http-tinyid": "true", ...options.flags };
  const it = await startTest({ ...options, flags });
  return { ...it, ask: asking(it.server.httpAddress, connections) };
}

/** Makes a tag of any kind. */
export async function makeTag(
  { tags }: Pick<TestServer, "tags">,
  tag: NonNullable<Parameters<typeof CreateTagRequest.fromPartial>[0]["tag"]>,
): Promise<void> {
  await call(tags, TagServiceService.createTag, CreateTagRequest.fromPartial({ tag }));
}

/** Makes a tag of kind segment that hands out segments to Tinyid's clients. */
export async function makeStepTag(
  it: Pick<TestServer, "tags">,
  name: string,
  tinyidStep: number,
): Promise<void> {
  await makeTag(it, { name, kind: { $case: "segment", value: { tinyidStep } } });
}
