/** The same keys in another language. */
export type TextsOf<T> = { readonly [Key in keyof T]: string };
