import "../node-version.ts";
import {
  type DynamicModule,
  Inject,
  Module,
  type ModuleMetadata,
  type Provider,
} from "@nestjs/common";
import type { IdClient } from "../api.ts";
import { type IdmintOptions, type Readiness, readinessOf, warmAll } from "./readiness.ts";

export type { IdmintOptions, Readiness, TagReadiness } from "./readiness.ts";

/** The injection token of the client. */
export const ID_CLIENT: unique symbol = Symbol.for("@idmint/client/nestjs:client");

/** The injection token of a tag. */
export function idTagToken(tag: string): string {
  return `@idmint/client/nestjs:tag:${tag}`;
}

/** Injects the client. */
export const InjectIdClient = (): ParameterDecorator & PropertyDecorator => Inject(ID_CLIENT);

/** Injects a tag, which must be one of the module's `tags`. */
export const InjectIdTag = (tag: string): ParameterDecorator & PropertyDecorator =>
  Inject(idTagToken(tag));

/** Options of `IdmintModule.forRootAsync`. */
export interface IdmintAsyncOptions extends Pick<ModuleMetadata, "imports"> {
  /** What `useFactory` is called with. Default: nothing. */
  readonly inject?: readonly NonNullable<Parameters<typeof Inject>[0]>[] | undefined;
  /** Makes the client, which the module closes. */
  readonly useFactory: (...args: never[]) => IdClient | Promise<IdClient>;
  /** As in `IdmintOptions`. */
  readonly tags?: readonly string[] | undefined;
}

/** A health indicator for `@nestjs/terminus`. */
export class IdmintHealth {
  readonly #options: IdmintOptions;

  constructor(options: IdmintOptions) {
    this.#options = options;
  }

  /** Whether the module's tags can be used. Never rejects. */
  async isHealthy<Key extends string = "idmint">(
    key: Key = "idmint" as Key,
  ): Promise<Record<Key, { status: "down" | "up"; tags: Readiness["tags"] }>> {
    const { isReady, tags } = await readinessOf(this.#options);
    const result = { status: isReady ? ("up" as const) : ("down" as const), tags };
    return { [key]: result } as Record<Key, typeof result>;
  }
}

/**
 * A global module of NestJS with the client, its tags and the health indicator. The application starts when the tags can be
 * used, and fails to start when one cannot. The client is closed after the last request; for that, NestJS needs
 * `app.enableShutdownHooks()` or `app.close()`.
 */
export class IdmintModule {
  readonly #options: IdmintOptions;

  constructor(options: IdmintOptions) {
    this.#options = options;
  }

  static forRoot({ client, tags = [] }: IdmintOptions): DynamicModule {
    return moduleOf({ provide: ID_CLIENT, useValue: client }, tags);
  }

  static forRootAsync(options: IdmintAsyncOptions): DynamicModule {
    const { imports = [], inject = [], useFactory, tags = [] } = options;
    const client = { provide: ID_CLIENT, inject: [...inject], useFactory } as Provider;
    return { ...moduleOf(client, tags), imports };
  }

  onModuleInit(): Promise<void> {
    return warmAll(this.#options);
  }

  // The last of NestJS' hooks: the servers of the application are closed by then, and requests are over.
  onApplicationShutdown(): Promise<void> {
    return this.#options.client.close();
  }
}

const OPTIONS = Symbol("@idmint/client/nestjs:options");
Module({})(IdmintModule);
Inject(OPTIONS)(IdmintModule, undefined, 0);

function moduleOf(client: Provider, tags: readonly string[]): DynamicModule {
  const inject = [ID_CLIENT];
  const options = {
    provide: OPTIONS,
    inject,
    useFactory: (its: IdClient): IdmintOptions => ({ client: its, tags }),
  };
  const health = {
    provide: IdmintHealth,
    inject: [OPTIONS],
    useFactory: (its: IdmintOptions) => new IdmintHealth(its),
  };
  const its = tags.map((tag) => ({
    provide: idTagToken(tag),
    inject,
    useFactory: (made: IdClient) => made.tag(tag),
  }));
  const shown = [ID_CLIENT, IdmintHealth, ...tags.map(idTagToken)];
  return {
    module: IdmintModule,
    global: true,
    providers: [client, options, health, ...its],
    exports: shown,
  };
}
