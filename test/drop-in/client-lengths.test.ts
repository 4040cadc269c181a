/**
 * The law of `tide.fetch` for runs that end at any point, also just where the window is full: no dearer than direct while
 * direct lives, and the work goes on where direct dies.
 */
import { isFullRun, sampleCases } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import {
  ClientAgent,
  createDropInWorld,
  type DropInOptions,
  sumRequests,
  withMarkers,
} from './client-agent.ts'

const WINDOW = 30_000

/** Numbers of steps. With `npm run test:full`, all of them. */
const LENGTHS = Array.from({ length: 60 }, (_, index) => index + 10).filter(
  (length) => isFullRun() || length % 16 === 9,
)

interface Run {
  readonly dollars: number
  readonly refused: number
  /** Why the client has no final answer: it was refused, or the window cut its last response; null if it has one. */
  readonly error: string | null
  readonly rewrites: number
}

const CUT = 'model_context_window_exceeded'

type Body = Record<string, unknown>

async function runClient(
  way: 'direct' | 'managed',
  turns: number,
  { prepare, fields = {}, ...options }: ClientCase & { readonly prepare: (body: Body) => Body },
): Promise<Run> {
  const world = createDropInWorld({ window: WINDOW, turns, resultTokens: 500, ...options })
  const fetch =
    way === 'direct' ? world.upstream : world.tide.fetch({ session: 'talk', fetch: world.upstream })
  const { modelId = 'claude-sonnet-5-5' } = options
  const host = new ClientAgent(fetch, world.coder, { prepare, model: modelId, fields })
  const error = await host.ask('Fix the sums.').then(
    () => (world.simulator.requests.some(({ stopReason }) => stopReason === CUT) ? CUT : null),
    (thrown: Error) => thrown.message,
  )
  const { dollars, refused } = sumRequests(world)
  return { dollars, refused, error, rewrites: world.events.filter(({ type }) => type === 'rewritten').length }
}

interface ClientCase extends DropInOptions {
  readonly fields?: Readonly<Record<string, unknown>>
}

const CASES: readonly (readonly [string, ClientCase])[] = [
  ['a model that ends its answer where the window ends', {}],
  ['a model that refuses max_tokens beyond the window', { modelId: 'claude-opus-4-1' }],
  [
    'a model whose thinking is bound to what came before it',
    {
      modelId: 'claude-opus-5-5',
      thinkingTokens: 100,
      fields: { max_tokens: 4_000, thinking: { type: 'adaptive' } },
    },
  ],
]

const PREPARATIONS: readonly (readonly [string, (body: Body) => Body])[] = [
  ['with its own cache markers', withMarkers],
  ['without cache markers', (body) => body],
]

const RUNS = PREPARATIONS.flatMap(([markers, prepare]) =>
  CASES.map(([model, options]) => [markers, model, prepare, options] as const),
)

// Three of them have both and every model.
describe('a client', () => {
  it.each(sampleCases(RUNS, 3))(
    '%s, with %s, pays no more than direct, however long its run is, and goes on where direct ends',
    async (_, __, prepare, options) => {
      const ends = { alive: 0, dead: 0 }
      for (const length of LENGTHS) {
        const direct = await runClient('direct', length, { ...options, prepare })
        const managed = await runClient('managed', length, { ...options, prepare })
        const label = `${length} steps`
        expect(managed.error, label).toBeNull()
        expect(managed.refused, label).toBeLessThanOrEqual(direct.error === null ? 0 : 1)
        if (direct.error === null) {
          expect(managed.dollars / direct.dollars, label).toBeLessThanOrEqual(1.01)
          expect(managed.rewrites, label).toBe(0)
        }
        ends[direct.error === null ? 'alive' : 'dead'] += 1
      }
      expect(Math.min(ends.alive, ends.dead)).toBeGreaterThan(0)
    },
  )
})

it('with the policy dropIn.rewrite "early", old results are cleared before the window is full', async () => {
  const policy = { dropIn: { rewrite: 'early' as const } }
  const run = await runClient('managed', 44, { policy, prepare: withMarkers })
  expect(run).toMatchObject({ error: null, refused: 0 })
  expect(run.rewrites).toBeGreaterThan(0)
})
