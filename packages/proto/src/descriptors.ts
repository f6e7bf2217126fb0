export { fileDescriptorSetBase64 } from "./gen/descriptors.ts";
