/**
 * Tidemark for a client that has its own model, address and credentials, which are taken from its requests. The
 * engine's own calls, such as those for summaries, go to the same address with the same credentials.
 */
import { describeThrown } from '@tidemark/core/errors'
import { isObject, omitUndefined } from '@tidemark/core/log/json'
import type { Fetch } from '../dropin/client-exchange.ts'
import { checkFetchOptions, createUnmanagedNotice, findRoute } from '../dropin/client-fetch.ts'
import { refuseUncounted } from '../dropin/client-limits.ts'
import { type ClientConnection, currentClientConnection, sendAsClient } from '../models/client-connection.ts'
import type { ModelChoice } from '../models/model-choice.ts'
import { type CompatibleOptions, compatible } from '../models/openai.ts'
import { type ClientRoute, PROVIDERS } from '../models/providers.ts'
import { checkOptionNames } from '../platform/argument-errors.ts'
import { pauseIfLarge } from '../platform/node-ports.ts'
import { checkTidemarkOptions, listTidemarkOptionNames, type TidemarkOptions } from '../session/options.ts'
import { createTidemark, type FetchOptions, findSessionInUse, type Tidemark } from './tidemark.ts'

/** Options of `createTidemark` without the model, and those of `fetch`. */
export interface ClientTidemarkOptions
  extends Omit<TidemarkOptions, 'model'>,
    Pick<FetchOptions, 'session' | 'mode' | 'pingSeconds' | 'idleSeconds'> {
  /** The model whose window and prices are used. Default: the model that each request names, from the catalogue. */
  readonly model?: TidemarkOptions['model']
}

export interface ClientTidemark {
  /**
   * Answers a request of the client. `send` sends a request as the client would. A request that cannot be managed is
   * sent unchanged.
   */
  answer(url: string, init: RequestInit, send: Fetch): Promise<Response>
  /** Undoes a compaction or clearing of a session that is open here; else null. Refused while a request runs. */
  undo(session: string, id: string): Promise<{ readonly ok: boolean; readonly message: string } | null>
  close(): Promise<void>
}

/** A Tidemark object and its `fetch`, for one protocol. */
interface OpenedTidemark {
  readonly tide: Tidemark
  readonly fetch: Fetch
}

/** A server other than OpenAI that speaks Chat Completions. No catalogue has its models. */
export type ChatServerOptions = Pick<CompatibleOptions, 'dialect' | 'window'>

/**
 * Creates the object. The model comes from the first request of each protocol. `server`: set if Chat Completions goes to a server
 * that is not OpenAI's. Throws `bad-option`.
 */
export function createClientTidemark(
  options: ClientTidemarkOptions,
  server?: ChatServerOptions,
): ClientTidemark {
  const { session, mode, pingSeconds, idleSeconds, model: given, ...own } = options
  checkClientOptions(options)
  let last: ClientConnection | null = null
  const opened = new Map<ClientRoute['codec'], OpenedTidemark>()

  /** Sends a call of the engine as the client's request for which it is made would be sent, else as the last one. */
  const sendForEngine: Fetch = (input, init) => {
    const connection = currentClientConnection.getStore() ?? last
    if (connection === null) throw new Error('The client has not sent a request yet.')
    return sendAsClient(connection, input, init)
  }

  function open(provider: ClientRoute['provider'], modelId: string): OpenedTidemark {
    const model = given ?? createClientModel(provider, modelId, sendForEngine, server)
    const tide = createTidemark({ ...own, model })
    const upstream: Fetch = (input, init) =>
      (currentClientConnection.getStore()?.send ?? globalThis.fetch)(input, init)
    const settings = omitUndefined({ session, mode, pingSeconds, idleSeconds })
    return { tide, fetch: tide.fetch({ fetch: upstream, ...settings }) }
  }

  const announceOther = createUnmanagedNotice((message) =>
    own.onEvent?.({ type: 'request-passed', reason: 'unreadable', message }, ''),
  )

  return {
    async answer(url, init, send) {
      if (mode === 'off') return send(url, init)
      const route = findRoute(url, init, given?.codec ?? null)
      if (route === null) {
        announceOther(url, init)
        return send(url, init)
      }
      const { provider, codec } = route
      // A body, which may be large, is parsed here only for the first request of its protocol, to read the model that it names.
      const modelId = opened.has(codec) ? null : await readModelId(init.body)
      try {
        if (modelId !== null && !opened.has(codec)) opened.set(codec, open(provider, modelId))
      } catch (thrown) {
        const message = describeThrown(thrown)
        if (own.limits !== undefined) return refuseUncounted(codec, message)
        own.onEvent?.({ type: 'request-passed', reason: 'failed', message }, '')
        return send(url, init)
      }
      const { fetch } = opened.get(codec) ?? {}
      if (fetch === undefined) return send(url, init)
      const connection = { codec, url: new URL(url).href, headers: new Headers(init.headers), send }
      last = connection
      return currentClientConnection.run(connection, () => fetch(url, init))
    },
    undo: (name, id) => undoManaged([...opened.values()], name, id),
    async close() {
      await Promise.all([...opened.values()].map(({ tide }) => tide.close()))
    },
  }
}

async function undoManaged(
  opened: readonly OpenedTidemark[],
  name: string,
  id: string,
): Promise<{ readonly ok: boolean; readonly message: string } | null> {
  for (const { tide } of opened) {
    // A session that is not in use is left to the page, which opens and closes it. Opened here, it would stay open.
    const managed = await findSessionInUse(tide, name)
    if (managed === null) continue
    const undone = await managed.undo(id)
    return { ok: undone.ok, message: undone.ok ? 'It is undone.' : undone.message }
  }
  return null
}

/** Creates the model that a client names, from the catalogue or from the options of its server. */
function createClientModel(
  { codec, createModel }: ClientRoute['provider'],
  id: string,
  fetch: Fetch,
  server: ChatServerOptions | undefined,
): ModelChoice {
  const connection = { apiKey: 'client', fetch }
  return server !== undefined && codec.paths.reply === CHAT_PATH
    ? compatible(id, { ...server, ...connection, baseUrl: ANY_ADDRESS })
    : createModel(id, connection)
}

const CHAT_PATH = '/chat/completions'

/** A placeholder: every request goes to the client's own address. */
const ANY_ADDRESS = 'http://localhost/v1'

/** Throws for options that `createTidemark` and `fetch` do not take, before the first request. */
function checkClientOptions(options: ClientTidemarkOptions): void {
  const names = ['session', 'mode', 'pingSeconds', 'idleSeconds', ...listTidemarkOptionNames()]
  checkOptionNames('tidemark', options, names)
  const { session, mode, pingSeconds, idleSeconds, ...own } = options
  const [{ createModel, anyModel }] = PROVIDERS
  checkFetchOptions('tidemark', omitUndefined({ session, mode, pingSeconds, idleSeconds }))
  checkTidemarkOptions('tidemark', {
    ...own,
    model: own.model ?? createModel(anyModel, { apiKey: 'client' }),
  })
}

async function readModelId(body: unknown): Promise<string | null> {
  if (typeof body !== 'string') return null
  await pauseIfLarge(body)
  try {
    const value: unknown = JSON.parse(body)
    await pauseIfLarge(body)
    return isObject(value) && typeof value.model === 'string' ? value.model : null
  } catch {
    return null
  }
}
