/** Encodes the headers of a Messages API request. Header names are lower case. */
import type { Credentials } from '../providers/provider-codec.ts'

/** The two headers in which an API request can carry its credentials. The API accepts both; newer clients use `bearer`. */
const AUTH_STYLES = {
  key: { header: 'x-api-key', prefix: '' },
  bearer: { header: 'authorization', prefix: 'Bearer ' },
} as const satisfies Readonly<
  Record<Credentials['style'], { readonly header: string; readonly prefix: string }>
>

const DEFAULT_VERSION = '2023-06-01'
export const VERSION_HEADER = 'anthropic-version'
export const BETA_HEADER = 'anthropic-beta'

interface RequestHeaderFields {
  /** Value of the `anthropic-version` header, such as `2023-06-01`. */
  readonly version?: string
  readonly betas: readonly string[]
  readonly credentials?: Credentials
}

export function toRequestHeaders({
  version,
  betas,
  credentials,
}: RequestHeaderFields): Readonly<Record<string, string>> {
  return {
    'content-type': 'application/json',
    ...(version === undefined ? {} : { [VERSION_HEADER]: version }),
    ...(betas.length === 0 ? {} : { [BETA_HEADER]: [...new Set(betas)].join(',') }),
    ...(credentials === undefined ? {} : toAuthHeader(credentials)),
  }
}

function toAuthHeader({ style, secret }: Credentials): Record<string, string> {
  const { header, prefix } = AUTH_STYLES[style]
  return { [header]: prefix + secret }
}

/** Returns the headers that every request needs, whatever its body: content type, version and credentials. */
export function toCredentialHeaders(
  credentials: Credentials,
  version: string = DEFAULT_VERSION,
): Readonly<Record<string, string>> {
  return toRequestHeaders({ version, betas: [], credentials })
}
