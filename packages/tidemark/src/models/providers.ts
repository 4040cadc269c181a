/**
 * The list of the providers whose protocols Tidemark speaks. Only this file and the function that creates a provider's
 * models name a provider; all other code asks the codec.
 */
import { anthropicCodec } from '@tidemark/wire/anthropic/codec'
import { chatCodec } from '@tidemark/wire/openai/chat-codec'
import { responsesCodec } from '@tidemark/wire/openai/responses-codec'
import type { ProviderCodec, RouteKind } from '@tidemark/wire/providers/provider-codec'
import { anthropic } from './anthropic.ts'
import type { ModelChoice } from './model-choice.ts'
import { createClientNamedOpenaiModel } from './openai.ts'

interface Provider {
  readonly codec: ProviderCodec
  /** Creates a model that a client names, called through the client's own connection. */
  readonly createModel: (id: string, connection: ClientConnectionOptions) => ModelChoice
  /** Id of some model of this provider in the catalogue, for checks that run before a request names a model. */
  readonly anyModel: string
}

interface ClientConnectionOptions {
  readonly apiKey: string
  readonly fetch?: typeof globalThis.fetch
  readonly window?: number
}

/** In the order in which paths are compared. The first is used where a protocol cannot be told. */
export const PROVIDERS: readonly [Provider, ...Provider[]] = [
  { codec: anthropicCodec, createModel: anthropic, anyModel: 'claude-sonnet-5-5' },
  { codec: responsesCodec, createModel: createClientNamedOpenaiModel, anyModel: 'gpt-6-sol' },
  {
    codec: chatCodec,
    createModel: (id, connection) => createClientNamedOpenaiModel(id, { ...connection, api: 'chat' }),
    anyModel: 'gpt-6-sol',
  },
]

/** The provider and protocol of a client's request, and its kind, such as a reply, a count of tokens or a compaction. */
export interface ClientRoute {
  readonly provider: Provider
  readonly codec: ProviderCodec
  readonly kind: RouteKind
}

/**
 * Returns the route with this path; null if no protocol has it. `own`: the protocol of the session's model, which is tried first:
 * the application may have supplied it, and it knows the dialect of its server, which the path does not show.
 */
export function findRouteByPath(path: string, own: ProviderCodec | null = null): ClientRoute | null {
  const ownKind = own?.client.findRouteKind(path) ?? null
  if (own !== null && ownKind !== null) return { provider: findProvider(own), codec: own, kind: ownKind }
  for (const provider of PROVIDERS) {
    const kind = provider.codec.client.findRouteKind(path)
    if (kind !== null) return { provider, codec: provider.codec, kind }
  }
  return null
}

/**
 * Creates a model that a client names in another protocol than that of its session. `window`: the window of the
 * session's model if both are the same model.
 */
export function createClientNamedModel(codec: ProviderCodec, id: string, window: number | null): ModelChoice {
  const { createModel } = findProvider(codec)
  return createModel(id, { apiKey: 'client', ...(window === null ? {} : { window }) })
}

function findProvider(codec: ProviderCodec): Provider {
  return PROVIDERS.find((each) => each.codec.paths.reply === codec.paths.reply) ?? PROVIDERS[0]
}

/** Returns the protocol of a model. Default: the Messages API. */
export function findCodec({ codec }: Pick<ModelChoice, 'codec'>): ProviderCodec {
  return codec ?? PROVIDERS[0].codec
}
