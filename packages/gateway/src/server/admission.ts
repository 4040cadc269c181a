/** Decides which requests are admitted: a known path, a valid key, and a credential for the provider. */
import type { IncomingMessage } from 'node:http'
import {
  type AdmittedRequest,
  createUpstreamFinder,
  findRouteByPath,
  PROVIDERS,
  type RefusedRequest,
  sendUpstream,
  withoutAddedUsage,
} from 'tidemark/internal'
import type { Database } from '../database/database.ts'
import { containsGatewayKey, findKey, type GatewayKey } from '../keys/keys.ts'
import { type CallAccounts, createMeteredSend } from '../spending/metered-send.ts'
import {
  type CallerCredentials,
  createProviderHeaders,
  KEY_HEADER,
  readCredentials,
  withHiddenCredential,
} from './credentials.ts'
import { type Tenants, toCredentialScope } from './tenants.ts'

interface AdmissionOptions {
  readonly tenants: Tenants
  /** Null without a database: there are no keys, and callers send their own credentials. */
  readonly keys: { readonly database: Database; readonly accounts: CallAccounts } | null
  readonly upstreams: { readonly anthropic: string; readonly openai: string }
  /** The gateway's own credentials; null if callers must send their own. */
  readonly credentials: { readonly anthropic: string | null; readonly openai: string | null }
}

type Admit = (request: IncomingMessage, headers: Headers) => Promise<AdmittedRequest | RefusedRequest>

/** Returns the function that admits or refuses a request before its body is read. With keys, `answer` charges its cost. */
export function createAdmission(options: AdmissionOptions): Admit {
  const findUpstream = createUpstreamFinder(options.upstreams)
  return async (request, headers) => {
    const path = readPath(request)
    if (path === null) return refuse(404, UNKNOWN_PATH)
    const upstream = findUpstream(path, request.headers)
    const url = `${upstream}${path}`
    const isAnthropic = upstream === options.upstreams.anthropic && isFirstProvider(path, upstream, options)
    const credential = isAnthropic ? options.credentials.anthropic : options.credentials.openai
    const { codec } =
      findRouteByPath(path.split('?')[0] ?? '')?.provider ?? PROVIDERS[isAnthropic ? 0 : 1] ?? PROVIDERS[0]
    if (options.keys === null) return admitWithoutKey(url, headers, options)
    const caller = readCredentials(headers)
    let key: GatewayKey | null
    try {
      key = await findKey(options.keys.database, caller.key)
    } catch {
      return { ...refuse(503, 'The keys of the gateway cannot be read now.'), headers: RETRY }
    }
    if (key === null) return refuse(401, UNKNOWN_KEY)
    const refusal = refuseCaller(key, caller, credential)
    if (refusal !== null) return { ...refusal, caller: key.name }
    const { accounts } = options.keys
    const known = key
    return {
      ok: true,
      caller: known.name,
      url,
      headers: createProviderHeaders(headers, caller, codec, credential),
      answer: (address, init) =>
        options.tenants.run(async (readFailure) => {
          const fetch = withHiddenCredential(sendUpstream, caller.hasOwnCredential ? null : credential, codec)
          const send = createMeteredSend({ key: known, accounts, readFailure, fetch })
          const answer = await options.tenants.open(known.id).answer(address, init, send)
          return withoutAddedUsage(
            answer,
            findRouteByPath(new URL(address).pathname)?.codec ?? codec,
            readUsageFields(init),
          )
        }),
    }
  }
}

/** Returns the fields by which a client asks for the usage of its stream, without parsing the whole body. */
function readUsageFields({ body }: RequestInit): { readonly stream_options?: unknown } {
  const hasAsked = typeof body === 'string' && /"include_usage"\s*:\s*true/.test(body)
  return hasAsked ? { stream_options: { include_usage: true } } : {}
}

/** Without a database there are no keys: callers send a provider's credential, which also separates their sessions. */
function admitWithoutKey(
  url: string,
  headers: Headers,
  { tenants }: AdmissionOptions,
): AdmittedRequest | RefusedRequest {
  const secret = headers.get('x-api-key') ?? headers.get('authorization')
  if (secret === null) return refuse(401, 'The request has no credential in x-api-key or authorization.')
  const sent = createProviderHeaders(headers, { key: '', hasOwnCredential: true }, PROVIDERS[0].codec, null)
  const tide = tenants.open(toCredentialScope(secret))
  return {
    ok: true,
    url,
    headers: sent,
    answer: (address, init) => tide.answer(address, init, sendUpstream),
  }
}

/** True if the request is for the first of `PROVIDERS`. If both have the same address, as with a simulator, the path decides. */
function isFirstProvider(
  path: string,
  upstream: string,
  { upstreams }: Pick<AdmissionOptions, 'upstreams'>,
): boolean {
  if (upstreams.anthropic !== upstreams.openai) return upstream === upstreams.anthropic
  const route = findRouteByPath(path.split('?')[0] ?? '')
  return route === null || route.provider === PROVIDERS[0]
}

/** The served paths of POST requests. A path must be equal: a longer one that ends like this may be another API. */
const SENT_PATHS: ReadonlySet<string> = new Set([
  '/v1/messages',
  '/v1/messages/count_tokens',
  '/v1/responses',
  '/v1/responses/compact',
  '/v1/responses/input_tokens',
  '/v1/chat/completions',
])
/** Matches the list of models and the path of one model, which SDKs ask for with GET. */
const MODELS_PATH = /^\/v1\/models(?:\/(?!\.{1,2}$)[\w.:@-]+)?$/

/** Returns the path of a request that the gateway serves, with its query; null for other requests. */
function readPath({ url = '', method }: IncomingMessage): string | null {
  const [path = '', ...query] = url.split('?')
  const isServed = method === 'POST' ? SENT_PATHS.has(path) : method === 'GET' && MODELS_PATH.test(path)
  // Some providers take a credential in the query, so that a key may stand there.
  return isServed ? [path, ...query.filter((part) => !containsGatewayKey(part))].join('?') : null
}

const UNKNOWN_PATH =
  'The gateway serves /v1/messages, /v1/messages/count_tokens, /v1/responses, /v1/responses/compact, /v1/responses/input_tokens, /v1/chat/completions and /v1/models.'
const UNKNOWN_KEY =
  'Unknown key of the gateway. Send one that `tidemark gateway keys add` printed, as x-api-key or Authorization: Bearer.'
const RETRY = { 'x-should-retry': 'true', 'retry-after': '1' }

function refuseCaller(
  key: GatewayKey,
  { hasOwnCredential: isOwn }: CallerCredentials,
  credential: string | null,
): RefusedRequest | null {
  if (key.isRevoked) return refuse(403, `The key ${key.name} of the gateway was revoked.`)
  if (key.isViewer) return refuse(403, `The key ${key.name} opens the page of the gateway and nothing else.`)
  if (!isOwn && credential === null)
    return refuse(
      403,
      `The gateway has no credential for this provider. Send the key as ${KEY_HEADER}, and your own credential beside it.`,
    )
  return null
}

function refuse(status: number, message: string): RefusedRequest {
  return { ok: false, status, message, headers: { 'x-should-retry': 'false' } }
}
