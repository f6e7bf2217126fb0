import { grpcurl } from "./grpcurl.ts";

console.log(JSON.stringify(await grpcurl(process.argv.slice(2)), null, 2));
process.exit();
