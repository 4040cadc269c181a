/** HTTP headers as a plain object. */
export type HttpHeaders = Readonly<Record<string, string | undefined>>

/** Returns the value of a header. `name` must be lower case; the keys of `headers` may have any case. */
export function readHeader(headers: HttpHeaders, name: string): string | undefined {
  const exact = headers[name]
  if (exact !== undefined) return exact
  return Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
}
