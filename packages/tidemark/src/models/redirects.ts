/** A redirect by the API is treated as an error, because following it would send the headers, with the key, to another host. */

/** Options of `fetch` for every request that carries a key. */
export const NO_REDIRECTS = { redirect: 'manual' } as const

/** Returns a sentence about a redirect, which was not followed; null for every other response. */
export function describeRedirect({ status, type, headers, url }: Response): string | null {
  if (type !== 'opaqueredirect' && !REDIRECT_STATUSES.has(status)) return null
  const target = headers.get('location') ?? ''
  const base = URL.canParse(url) ? url : undefined
  // The rest of the address may hold a credential.
  const to = URL.canParse(target, base) ? ` to ${new URL(target, base).origin}` : ''
  return `The API answered with a redirect${to}, which is not followed, because the key would be sent there. If that is the API, set it as the base URL.`
}

const REDIRECT_STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
