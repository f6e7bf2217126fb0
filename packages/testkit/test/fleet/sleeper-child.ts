// Sleeps until SIGTERM, then exits with the code it was given.
const code = Number(process.argv[2] ?? "0");
if (!Number.isInteger(code)) throw new Error("not an exit code");
process.on("SIGTERM", () => process.exit(code));
setInterval(() => undefined, 1_000);
process.stdout.write("asleep\n");
