/** The law of `tide.fetch`: never dearer than going direct, never refused where direct is not, and the same answers. */
import { isFullRun, sampleCases } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import {
  ClientAgent,
  type ClientBlock,
  type ClientMessage,
  createDropInWorld,
  sumRequests,
  withMarkers,
} from './client-agent.ts'

/** The tenth has two prompts, and is one of the short ones. */
const SEEDS = isFullRun() ? Array.from({ length: 20 }, (_, index) => index + 1) : [10]

type Body = Record<string, unknown>

/** Habits of clients, each with what it does to a request before it is sent. */
const HABITS: Readonly<Record<string, (body: Body, number: number) => Body>> = {
  none: (body) => body,
  clock: (body, number) => ({ ...body, system: `${body.system}\nIt is 12:${10 + number}.` }),
  order: (body, number) => ({
    ...body,
    tools: (body.tools as object[]).toSorted((one, other) =>
      number % 2 === 0 ? 0 : JSON.stringify(one) < JSON.stringify(other) ? 1 : -1,
    ),
  }),
  effort: (body, number) => ({ ...body, output_config: { effort: number % 7 === 6 ? 'low' : 'high' } }),
  defaults: (body) => ({
    ...body,
    messages: (body.messages as ClientMessage[]).map(({ role, content }) => ({
      role,
      content:
        typeof content === 'string'
          ? content
          : content.map((block) =>
              block.type === 'tool_use' ? { ...block, input: { ...Object(block.input), all: false } } : block,
            ),
    })),
  }),
  // Gone from that message with the next request.
  reminder: (body, number) => ({
    ...body,
    messages: (body.messages as ClientMessage[]).map((message, index, { length }) =>
      index < length - 1 ? message : withText(message, `<reminder>${number} todos</reminder>`),
    ),
  }),
  // In the first message of the conversation, so that no request has a message in common with the one before.
  date: (body, number) => ({
    ...body,
    messages: (body.messages as ClientMessage[]).map((message, index) =>
      index > 0 ? message : withText(message, `It is 12:${10 + number}.`),
    ),
  }),
  prune: (body, number) => {
    const messages = body.messages as ClientMessage[]
    const old = number > 8 ? messages.length - 10 : 0
    const clear = (block: ClientBlock): ClientBlock =>
      block.type === 'tool_result' ? { ...block, content: '[cleared by the client]' } : block
    return {
      ...body,
      messages: messages.map(({ role, content }, index) => ({
        role,
        content: index < old && typeof content !== 'string' ? content.map(clear) : content,
      })),
    }
  },
}

function withText({ role, content }: ClientMessage, text: string): ClientMessage {
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  return { role, content: [...blocks, { type: 'text', text }] }
}

function listCalls(messages: readonly ClientMessage[]): readonly string[] {
  return messages.flatMap(({ content }) =>
    typeof content === 'string'
      ? []
      : content.flatMap((block) => (block.type === 'tool_use' ? [JSON.stringify(block)] : [])),
  )
}

/** A model whose thinking is bound to every byte before it. */
const BOUND = {
  modelId: 'claude-opus-5-5',
  thinkingTokens: 120,
  fields: { max_tokens: 4_000, thinking: { type: 'adaptive' } },
}

async function runClient(
  mode: 'direct' | 'managed',
  seed: number,
  prepare: (body: Body, number: number) => Body,
  { fields, ...model }: Partial<typeof BOUND> = {},
) {
  const world = createDropInWorld({ turns: 6 + (seed % 9), resultTokens: 200 + 90 * seed, ...model })
  const fetch =
    mode === 'direct' ? world.upstream : world.tide.fetch({ session: 'talk', fetch: world.upstream })
  const { modelId = 'claude-sonnet-5-5' } = model
  const host = new ClientAgent(fetch, world.coder, { prepare, model: modelId, ...(fields && { fields }) })
  for (let prompt = 0; prompt < 1 + (seed % 3); prompt += 1) await host.ask(`Task ${seed}, part ${prompt}.`)
  return { ...world, host, sums: sumRequests(world) }
}

type Change = (body: Body, number: number) => Body

const MARKERS: readonly (readonly [string, (change: Change) => Change])[] = [
  ['with its own cache markers', (change) => (body, number) => withMarkers(change(body, number))],
  ['without cache markers', (change) => change],
]

const LAW_CASES = MARKERS.flatMap(([markers, mark]) =>
  Object.entries(HABITS).map(([habit, change]) => [habit, markers, mark(change)] as const),
)

describe('conversations of a client', () => {
  it.each(sampleCases(LAW_CASES, Math.ceil(LAW_CASES.length / 2)))(
    'with the habit "%s", %s: the same calls, none refused, and no dearer',
    async (habit, _, prepare) => {
      for (const seed of SEEDS) {
        const direct = await runClient('direct', seed, prepare)
        const managed = await runClient('managed', seed, prepare)
        const label = `${habit} ${seed}`
        expect(managed.sums.refused, label).toBe(0)
        expect(managed.sums.dollars / direct.sums.dollars, label).toBeLessThanOrEqual(1.01)
        expect(managed.listMessages('request-passed'), label).toEqual([])
        if (!managed.events.some(({ type }) => type === 'rewritten'))
          expect(listCalls(managed.host.messages), label).toEqual(listCalls(direct.host.messages))
      }
    },
  )
})

it.each(sampleCases(['none', 'clock', 'order', 'defaults'], 2))(
  'a model whose thinking is bound to what came before it refuses nothing of a client with the habit "%s", also where it refuses the client’s own, and is no dearer',
  async (habit) => {
    const change = HABITS[habit] as (body: Body, number: number) => Body
    for (const prepare of [change, (body: Body, number: number) => withMarkers(change(body, number))])
      for (const seed of SEEDS.slice(0, 4)) {
        const direct = await runClient('direct', seed, prepare, BOUND).catch(() => null)
        const managed = await runClient('managed', seed, prepare, BOUND)
        expect(managed.sums.refused, `${seed}`).toBe(0)
        if (direct === null) expect(['clock', 'order']).toContain(habit)
        else expect(managed.sums.dollars / direct.sums.dollars, `${seed}`).toBeLessThanOrEqual(1.01)
      }
  },
)

it('conversations of one request with tools are no dearer', async () => {
  const ask = async (mode: 'direct' | 'managed') => {
    const world = createDropInWorld()
    const fetch =
      mode === 'direct' ? world.upstream : world.tide.fetch({ session: 'talk', fetch: world.upstream })
    for (let number = 0; number < 5; number += 1) {
      const host = new ClientAgent(fetch, world.coder, { system: 'Classify the document.' })
      host.messages.push({ role: 'user', content: `Document ${number}. `.repeat(1_000) })
      expect((await host.send()).status).toBe(200)
    }
    return sumRequests(world).dollars
  }
  expect(await ask('managed')).toBeLessThanOrEqual(await ask('direct'))
})
