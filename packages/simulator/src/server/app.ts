/** The HTTP side: paths and methods, whatever the query string; everything else is decided behind it. */
import { type Context, Hono } from 'hono'
import { type Refusal, refusal } from '../refusal.ts'
import { betasOf } from '../validation/betas.ts'
import type { Endpoint } from '../validation/validate.ts'
import { type Headers, identify } from './account.ts'
import { errorAnswer } from './answer.ts'
import { readBody } from './body.ts'
import { controlRoutes } from './control.ts'
import { exchange } from './exchange.ts'
import { modelPage, modelView } from './models-route.ts'
import { BrokenConnection, send } from './send.ts'
import type { World } from './world.ts'

/** What a real connection adds to a request. */
export interface Connection {
  reset(): void
  /** What was written of the answer is with the client. */
  flushed(): Promise<void>
}

export interface Bindings {
  readonly connection?: Connection
  /** The caller's own: the one of a request only follows it, and is lost with the request. */
  readonly signal?: AbortSignal
}

type AppContext = Context<{ Bindings: Bindings }>

export type App = Hono<{ Bindings: Bindings }>

export function createApp(world: World): App {
  const app: App = new Hono()
  app.post('/v1/messages', (context) => answer(world, context, 'messages'))
  app.post('/v1/messages/count_tokens', (context) => answer(world, context, 'count_tokens'))
  app.get('/v1/models', (context) => {
    const refused = unknownCaller(world, context)
    if (refused !== null) return sendRefusal(world, refused)
    return context.json(modelPage(world.settings.models.all, context.req.query(), betas(context)))
  })
  app.get('/v1/models/:id', (context) => {
    const refused = unknownCaller(world, context)
    if (refused !== null) return sendRefusal(world, refused)
    const id = context.req.param('id')
    const model = world.settings.models.find(id)
    if (model === undefined) return sendRefusal(world, refusal(404, `model: ${id}`))
    return context.json(modelView(model, betas(context)))
  })
  app.route('/_simulator', controlRoutes(world))
  app.onError((error) => {
    if (error instanceof BrokenConnection) throw error
    return sendRefusal(world, refusal(500, `The simulator failed: ${error.message}`))
  })
  app.all('*', (context) =>
    // Clients probe with HEAD before they talk.
    context.req.method === 'HEAD' ? context.body(null, 200) : sendRefusal(world, notFound(context)),
  )
  return app
}

async function answer(world: World, context: AppContext, endpoint: Endpoint): Promise<Response> {
  const { raw } = context.req
  const body = await readBody(raw)
  const read = body.ok
    ? { value: body.value, bodyBytes: body.bytes }
    : { value: null, bodyBytes: Number(raw.headers.get('content-length') ?? 0), unreadable: body.refusal }
  const incoming = { endpoint, headers: headersOf(context), ...read }
  const { answer: made, begin } = await exchange(world, incoming)
  const { connection = null, signal = raw.signal } = context.env ?? {}
  return send(made, { clock: world.clock, signal, begin, connection })
}

function headersOf(context: AppContext): Headers {
  return context.req.header()
}

function betas(context: AppContext): ReadonlySet<string> {
  return betasOf(context.req.header('anthropic-beta'))
}

function unknownCaller(world: World, context: AppContext): Refusal | null {
  const identity = identify(headersOf(context), world.settings.accounts)
  return identity.ok ? null : identity.refusal
}

const POSTED = new Set(['/v1/messages', '/v1/messages/count_tokens'])

function notFound(context: AppContext): Refusal {
  const { method, path } = context.req
  return POSTED.has(path) ? refusal(405, `Method ${method} is not allowed`) : refusal(404, 'Not Found')
}

function sendRefusal(world: World, refused: Refusal): Promise<Response> {
  const requestId = world.ids.next('req')
  const made = errorAnswer(refused, requestId, { 'request-id': requestId })
  const { signal } = new AbortController()
  return send(made, { clock: world.clock, signal, begin: () => undefined, connection: null })
}
