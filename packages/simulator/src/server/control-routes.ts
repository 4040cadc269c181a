/** The control API below `/_simulator`: reads the request log, schedules faults, advances the clock, clears the cache. */
import { type Context, Hono } from 'hono'
import { readScheduledFault, tryParseJson } from '../faults/fault-schedule.ts'
import { isObject } from '../protocol/messages-request.ts'
import { describeDeepNesting, formatReadProblem, readDocument } from '../protocol/value-readers.ts'
import { MAX_KEPT_BODY_LENGTH } from '../request-log/request-log.ts'
import { readLimitedText } from './request-body.ts'
import type { SimulatorState } from './simulator-state.ts'

export function createControlRoutes(state: SimulatorState): Hono {
  const routes = new Hono()
  routes.get('/', (context) =>
    context.json({
      requests: state.log.count,
      totals: state.log.totals,
      cache_entries: state.store.size + state.openai.prefixes.size + state.openai.breakpoints.size,
      prompt_bytes: state.tree.bytes,
      faults_waiting: state.faults.pending.length,
      now: new Date(state.clock.now()).toISOString(),
    }),
  )
  addRequestLogRoutes(routes, state)
  addFaultRoutes(routes, state)
  routes.post('/clock', async (context) => {
    const body = await readControlBody(context)
    if (!body.ok) return body.refusal
    const given: unknown = tryParseJson(body.text)
    const ms = isObject(given) ? given.advance_ms : undefined
    if (typeof ms !== 'number' || !(ms >= 0 && ms <= MAX_ADVANCE_MS))
      return refuse(context, 400, `advance_ms must be a number from 0 to ${MAX_ADVANCE_MS}`)
    state.clock.advance(ms)
    return context.json({ now: new Date(state.clock.now()).toISOString() })
  })
  routes.delete('/cache', (context) => {
    state.store.clear()
    state.openai.prefixes.clear()
    state.openai.breakpoints.clear()
    return context.body(null, 204)
  })
  return routes
}

/** About 31 years: longer than every lifetime, but within the range of dates. */
const MAX_ADVANCE_MS = 1e12

function addRequestLogRoutes(routes: Hono, { log }: SimulatorState): void {
  routes.get('/requests', (context) => {
    const after = readWholeNumber(context.req.query('after'), 0)
    const limit = readWholeNumber(context.req.query('limit'), log.records.length)
    if (after === null || limit === null)
      return refuse(context, 400, `${after === null ? 'after' : 'limit'} must be a whole number`)
    const found = log.records.filter((record) => record.number > after)
    const requests = found.slice(Math.max(0, found.length - limit))
    // JSON has no infinity: a limit of null means that all are kept.
    return context.json({ requests, total: log.count, kept: log.limit, forgotten: log.forgotten })
  })
  routes.get('/requests/:number', (context) => {
    const number = Number(context.req.param('number'))
    const found = log.records.find((record) => record.number === number)
    return found === undefined ? refuse(context, 404, describeMissing(number)) : context.json(found)
  })
  routes.get('/requests/:number/body', (context) => {
    const number = Number(context.req.param('number'))
    const found = log.findBody(number)
    if (found === undefined) return refuse(context, 404, describeMissing(number))
    return context.body(found, 200, {
      'content-type': 'application/json',
      'x-content-type-options': 'nosniff',
    })
  })
  routes.delete('/requests', (context) => {
    log.clear()
    return context.body(null, 204)
  })

  function describeMissing(number: number): string {
    if (!(number >= 1 && number <= log.count)) return `no request ${number}`
    const size = `${MAX_KEPT_BODY_LENGTH / 1_048_576} MiB of bodies`
    return `request ${number} is no longer kept: the newest ${log.limit} are, and of these the newest ${size}`
  }
}

/** Reads a whole number from a query. Returns `otherwise` if it is missing, null if it is invalid. */
function readWholeNumber(text: string | undefined, otherwise: number): number | null {
  if (text === undefined) return otherwise
  return /^\d{1,15}$/.test(text) ? Number(text) : null
}

function addFaultRoutes(routes: Hono, { faults }: SimulatorState): void {
  routes.get('/faults', (context) => context.json({ waiting: faults.pending }))
  routes.post('/faults', async (context) => {
    const body = await readControlBody(context)
    if (!body.ok) return body.refusal
    const parsed = parseFaultBody(body.text)
    if (!parsed.ok) return refuse(context, 400, parsed.message)
    const { given } = parsed
    const readings = (Array.isArray(given) ? given : [given]).map((each) =>
      readDocument(readScheduledFault, each),
    )
    const wrong = readings.find((reading) => !reading.ok)
    if (wrong !== undefined && !wrong.ok)
      return refuse(context, 400, wrong.problems.map(formatReadProblem).join('; '))
    for (const reading of readings) if (reading.ok) faults.add(reading.value)
    return context.json({ waiting: faults.pending })
  })
  routes.delete('/faults', (context) => {
    faults.clear()
    return context.body(null, 204)
  })
}

/** Parses the body of a request that schedules faults: JSON, or the text notation of the header `x-simulator-fault`. */
function parseFaultBody(
  body: string,
): { readonly ok: true; readonly given: unknown } | { readonly ok: false; readonly message: string } {
  const text = body.trim()
  if (text === '')
    return { ok: false, message: 'expected a fault, such as "status=429; retry-after=2", found nothing' }
  const given = tryParseJson(text)
  if (given === undefined)
    return /^[[{"]/.test(text)
      ? { ok: false, message: 'the body looks like JSON and is none' }
      : { ok: true, given: text }
  const deep = describeDeepNesting(given)
  return deep === null ? { ok: true, given } : { ok: false, message: deep }
}

const MAX_CONTROL_BODY_BYTES = 1_000_000

type ControlBody =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly refusal: Response }

/**
 * Reads the body of a request to the control API. Its content type must be JSON, because a web page can send forms of
 * other types without the browser asking the simulator first.
 */
async function readControlBody(context: Context): Promise<ControlBody> {
  const type = context.req.header('content-type')?.split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json')
    return { ok: false, refusal: refuse(context, 415, 'content-type must be application/json') }
  const read = await readLimitedText(context.env?.bodyText ?? context.req.raw.body, MAX_CONTROL_BODY_BYTES)
  if (read === null)
    return { ok: false, refusal: refuse(context, 413, `the body is over ${MAX_CONTROL_BODY_BYTES} bytes`) }
  return { ok: true, text: read.pieces.join('') }
}

function refuse(context: Context, status: 400 | 404 | 413 | 415, error: string): Response {
  return context.json({ error }, status)
}
