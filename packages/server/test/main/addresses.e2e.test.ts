// Each of the addresses of a server, with what is served there and what is not.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { credentials } from "@grpc/grpc-js";
import {
  AuditServiceService,
  CreateTagRequest,
  GetTagRequest,
  ListAuditEventsRequest,
  NodeServiceService,
  PauseTagRequest,
  TagServiceService,
} from "@idmint/proto";
import { AuditServiceClient, ServerReflectionClient } from "@idmint/proto/grpc-js";
import type { ServerReflectionResponse } from "@idmint/proto/reflection";
import { serverEnv } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import type { Serving } from "../../src/main/running.ts";
import { startServing } from "../../src/main/serving.ts";
import { makeStore } from "../../src/main/stores.ts";
import { call, clientsOf, createTag, generateId, refusalOf } from "../support.ts";

/** A server on a store of its own, on free ports. */
async function started(flags: Record<string, string>): Promise<Serving> {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-addresses-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const all = {
    "store-url": `sqlite:${path.join(folder, "idmint.db")}`,
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "log-level": "silent",
    "drain-time": "500ms",
    ...flags,
  };
  const config = loadConfig({ env: serverEnv(), flags: all, defaults: {} });
  await makeStore({ ...config, processes: 1 });
  const server = await startServing(config);
  onTestFinished(() => server.close());
  return server;
}

/** Services that reflection lists; undefined: there is no reflection. */
async function reflected(address: string): Promise<number | undefined> {
  const client = new ServerReflectionClient(address, credentials.createInsecure());
  onTestFinished(() => client.close());
  const stream = client.serverReflectionInfo();
  stream.write({ host: "", messageRequest: { $case: "listServices", value: "" } });
  stream.end();
  try {
    let found: number | undefined;
    for await (const response of stream as AsyncIterable<ServerReflectionResponse>) {
      const { messageResponse: answer } = response;
      if (answer?.$case === "listServicesResponse") found = answer.value.service.length;
    }
    return found;
  } catch (error) {
    expect(error).toMatchObject({ code: 12 });
    return undefined;
  }
}

function listAudit(address: string): Promise<unknown> {
  const client = new AuditServiceClient(address, credentials.createInsecure());
  onTestFinished(() => client.close());
  const request = ListAuditEventsRequest.fromPartial({});
  return call(client, AuditServiceService.listAuditEvents, request);
}

test.each([["1"], ["2"]])(
  "with an address for administrators their methods are served there only, in %s process(es)",
  async (processes) => {
    const flags = { "admin-address": "127.0.0.1:0", "http-address": "none", processes };
    const { grpcAddress, adminAddress, httpAddress } = await started(flags);
    expect(httpAddress).toBe("");
    expect(adminAddress).toMatch(/^127\.0\.0\.1:\d+$/);
    const [open, admin] = [clientsOf(grpcAddress), clientsOf(adminAddress)];
    await createTag(admin, "orders");
    // Ids, and what everybody may look at, are served at both.
    for (const clients of [open, admin]) {
      const { tag } = await call(
        clients.tags,
        TagServiceService.getTag,
        GetTagRequest.fromPartial({ name: "orders" }),
      );
      expect(tag?.name).toBe("orders");
      await generateId(clients, "orders", 20_000);
    }
    const request = CreateTagRequest.fromPartial({
      tag: { name: "more", kind: { $case: "segment", value: {} } },
    });
    const refused = [
      () => call(open.tags, TagServiceService.createTag, request),
      // Whether a tag is there makes no difference.
      () =>
        call(
          open.tags,
          TagServiceService.pauseTag,
          PauseTagRequest.fromPartial({ name: "orders" }),
        ),
      () =>
        call(open.tags, TagServiceService.pauseTag, PauseTagRequest.fromPartial({ name: "ghost" })),
      () => call(open.nodes, NodeServiceService.stopIssuing, { validateOnly: false }),
      () => listAudit(grpcAddress),
    ];
    for (const answer of refused) {
      const refusal = await refusalOf(answer());
      expect([refusal.code, refusal.reason]).toEqual(["UNIMPLEMENTED", "METHOD_NOT_FOUND"]);
      expect(refusal.message).toContain("admin.address");
      expect(refusal.message).not.toContain(adminAddress.split(":")[1]);
    }
    await call(admin.nodes, NodeServiceService.stopIssuing, { validateOnly: false });
    await call(admin.nodes, NodeServiceService.resumeIssuing, { validateOnly: false });
    expect(await listAudit(adminAddress)).toMatchObject({ events: expect.anything() as unknown });
    expect(await reflected(grpcAddress)).toBeUndefined();
    expect(await reflected(adminAddress)).toBeGreaterThan(4);
  },
  60_000,
);

test("without one, administrators are served where everybody is, and so is reflection", async () => {
  const { grpcAddress, adminAddress } = await started({});
  expect(adminAddress).toBe("");
  await createTag(clientsOf(grpcAddress), "orders");
  expect(await reflected(grpcAddress)).toBeGreaterThan(4);
});

test("reflection and the probes can be switched off", async () => {
  const { grpcAddress, httpAddress } = await started({ reflection: "off", "http-address": "none" });
  expect(httpAddress).toBe("");
  expect(await reflected(grpcAddress)).toBeUndefined();
  await createTag(clientsOf(grpcAddress), "orders");
});
