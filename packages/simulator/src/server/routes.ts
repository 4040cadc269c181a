/** The HTTP routes: the Messages API, the list of models, and the control API below `/_simulator`. */
import { type Context, Hono } from 'hono'
import { readScheduledFault, tryParseJson } from '../faults/fault-schedule.ts'
import { type ApiError, apiError, createErrorAnswer } from '../protocol/answer.ts'
import { BETA_NAMES, isObject, parseBetas } from '../protocol/api.ts'
import { formatReadProblem, readDocument } from '../protocol/json-fields.ts'
import type { Effort, SimulatedModel } from '../protocol/models.ts'
import type { Endpoint } from '../validation/validate.ts'
import { authenticateApiKey, type RequestHeaders } from './accounts.ts'
import { readRequestBody } from './admit-request.ts'
import { handleMessagesRequest } from './handle-request.ts'
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
}

type AppContext = Context<{ Bindings: RequestBindings }>

export type SimulatorApp = Hono<{ Bindings: RequestBindings }>

export function createRoutes(state: SimulatorState): SimulatorApp {
  const app: SimulatorApp = new Hono()
  app.post('/v1/messages', (context) => answerRequest(state, context, 'messages'))
  app.post('/v1/messages/count_tokens', (context) => answerRequest(state, context, 'count_tokens'))
  app.get('/v1/models', (context) => {
    const error = findAuthenticationError(state, context)
    if (error !== null) return sendError(state, error)
    return context.json(buildModelPage(state.settings.models.all, context.req.query(), readBetas(context)))
  })
  app.get('/v1/models/:id', (context) => {
    const error = findAuthenticationError(state, context)
    if (error !== null) return sendError(state, error)
    const id = context.req.param('id')
    const model = state.settings.models.find(id)
    if (model === undefined) return sendError(state, apiError(404, `model: ${id}`))
    return context.json(toModelInfo(model, readBetas(context)))
  })
  app.route('/_simulator', createControlRoutes(state))
  app.onError((error) => {
    if (error instanceof BrokenConnectionError) throw error
    return sendError(state, apiError(500, `The simulator failed: ${error.message}`))
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
  endpoint: Endpoint,
): Promise<Response> {
  const { raw } = context.req
  const body = await readRequestBody(raw)
  const read = body.ok
    ? { value: body.value, bodyBytes: body.bytes }
    : { value: null, bodyBytes: Number(raw.headers.get('content-length') ?? 0), bodyError: body.error }
  const incoming = { endpoint, headers: readHeaders(context), ...read }
  const { answer, begin } = await handleMessagesRequest(state, incoming)
  const { connection = null, signal = raw.signal } = context.env ?? {}
  return sendAnswer(answer, { clock: state.clock, signal, begin, connection })
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

const POST_PATHS = new Set(['/v1/messages', '/v1/messages/count_tokens'])

function routeError(context: AppContext): ApiError {
  const { method, path } = context.req
  return POST_PATHS.has(path) ? apiError(405, `Method ${method} is not allowed`) : apiError(404, 'Not Found')
}

function sendError(state: SimulatorState, error: ApiError): Promise<Response> {
  const requestId = state.ids.next('req')
  const answer = createErrorAnswer(error, requestId, { 'request-id': requestId })
  const { signal } = new AbortController()
  return sendAnswer(answer, { clock: state.clock, signal, begin: () => undefined, connection: null })
}

// Responses of `GET /v1/models`.

function buildModelPage(
  models: readonly SimulatedModel[],
  query: { readonly limit?: string; readonly after_id?: string; readonly before_id?: string },
  betas: ReadonlySet<string>,
): object {
  const limit = Math.max(1, Math.min(1_000, Number(query.limit ?? 20) || 20))
  const ids = models.map((model) => model.id)
  const start = query.after_id === undefined ? 0 : ids.indexOf(query.after_id) + 1
  const end = query.before_id === undefined ? ids.length : Math.max(0, ids.indexOf(query.before_id))
  const within = models.slice(start, end)
  const page = query.before_id === undefined ? within.slice(0, limit) : within.slice(-limit)
  return {
    data: page.map((model) => toModelInfo(model, betas)),
    has_more: page.length < within.length,
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
  }
}

const toSupported = (yes: boolean): { readonly supported: boolean } => ({ supported: yes })
const EFFORTS: readonly Effort[] = ['low', 'medium', 'high', 'xhigh', 'max']

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

// The simulator's control endpoints: read the request log, schedule faults, advance the clock, clear the cache.

function createControlRoutes(state: SimulatorState): Hono {
  const routes = new Hono()
  routes.get('/', (context) =>
    context.json({
      requests: state.log.count,
      cache_entries: state.store.size,
      prompt_bytes: state.tree.bytes,
      faults_waiting: state.faults.pending.length,
      now: new Date(state.clock.now()).toISOString(),
    }),
  )
  routes.get('/requests', (context) => {
    const after = Number(context.req.query('after') ?? 0)
    const limit = Number(context.req.query('limit') ?? Number.POSITIVE_INFINITY)
    const requests = state.log.records.filter((record) => record.number > after).slice(-limit)
    return context.json({ requests })
  })
  routes.get('/requests/:number', (context) => {
    const number = Number(context.req.param('number'))
    const found = state.log.records.find((record) => record.number === number)
    return found === undefined ? context.json({ error: `no request ${number}` }, 404) : context.json(found)
  })
  routes.delete('/requests', (context) => {
    state.log.clear()
    return context.body(null, 204)
  })
  routes.get('/faults', (context) => context.json({ waiting: state.faults.pending }))
  routes.post('/faults', async (context) => {
    const body = parseFaultBody(await context.req.text())
    if (!body.ok) return context.json({ error: body.message }, 400)
    const { given } = body
    const readings = (Array.isArray(given) ? given : [given]).map((each) =>
      readDocument(readScheduledFault, each),
    )
    const wrong = readings.find((reading) => !reading.ok)
    if (wrong !== undefined && !wrong.ok)
      return context.json({ error: wrong.problems.map(formatReadProblem).join('; ') }, 400)
    for (const reading of readings) if (reading.ok) state.faults.add(reading.value)
    return context.json({ waiting: state.faults.pending })
  })
  routes.delete('/faults', (context) => {
    state.faults.clear()
    return context.body(null, 204)
  })
  routes.post('/clock', async (context) => {
    const given: unknown = tryParseJson(await context.req.text())
    const ms = isObject(given) ? given.advance_ms : undefined
    if (typeof ms !== 'number') return context.json({ error: 'advance_ms must be a number' }, 400)
    state.clock.advance(ms)
    return context.json({ now: new Date(state.clock.now()).toISOString() })
  })
  routes.delete('/cache', (context) => {
    state.store.clear()
    return context.body(null, 204)
  })
  return routes
}

/** Parses the body of a request that schedules faults: JSON, or the text notation of the header `x-simulator-fault`. */
function parseFaultBody(
  body: string,
): { readonly ok: true; readonly given: unknown } | { readonly ok: false; readonly message: string } {
  const text = body.trim()
  if (text === '')
    return { ok: false, message: 'expected a fault, such as "status=429; retry-after=2", found nothing' }
  const given = tryParseJson(text)
  if (given !== undefined) return { ok: true, given }
  if (/^[[{"]/.test(text)) return { ok: false, message: 'the body looks like JSON and is none' }
  return { ok: true, given: text }
}
