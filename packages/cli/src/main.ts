#!/usr/bin/env node
import { enableCompileCache } from "node:module";

// Most of what a short command takes is reading and compiling; with Node's cache it takes a third. The cache must be on
// before the modules are imported, so they are imported by a module of its own.
enableCompileCache();
await import("./cli.ts");
