/** What no history calls, and why; a test holds it against the methods that servers have. */
export const UNASKED: Readonly<Record<string, string>> = {
  "/idmint.v1.TagService/MoveTag":
    "it moves tags from one Redis server to another, and histories have one",
  "/grpc.health.v1.Health/List": "it tells what Check tells",
  "/grpc.health.v1.Health/Watch": "a door carries it, and no history has doors",
  "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": "it tells what never changes",
  "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": "it tells what never changes",
};
