#!/usr/bin/env node
console.error("idmint: no command yet");
process.exitCode = 2;
