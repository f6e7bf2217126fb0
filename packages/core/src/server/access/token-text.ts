/** What a token's text consists of: `idm_` for whoever looks for leaked secrets, the public id, and the secret. */
export interface TokenParts {
  readonly id: string;
  readonly secret: string;
}

/** 64 random bits name a token, 256 prove it. */
export const TOKEN_ID_BYTES = 8;
export const TOKEN_SECRET_BYTES = 32;
/** Every text of a token begins like this. */
export const TOKEN_BEGINNING = "idm_";
const TEXT = /^idm_([0-9a-f]{16})_([A-Za-z0-9_-]{43})$/;
const ID = /^[0-9a-f]{16}$/;
const BEARER = /^bearer +(.*)$/i;

export function tokenText({ id, secret }: TokenParts): string {
  return `${TOKEN_BEGINNING}${id}_${secret}`;
}

/** Undefined: it is no token of idmint. */
function partsOfToken(text: string): TokenParts | undefined {
  const [, id, secret] = TEXT.exec(text) ?? [];
  return id === undefined || secret === undefined ? undefined : { id, secret };
}

/** The token in the value of an `authorization` header. */
export function bearerOf(header: string): TokenParts | undefined {
  const [, text] = BEARER.exec(header) ?? [];
  return text === undefined ? undefined : partsOfToken(text);
}

export function isTokenId(text: string): boolean {
  return ID.test(text);
}
