/**
 * Whose request it is, and with whose credential it goes to the provider. A key of the gateway never leaves it, and a
 * credential that a caller brings is passed on and never stored.
 */
import type { ProviderCodec } from '@tidemark/wire/providers/provider-codec'
import { isGatewayKey } from '../keys/keys.ts'

/** The header for a key beside a credential of the caller's own. */
export const KEY_HEADER = 'x-tidemark-key'

/** Headers that carry credentials, or speak for an account that is not the caller's. */
const CREDENTIAL_HEADERS = ['x-api-key', 'authorization'] as const
const ACCOUNT_HEADERS = ['openai-organization', 'openai-project', 'cookie', 'forwarded'] as const

export interface CallerCredentials {
  /** The key of the gateway; an empty text if there is none. */
  readonly key: string
  /** True if the caller brings a credential for the provider. */
  readonly isOwn: boolean
}

/**
 * Reads the key: from its own header, when other credentials are the caller's, else from those that SDKs send. Two different
 * keys are none.
 */
export function readCredentials(headers: Headers): CallerCredentials {
  const given = CREDENTIAL_HEADERS.map((name) => stripBearer(headers.get(name) ?? '')).filter(
    (secret) => secret !== '',
  )
  const named = headers.get(KEY_HEADER)
  if (named !== null) return { key: named, isOwn: given.some((secret) => !isGatewayKey(secret)) }
  const keys = new Set(given.filter(isGatewayKey))
  const [key = ''] = keys
  return { key: keys.size === 1 ? key : '', isOwn: false }
}

function stripBearer(text: string): string {
  return text.replace(/^bearer +/i, '')
}

/** Returns the headers for the provider: without any key of the gateway, and with `secret` unless the caller brings his own. */
export function writeCredentials(
  headers: Headers,
  { isOwn }: CallerCredentials,
  codec: ProviderCodec,
  secret: string | null,
): Headers {
  const sent = new Headers(headers)
  sent.delete(KEY_HEADER)
  for (const name of [...sent.keys()]) if (name.startsWith('x-forwarded-')) sent.delete(name)
  for (const name of CREDENTIAL_HEADERS)
    if (!isOwn || isGatewayKey(stripBearer(sent.get(name) ?? ''))) sent.delete(name)
  if (isOwn) return sent
  for (const name of ACCOUNT_HEADERS) sent.delete(name)
  if (secret === null) return sent
  const own = codec.authorize({ style: 'key', secret })
  for (const [name, value] of Object.entries(own))
    if ((CREDENTIAL_HEADERS as readonly string[]).includes(name.toLowerCase())) sent.set(name, value)
  return sent
}
