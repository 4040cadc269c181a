/**
 * Reads the key of a request, and sets the credential with which the request goes to the provider. A key of the gateway
 * never leaves it. A caller's own credential is passed on and never stored.
 */
import type { ProviderCodec } from '@tidemark/wire/providers/provider-codec'
import { copyResponseHead, createRefusalResponse } from 'tidemark/internal'
import { containsGatewayKey, hasGatewayKeyForm } from '../keys/keys.ts'

/** The header in which a caller sends the key of the gateway beside a provider's credential of its own. */
export const KEY_HEADER = 'x-tidemark-key'

/** Headers with credentials. The caller's are passed on only if they have a credential for the provider. */
const CREDENTIAL_HEADERS = ['x-api-key', 'authorization'] as const
/** Headers that name an account or a client. They are passed on only with the caller's own credential. */
const ACCOUNT_HEADERS = ['openai-organization', 'openai-project', 'cookie', 'forwarded'] as const

export interface CallerCredentials {
  /** The key of the gateway; empty if there is none. */
  readonly key: string
  /** True if the caller sends a credential for the provider. */
  readonly hasOwnCredential: boolean
}

/**
 * Reads the key of the gateway: from its own header (`KEY_HEADER`) if the request has it, else from the headers in
 * which SDKs send a credential. If those have two different keys, neither is used.
 */
export function readCredentials(headers: Headers): CallerCredentials {
  const given = CREDENTIAL_HEADERS.map((name) => stripBearer(headers.get(name) ?? '')).filter(
    (secret) => secret !== '',
  )
  const named = headers.get(KEY_HEADER)
  if (named !== null)
    return { key: named, hasOwnCredential: given.some((secret) => !hasGatewayKeyForm(secret)) }
  const keys = new Set(given.filter(hasGatewayKeyForm))
  const [key = ''] = keys
  return { key: keys.size === 1 ? key : '', hasOwnCredential: false }
}

function stripBearer(text: string): string {
  return text.replace(/^bearer +/i, '')
}

/** Returns the headers for the provider: without keys of the gateway, and with `secret` unless the caller sends a credential. */
export function createProviderHeaders(
  headers: Headers,
  { hasOwnCredential: isOwn }: CallerCredentials,
  codec: ProviderCodec,
  secret: string | null,
): Headers {
  const sent = new Headers(headers)
  sent.delete(KEY_HEADER)
  for (const [name, value] of [...sent])
    if (name.startsWith('x-forwarded-') || containsGatewayKey(value)) sent.delete(name)
  if (isOwn) return sent
  for (const name of CREDENTIAL_HEADERS) sent.delete(name)
  for (const name of ACCOUNT_HEADERS) sent.delete(name)
  if (secret === null) return sent
  const own = codec.createHeaders({ style: 'key', secret })
  for (const [name, value] of Object.entries(own))
    if ((CREDENTIAL_HEADERS as readonly string[]).includes(name.toLowerCase())) sent.set(name, value)
  return sent
}

/** Response headers about the account of the credential. */
const ACCOUNT_RESPONSE_HEADERS = [
  'set-cookie',
  'anthropic-organization-id',
  'openai-organization',
  'openai-project',
] as const

/**
 * Returns a `fetch` whose responses do not reveal the gateway's own credential: errors may quote it, and headers may
 * name its account. A 401 becomes a 502 that SDKs do not retry, because only the operator can renew the credential.
 * `credential`: null if the caller sends its own; nothing is changed then.
 */
export function withHiddenCredential(
  fetch: typeof globalThis.fetch,
  credential: string | null,
  codec: ProviderCodec,
): typeof globalThis.fetch {
  if (credential === null) return fetch
  return async (input, init) => {
    const response = await fetch(input, init)
    if (response.status === 401) {
      await response.body?.cancel()
      return createRefusalResponse(
        codec,
        502,
        'The provider refuses the credential of the gateway (401). Its operator must renew it.',
      )
    }
    const head = copyResponseHead(response)
    for (const name of ACCOUNT_RESPONSE_HEADERS) (head.headers as Headers).delete(name)
    if (response.ok || response.body === null) return new Response(response.body, head)
    return new Response((await response.text()).replaceAll(credential, '[credential of the gateway]'), head)
  }
}
