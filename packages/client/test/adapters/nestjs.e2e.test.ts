// @idmint/client/nestjs against NestJS, Terminus and a server.
import "reflect-metadata";
import {
  Inject,
  Module,
  type ModuleMetadata,
  type ServiceUnavailableException,
  type Type,
} from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { HealthCheckService, TerminusModule } from "@nestjs/terminus";
import { expect, onTestFinished, test } from "vitest";
import {
  ID_CLIENT,
  idTagToken,
  IdmintHealth,
  IdmintModule,
  InjectIdClient,
  InjectIdTag,
} from "../../src/adapters/nestjs.ts";
import { createIdClient, type IdClient, type IdClientEvent, type IdTag } from "../../src/index.ts";
import { createTestIdClient, type TestIdClient } from "../../src/testing.ts";
import { RealFleet } from "../real-fleet.ts";
import { reasonOf, refusal } from "../support.ts";

class Orders {
  readonly orders: IdTag;
  readonly client: IdClient;

  constructor(orders: IdTag, client: IdClient) {
    this.orders = orders;
    this.client = client;
  }
}
// As TypeScript compiles `constructor(@InjectIdTag("orders") …, @InjectIdClient() …)`.
InjectIdTag("orders")(Orders, undefined, 0);
InjectIdClient()(Orders, undefined, 1);

function moduleOf(options: ModuleMetadata): Type {
  // oxlint-disable-next-line typescript/no-extraneous-class
  const made = class {};
  Module(options)(made);
  return made;
}

async function start(imports: NonNullable<ModuleMetadata["imports"]>) {
  // A module below the one that imports ours: it is global.
  const inner = moduleOf({ providers: [Orders], exports: [Orders] });
  const shop = moduleOf({ imports: [...imports, inner] });
  const app = await NestFactory.createApplicationContext(shop, {
    logger: false,
    abortOnError: false,
  });
  onTestFinished(() => app.close());
  return app;
}

async function realClient(tag: string, events: IdClientEvent[] = []): Promise<IdClient> {
  const fleet = await RealFleet.start(1);
  onTestFinished(() => fleet[Symbol.asyncDispose]());
  await fleet.createTag(tag);
  return createIdClient({ addresses: fleet.addresses, onEvent: (event) => events.push(event) });
}

test("forRoot: tags and client are injected anywhere, and warm; the end gives unused ids back", async () => {
  const events: IdClientEvent[] = [];
  const client = await realClient("orders", events);
  const app = await start([IdmintModule.forRoot({ client, tags: ["orders"] })]);
  const { orders, client: injected } = app.get(Orders, { strict: false });
  expect(orders.nextSync()).toBe(1n);
  expect(injected).toBe(client);
  expect(app.get(ID_CLIENT)).toBe(client);
  expect(app.get(idTagToken("orders"))).toBe(orders);
  await app.close();
  expect(events.filter(({ type }) => type === "released")).toHaveLength(1);
  expect(await reasonOf(client.tag("orders").next())).toBe("CLIENT_CLOSED");
});

test("forRootAsync: the client is made of what is injected", async () => {
  class Settings {
    readonly make = createTestIdClient;
  }
  const configuration = moduleOf({ providers: [Settings], exports: [Settings] });
  const app = await start([
    IdmintModule.forRootAsync({
      imports: [configuration],
      inject: [Settings],
      useFactory: async (settings: Settings) => settings.make({ start: 500n }),
      tags: ["orders"],
    }),
  ]);
  expect(await app.get(Orders, { strict: false }).orders.next()).toBe(500n);
});

test("the application does not start without its tags", async () => {
  const client = await realClient("orders");
  const error = await refusal(
    start([IdmintModule.forRoot({ client, tags: ["orders", "nobody"] })]),
  );
  expect([error.reason, error.metadata["tag"]]).toEqual(["TAG_NOT_FOUND", "nobody"]);
  await client.close();
});

test("a tag that is not one of the module's is named when it is injected", async () => {
  const client = createTestIdClient();
  const missing = start([IdmintModule.forRoot({ client, tags: ["lines"] })]);
  await expect(missing).rejects.toThrow("tag:orders");
});

test("ids can be minted while the application's own providers end", async () => {
  const client = createTestIdClient();
  const minted: bigint[] = [];
  class Worker {
    readonly ids: IdClient;
    constructor(ids: IdClient) {
      this.ids = ids;
    }
    async onModuleDestroy(): Promise<void> {
      minted.push(await this.ids.tag("orders").next());
    }
    async beforeApplicationShutdown(): Promise<void> {
      minted.push(await this.ids.tag("orders").next());
    }
  }
  Inject(ID_CLIENT)(Worker, undefined, 0);
  const work = moduleOf({ providers: [Worker] });
  const app = await start([IdmintModule.forRoot({ client, tags: ["orders"] }), work]);
  await app.close();
  expect(minted).toEqual([1n, 2n]);
  expect(await reasonOf(client.tag("orders").next())).toBe("CLIENT_CLOSED");
});

async function checked(client: TestIdClient): Promise<unknown> {
  const module = IdmintModule.forRoot({ client, tags: ["orders", "strict"] });
  const app = await start([module, TerminusModule.forRoot({ logger: false })]);
  const health = app.get(HealthCheckService, { strict: false });
  const ids = app.get(IdmintHealth, { strict: false });
  const look = async (): Promise<unknown> =>
    health
      .check([() => ids.isHealthy()])
      .catch((error: unknown) => (error as ServiceUnavailableException).getResponse());
  const before = await look();
  client.tag("orders").failWith("TAG_PAUSED");
  return [before, await look()];
}

test("Terminus tells health with the state of each tag", async () => {
  const client = createTestIdClient();
  client.tag("strict").setKind("sequence");
  const well = { orders: "in memory", strict: "minted by servers" };
  expect(await checked(client)).toMatchObject([
    { status: "ok", info: { idmint: { status: "up", tags: well } } },
    {
      status: "error",
      error: { idmint: { status: "down", tags: { ...well, orders: "TAG_PAUSED" } } },
    },
  ]);
});
