/** The simulator's own endpoints: looking at requests, asking for faults, moving the clock, starting over. */
import { Hono } from 'hono'
import { isObject } from '../api.ts'
import { jsonIn } from '../faults/requested.ts'
import { readScheduledFault } from '../faults/schedule.ts'
import { problemText, readAll } from '../script/fields.ts'
import type { World } from './world.ts'

export function controlRoutes(world: World): Hono {
  const routes = new Hono()
  routes.get('/', (context) =>
    context.json({
      requests: world.log.count,
      cache_entries: world.store.size,
      prompt_bytes: world.tree.bytes,
      faults_waiting: world.faults.waiting.length,
      now: new Date(world.clock.now()).toISOString(),
    }),
  )
  routes.get('/requests', (context) => {
    const after = Number(context.req.query('after') ?? 0)
    const limit = Number(context.req.query('limit') ?? Number.POSITIVE_INFINITY)
    const requests = world.log.records.filter((record) => record.number > after).slice(-limit)
    return context.json({ requests })
  })
  routes.get('/requests/:number', (context) => {
    const number = Number(context.req.param('number'))
    const found = world.log.records.find((record) => record.number === number)
    return found === undefined ? context.json({ error: `no request ${number}` }, 404) : context.json(found)
  })
  routes.delete('/requests', (context) => {
    world.log.clear()
    return context.body(null, 204)
  })
  routes.get('/faults', (context) => context.json({ waiting: world.faults.waiting }))
  routes.post('/faults', async (context) => {
    const body = readFaults(await context.req.text())
    if (!body.ok) return context.json({ error: body.message }, 400)
    const { given } = body
    const readings = (Array.isArray(given) ? given : [given]).map((each) => readAll(readScheduledFault, each))
    const wrong = readings.find((reading) => !reading.ok)
    if (wrong !== undefined && !wrong.ok)
      return context.json({ error: wrong.problems.map(problemText).join('; ') }, 400)
    for (const reading of readings) if (reading.ok) world.faults.add(reading.value)
    return context.json({ waiting: world.faults.waiting })
  })
  routes.delete('/faults', (context) => {
    world.faults.clear()
    return context.body(null, 204)
  })
  routes.post('/clock', async (context) => {
    const given: unknown = jsonIn(await context.req.text())
    const ms = isObject(given) ? given.advance_ms : undefined
    if (typeof ms !== 'number') return context.json({ error: 'advance_ms must be a number' }, 400)
    world.clock.shift(ms)
    return context.json({ now: new Date(world.clock.now()).toISOString() })
  })
  routes.delete('/cache', (context) => {
    world.store.clear()
    return context.body(null, 204)
  })
  return routes
}

type GivenFaults =
  | { readonly ok: true; readonly given: unknown }
  | { readonly ok: false; readonly message: string }

/** JSON, or the text of a fault as a header has it. */
function readFaults(body: string): GivenFaults {
  const text = body.trim()
  if (text === '')
    return { ok: false, message: 'expected a fault, such as "status=429; retry-after=2", found nothing' }
  const given = jsonIn(text)
  if (given !== undefined) return { ok: true, given }
  if (/^[[{"]/.test(text)) return { ok: false, message: 'the body looks like JSON and is none' }
  return { ok: true, given: text }
}
