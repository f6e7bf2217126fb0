// Packages without types of their own: what of them is used here.

declare module "flake-idgen" {
  export default class FlakeId {
    next(): Buffer;
  }
}

declare module "xid-js" {
  const xid: { next(): string };
  export default xid;
}
