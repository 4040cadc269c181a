/** Returns the object without fields that are undefined. Optional fields must be absent rather than undefined. */
export function omitUndefined<T extends object>(fields: T): DefinedFields<T> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as DefinedFields<T>
}

type DefinedFields<T> = { [K in keyof T]?: Exclude<T[K], undefined> }
