/** `fields` without those that are undefined: an optional field is absent, never undefined. */
export function given<T extends object>(fields: T): Given<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Given<T>
}

type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> }
