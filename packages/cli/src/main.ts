#!/usr/bin/env node
import "./node-version.ts";
import * as modules from "node:module";
import { holdYoungGeneration, setV8Flags } from "@idmint/server/v8-flags";

// First of all, since code that was compiled before keeps what it learned; and before the cache is on, since V8 keeps
// apart what was compiled under other flags.
setV8Flags();
holdYoungGeneration();
// Most of what a short command takes is reading and compiling; with Node's cache it takes a third. The cache must be on
// before the modules are imported, so they are imported by a module of its own.
modules.enableCompileCache();
await import("./cli.ts");
