/** The policy `dropIn.cacheMarkers`: whether the cache markers of a client are kept where they are, added to, or replaced. */
import { expect, it } from 'vitest'
import { ClientAgent, type ClientBlock, createDropInWorld, sumRequests, withMarkers } from './client-agent.ts'

type Body = Record<string, unknown>

/** The places of the cache markers of a body, as `messages.4.0: 1h`. */
function listMarkers(body: Body): readonly string[] {
  const places: string[] = []
  const search = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return
    for (const [name, item] of Object.entries(value))
      if (name === 'cache_control') places.push(`${path}: ${(item as { ttl?: string }).ttl ?? '5m'}`)
      else search(item, path === '' ? name : `${path}.${name}`)
  }
  search(body, '')
  return places.toSorted()
}

async function runClient(cacheMarkers: 'add' | 'keep' | 'replace' | 'direct', prepare: (body: Body) => Body) {
  const world = createDropInWorld({
    turns: 10,
    ...(cacheMarkers === 'direct' ? {} : { policy: { dropIn: { cacheMarkers } } }),
  })
  const fetch =
    cacheMarkers === 'direct' ? world.upstream : world.tide.fetch({ session: 'talk', fetch: world.upstream })
  const given: string[] = []
  const host = new ClientAgent(
    (input, init) => {
      given.push(String(init?.body))
      return fetch(input, init)
    },
    world.coder,
    { prepare },
  )
  await host.ask('Fix the sums.')
  const toPlaces = (bodies: readonly string[]) => bodies.map((body) => listMarkers(JSON.parse(body)))
  return { given: toPlaces(given), sent: toPlaces(world.sent), sums: sumRequests(world) }
}

/** Marks a tool and the first message for an hour. */
function withOddMarkers(body: Body): Body {
  const hour = { type: 'ephemeral', ttl: '1h' }
  const [first, ...tools] = body.tools as object[]
  const messages = structuredClone(body.messages) as { role: string; content: string | ClientBlock[] }[]
  const [start] = messages
  if (start !== undefined)
    start.content = [{ type: 'text', text: String(start.content), cache_control: hour }]
  return { ...body, tools: [{ ...first, cache_control: hour }, ...tools], messages }
}

it.each([
  ['on the system prompt and the last message', withMarkers],
  ['on a tool and the first message, for an hour', withOddMarkers],
  ['nowhere', (body: Body) => body],
])(
  'markers %s are sent where the client has set them, if the policy keeps them, at the cost of direct',
  async (_, prepare) => {
    const kept = await runClient('keep', prepare)
    expect(kept.sent).toEqual(kept.given)
    expect(kept.sums.refused).toBe(0)
    const direct = await runClient('direct', prepare)
    expect(kept.sums.dollars / direct.sums.dollars).toBeLessThanOrEqual(1.001)
  },
)

it('the marker of the request itself stands on the last block', async () => {
  const automatic = (body: Body): Body => ({ ...body, cache_control: { type: 'ephemeral' } })
  const kept = await runClient('keep', automatic)
  expect(kept.sent.map((places) => places.length)).toEqual(kept.given.map(() => 1))
  const direct = await runClient('direct', automatic)
  expect(kept.sums.dollars / direct.sums.dollars).toBeLessThanOrEqual(1.001)
})

it('if the policy replaces them, clients that mark little save', async () => {
  const replaced = await runClient('replace', withOddMarkers)
  expect(replaced.sent).not.toEqual(replaced.given)
  const direct = await runClient('direct', withOddMarkers)
  expect(replaced.sums.dollars).toBeLessThan(direct.sums.dollars)
})

it('by default they stay, and what the engine adds is before the last of them', async () => {
  const added = await runClient('add', withMarkers)
  for (const [index, places] of added.given.entries())
    expect(added.sent[index]).toEqual(expect.arrayContaining([...places]))
  const direct = await runClient('direct', withMarkers)
  expect(added.sums.dollars / direct.sums.dollars).toBeLessThanOrEqual(1.001)
})
