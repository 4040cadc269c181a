/** Headers of a Messages API request, encoded and decoded. Names are lower case. */
import { type Headers, header } from '../http/http-headers.ts'
import { given } from '../optional-fields.ts'

/** Two ways to send the key. The API accepts either; newer clients send `bearer`. */
const AUTH_STYLES = {
  key: { header: 'x-api-key', prefix: '' },
  bearer: { header: 'authorization', prefix: 'Bearer ' },
} as const

export interface Credentials {
  readonly style: keyof typeof AUTH_STYLES
  readonly secret: string
}

const VERSION = 'anthropic-version'
const BETA = 'anthropic-beta'

export interface RequestHead {
  /** Any version that the server knows, such as `2023-06-01`. */
  readonly version?: string
  readonly betas: readonly string[]
  readonly credentials?: Credentials
}

export function toHeaders({ version, betas, credentials }: RequestHead): Readonly<Record<string, string>> {
  return {
    'content-type': 'application/json',
    ...given({ [VERSION]: version }),
    ...(betas.length === 0 ? {} : { [BETA]: [...new Set(betas)].join(',') }),
    ...(credentials === undefined ? {} : authHeader(credentials)),
  }
}

export function fromHeaders(headers: Headers): RequestHead {
  const betas = (header(headers, BETA) ?? '').split(',').map((name) => name.trim())
  return {
    betas: [...new Set(betas)].filter((name) => name !== ''),
    ...given({ version: header(headers, VERSION), credentials: credentialsIn(headers) }),
  }
}

function authHeader({ style, secret }: Credentials): Record<string, string> {
  const { header: name, prefix } = AUTH_STYLES[style]
  return { [name]: prefix + secret }
}

function credentialsIn(headers: Headers): Credentials | undefined {
  const key = header(headers, AUTH_STYLES.key.header)
  if (key !== undefined) return { style: 'key', secret: key }
  const bearer = /^Bearer\s+(.+)$/i.exec(header(headers, AUTH_STYLES.bearer.header) ?? '')?.[1]
  return bearer === undefined ? undefined : { style: 'bearer', secret: bearer }
}
