/** HTTP headers as plain data. */
export type HttpHeaders = Readonly<Record<string, string | undefined>>

/** The value of a header. `name` is lower case; `headers` may spell it in any case. */
export function readHeader(headers: HttpHeaders, name: string): string | undefined {
  const exact = headers[name]
  if (exact !== undefined) return exact
  return Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
}
