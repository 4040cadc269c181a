/**
 * The HTTP routes: the Messages API, OpenAI's APIs and the lists of models; the control API below `/_simulator` is
 * added to them.
 */
import { type Context, Hono } from 'hono'
import {
  type ApiError,
  type ApiResult,
  createApiError,
  createErrorAnswer,
  createInvalidRequestError,
  toRejection,
} from '../protocol/answer.ts'
import { BETA_NAMES, parseBetas } from '../protocol/messages-request.ts'
import { EFFORTS, type SimulatedModel } from '../protocol/models.ts'
import type { MessagesEndpoint } from '../validation/validate.ts'
import { authenticateApiKey, type RequestHeaders } from './accounts.ts'
import { describeForeignCaller } from './admit-request.ts'
import { createControlRoutes } from './control-routes.ts'
import { handleMessagesRequest, type PendingAnswer } from './handle-messages.ts'
import { handleOpenaiRequest, type OpenaiEndpoint } from './handle-openai.ts'
import { readRequestBody } from './request-body.ts'
import { BrokenConnectionError, type ClientConnection, sendAnswer } from './send-answer.ts'
import type { SimulatorState } from './simulator-state.ts'

/** Values that an HTTP server passes to the simulator together with a request. */
export interface RequestBindings {
  readonly connection?: ClientConnection
  /**
   * Abort signal of the caller. The signal of the `Request` object is not enough, because it may be garbage-collected
   * with the request.
   */
  readonly signal?: AbortSignal
  /** The body if it is a text outside the `Request` object; otherwise null. */
  readonly bodyText?: string | null
  /** Host name or address on which the server listens. Requests may use it as their `Host`. */
  readonly host?: string
}

type AppContext = Context<{ Bindings: RequestBindings }>

/** The simulator's routes. Its `fetch` answers a request; it throws only a `BrokenConnectionError`. */
export type SimulatorApp = Hono<{ Bindings: RequestBindings }>

export function createRoutes(state: SimulatorState): SimulatorApp {
  const app: SimulatorApp = new Hono()
  app.use('*', async (context, next) => {
    const foreign = describeForeignCaller(context.req.raw.headers, context.env?.host)
    return foreign === null ? next() : sendError(state, createApiError(403, foreign))
  })
  app.post('/v1/messages', (context) => answerRequest(state, context, 'messages'))
  app.post('/v1/messages/count_tokens', (context) => answerRequest(state, context, 'count_tokens'))
  for (const [path, endpoint] of Object.entries(OPENAI_ENDPOINTS))
    app.post(path, (context) => answerOpenai(state, context, endpoint))
  app.get('/v1/responses/:id', (context) => sendStored(state, context, 'get'))
  app.delete('/v1/responses/:id', (context) => sendStored(state, context, 'delete'))
  app.get('/v1/models', (context) => {
    const error = findAuthenticationError(state, context)
    if (error !== null) return sendError(state, error)
    if (isOpenaiClient(context)) return context.json(listOpenaiModels(state))
    const page = buildModelPage(state.settings.models.all, context.req.query(), readBetas(context))
    return page.ok ? context.json(page.list) : sendError(state, page.error)
  })
  app.get('/v1/models/:id', (context) => {
    const error = findAuthenticationError(state, context)
    if (error !== null) return sendError(state, error)
    const id = context.req.param('id')
    const model = state.settings.models.find(id)
    if (model === undefined) return sendError(state, createApiError(404, `model: ${id}`))
    return context.json(toModelInfo(model, readBetas(context)))
  })
  app.route('/_simulator', createControlRoutes(state))
  app.onError((error) => {
    if (error instanceof BrokenConnectionError) throw error
    return sendError(state, createApiError(500, `The simulator failed: ${error.message}`))
  })
  app.all('*', (context) =>
    // Some clients send a HEAD request first, to test the connection.
    context.req.method === 'HEAD' ? context.body(null, 200) : sendError(state, routeError(context)),
  )
  return app
}

async function answerRequest(
  state: SimulatorState,
  context: AppContext,
  endpoint: MessagesEndpoint,
): Promise<Response> {
  const body = await readRequestBody(context.req.raw, state.settings.maxBodyBytes, context.env?.bodyText)
  const incoming = { endpoint, path: context.req.path, headers: readHeaders(context), ...body }
  return sendExchange(state, context, await handleMessagesRequest(state, incoming))
}

/** The paths of OpenAI's APIs. */
const OPENAI_ENDPOINTS: Readonly<Record<string, OpenaiEndpoint>> = {
  '/v1/responses': 'responses',
  '/v1/responses/compact': 'compact',
  '/v1/responses/input_tokens': 'input_tokens',
  '/v1/chat/completions': 'chat',
}

async function answerOpenai(
  state: SimulatorState,
  context: AppContext,
  endpoint: OpenaiEndpoint,
): Promise<Response> {
  const body = await readRequestBody(context.req.raw, state.settings.maxBodyBytes, context.env?.bodyText)
  const incoming = { endpoint, path: context.req.path, headers: readHeaders(context), ...body }
  return sendExchange(state, context, await handleOpenaiRequest(state, incoming))
}

