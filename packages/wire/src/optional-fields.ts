/** `fields` without those that are undefined: an optional field is absent, never undefined. */
export function omitUndefined<T extends object>(fields: T): DefinedFields<T> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as DefinedFields<T>
}

type DefinedFields<T> = { [K in keyof T]?: Exclude<T[K], undefined> }
