// This file is imported before everything else: an older Node.js would otherwise fail at the first thing that it lacks,
// without a word of the cause. So whatever is imported beside it is imported by name only where Node.js 20 has it as
// well.

/** The oldest Node.js that works; the same as in package.json. */
const OLDEST = [22, 13] as const;

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) {
  const wanted = OLDEST.join(".");
  console.error(
    `idmint needs Node.js ${wanted} or newer; this is Node.js ${process.versions.node}`,
  );
  process.exit(1);
}

export {};
