/** Ways to compute check digits. */
export type CheckKind = "luhn" | "mod11_10" | "mod97_10" | "mod37_36";

export interface Check {
  /** The number of check characters. */
  readonly length: number;
  /** What it is computed over: decimal digits only, or letters too. */
  readonly counts: "digits" | "digits and letters";
  /** Computes the check characters of a text. Characters that do not count are skipped. */
  readonly of: (text: string) => string;
}

const ALPHANUMERIC = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/** By name, as templates write them. */
export const CHECKS: Readonly<Record<CheckKind, Check>> = {
  /** ISO/IEC 7812: finds every single wrong digit, and neighbours that were swapped, except 09 and 90. */
  luhn: { length: 1, counts: "digits", of: (text) => luhn(decimal(text)) },
  /** ISO/IEC 7064 MOD 11,10: finds every single wrong digit and nearly all neighbours that were swapped. */
  mod11_10: { length: 1, counts: "digits", of: (text) => hybrid(decimal(text), 10) },
  /** ISO/IEC 7064 MOD 97-10: two digits; finds every single wrong digit and all neighbours that were swapped. */
  mod97_10: { length: 2, counts: "digits", of: (text) => mod97(decimal(text)) },
  /** ISO/IEC 7064 MOD 37,36: one digit or capital letter; letters count without their case. */
  mod37_36: {
    length: 1,
    counts: "digits and letters",
    of: (text) => hybrid(text.toUpperCase().replaceAll(/[^0-9A-Z]/g, ""), 36),
  },
};

function decimal(text: string): string {
  return text.replaceAll(/[^0-9]/g, "");
}

function luhn(digits: string): string {
  let sum = 0;
  for (let at = 0; at < digits.length; at++) {
    const digit = Number(digits.charAt(digits.length - 1 - at));
    const weighed = at % 2 === 0 ? digit * 2 : digit;
    sum += weighed > 9 ? weighed - 9 : weighed;
  }
  return String((10 - (sum % 10)) % 10);
}

/** The hybrid systems of ISO/IEC 7064: MOD modulus + 1, modulus. */
function hybrid(text: string, modulus: 10 | 36): string {
  let product = modulus;
  for (const character of text) {
    const sum = (product + ALPHANUMERIC.indexOf(character)) % modulus;
    product = ((sum === 0 ? modulus : sum) * 2) % (modulus + 1);
  }
  return ALPHANUMERIC.charAt((modulus + 1 - product) % modulus);
}

function mod97(digits: string): string {
  let rest = 0;
  for (const digit of `${digits}00`) rest = (rest * 10 + Number(digit)) % 97;
  return String(98 - rest).padStart(2, "0");
}
