/** Stands in for a method for a while. */
export function replaced<T extends object, Name extends keyof T>(
  prototype: T,
  name: Name,
  by: T[Name],
): () => void {
  const real = prototype[name];
  prototype[name] = by;
  return () => {
    prototype[name] = real;
  };
}

/** The same, by something that knows the method that it stands in for. */
export function wrapped<T extends object, Name extends keyof T>(
  prototype: T,
  name: Name,
  by: (real: T[Name]) => T[Name],
): () => void {
  return replaced(prototype, name, by(prototype[name]));
}