/** Returns or deletes a stored response. */
function sendStored(state: SimulatorState, context: AppContext, act: 'get' | 'delete'): Response {
  const identity = authenticateApiKey(readHeaders(context), state.settings.accounts)
  const id = context.req.param('id') ?? ''
  const { stored } = state.openai
  const found = identity.ok ? stored.find(id, identity.account.organization) : undefined
  if (found === undefined || !identity.ok) {
    const message = `Response with id '${id}' not found.`
    return context.json({ error: { message, type: 'invalid_request_error', param: null, code: null } }, 404)
  }
  if (act === 'get') return context.json(found)
  stored.remove(id, identity.account.organization)
  return context.json({ id, object: 'response', deleted: true })
}

function sendExchange(
  state: SimulatorState,
  context: AppContext,
  { answer, begin, abandon }: PendingAnswer,
): Promise<Response> {
  const { connection = null, signal = context.req.raw.signal } = context.env ?? {}
  return sendAnswer(answer, { clock: state.clock, signal, begin, abandon, connection })
}

function readHeaders(context: AppContext): RequestHeaders {
  return context.req.header()
}

function readBetas(context: AppContext): ReadonlySet<string> {
  return parseBetas(context.req.header('anthropic-beta'))
}

function findAuthenticationError(state: SimulatorState, context: AppContext): ApiError | null {
  const identity = authenticateApiKey(readHeaders(context), state.settings.accounts)
  return identity.ok ? null : identity.error
}

const POST_PATHS = new Set(['/v1/messages', '/v1/messages/count_tokens', ...Object.keys(OPENAI_ENDPOINTS)])

function routeError(context: AppContext): ApiError {
  const { method, path } = context.req
  return POST_PATHS.has(path)
    ? createApiError(405, `Method ${method} is not allowed`)
    : createApiError(404, 'Not Found')
}

function sendError(state: SimulatorState, error: ApiError): Promise<Response> {
  const requestId = state.ids.next('req')
  const answer = createErrorAnswer(error, requestId, { 'request-id': requestId })
  const { signal } = new AbortController()
  const nothing = (): void => undefined
  return sendAnswer(answer, {
    clock: state.clock,
    signal,
    begin: nothing,
    abandon: nothing,
    connection: null,
  })
}

// Responses of `GET /v1/models`.

/** Both APIs have this path. Only clients of the Messages API send a version header. */
function isOpenaiClient(context: AppContext): boolean {
  const headers = readHeaders(context)
  return headers['anthropic-version'] === undefined && headers.authorization !== undefined
}

function listOpenaiModels({ settings }: SimulatorState): object {
  const data = settings.openaiModels.all.map(({ id }) => ({
    id,
    object: 'model',
    created: 0,
    owned_by: 'openai',
  }))
  return { object: 'list', data }
}

function buildModelPage(
  models: readonly SimulatedModel[],
  query: { readonly limit?: string; readonly after_id?: string; readonly before_id?: string },
  betas: ReadonlySet<string>,
): ApiResult<{ list: object }> {
  const limit = Math.max(1, Math.min(1_000, Number(query.limit ?? 20) || 20))
  const ids = models.map((model) => model.id)
  for (const name of ['after_id', 'before_id'] as const) {
    const id = query[name]
    if (id !== undefined && !ids.includes(id))
      return toRejection(createInvalidRequestError(`${name}: there is no model \`${id}\``))
  }
  const start = query.after_id === undefined ? 0 : ids.indexOf(query.after_id) + 1
  const end = query.before_id === undefined ? ids.length : ids.indexOf(query.before_id)
  const within = models.slice(start, end)
  const page = query.before_id === undefined ? within.slice(0, limit) : within.slice(-limit)
  const list = {
    data: page.map((model) => toModelInfo(model, betas)),
    has_more: page.length < within.length,
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
  }
  return { ok: true, list }
}

const toSupported = (yes: boolean): { readonly supported: boolean } => ({ supported: yes })

function toModelInfo(model: SimulatedModel, betas: ReadonlySet<string>): object {
  const thinks = (type: string): { readonly supported: boolean } =>
    toSupported(model.thinking.some((known) => known === type))
  return {
    id: model.id,
    type: 'model',
    display_name: model.displayName,
    created_at: model.createdAt,
    lifecycle: 'active',
    deprecated_at: null,
    retires_at: null,
    line: model.id.match(/haiku|sonnet|opus|fable|mythos/)?.[0] ?? null,
    max_input_tokens: model.window,
    max_tokens: model.maxOutput,
    capabilities: {
      batch: toSupported(false),
      citations: toSupported(true),
      code_execution: toSupported(false),
      context_management: {
        supported: model.contextEditing,
        clear_tool_uses_20250919: toSupported(model.contextEditing),
        clear_thinking_20251015: toSupported(model.contextEditing),
        compact_20260112: toSupported(model.compaction),
      },
      effort: {
        supported: model.thinking.includes('adaptive'),
        ...Object.fromEntries(EFFORTS.map((effort) => [effort, thinks('adaptive')])),
      },
      image_input: toSupported(true),
      pdf_input: toSupported(true),
      server_tools: toSupported(false),
      structured_outputs: toSupported(true),
      thinking: {
        supported: model.thinking.length > 0,
        types: {
          adaptive: thinks('adaptive'),
          between_tools: thinks('between_tools'),
          disabled: thinks('disabled'),
          enabled: thinks('enabled'),
        },
      },
      ...(betas.has(BETA_NAMES.onDemandCompaction)
        ? { compaction: { supported: model.compaction, summarize: toSupported(model.compaction) } }
        : {}),
    },
  }
}
