/** Answers that the context window cuts: direct they end a client's run; with Tidemark the context is made smaller, and it goes on. */
import { sampleCases } from '@tidemark/core/testing'
import { type Coder, createSummarizer, type Script, withSummaries } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { ClientAgent, createDropInWorld, type Fetch, sumRequests } from './client-agent.ts'

const STEPS = 60
const TOOLS = [
  {
    name: 'Read',
    description: 'Reads.',
    input_schema: { type: 'object', properties: { part: { type: 'number' } } },
  },
]

/** Reads the ledger part by part, and says something about each: mostly little, sometimes much. */
const readLedger: Script = ({ messages }) => {
  const read = Number(/part (\d+) of the ledger/.exec(JSON.stringify(messages.at(-1)))?.[1] ?? 0)
  const chance = Math.abs(Math.sin((read + 1) * 38.9694) * 43_758.5453) % 1
  const text = `Sum ${read}. `.repeat(chance < 0.15 ? 500 : chance < 0.4 ? 150 : 20)
  if (read >= STEPS) return { blocks: [{ type: 'text', text: `${text}The end.` }] }
  return {
    blocks: [
      { type: 'text', text },
      { type: 'tool_use', name: 'Read', input: { part: read + 1 } },
    ],
  }
}

const tools: Pick<Coder, 'tools' | 'toolResult'> = {
  tools: TOOLS,
  toolResult: ({ id, input }) => ({
    type: 'tool_result',
    tool_use_id: String(id),
    content: `part ${Object(input).part} of the ledger: ${'row '.repeat(500)}`,
  }),
}

interface RunOptions {
  readonly window: number
  readonly stream: boolean
  readonly isManaged: boolean
  readonly script?: Script
}

async function readWhole({ window, stream, isManaged, script = readLedger }: RunOptions) {
  const summarizing = withSummaries(script, createSummarizer())
  const world = createDropInWorld({ window, simulator: { script: summarizing, window } })
  let cuts = 0
  const upstream: Fetch = async (input, init) => {
    const { status, headers, body } = await world.upstream(input, init)
    const text = await new Response(body).text()
    if (text.includes('model_context_window_exceeded')) cuts += 1
    // Event by event, as over a network.
    const events = text.split(/(?<=\n\n)/).map((event) => new TextEncoder().encode(event))
    return new Response(ReadableStream.from(events), { status, headers })
  }
  const session = await world.tide.open('talk')
  const fetch = isManaged ? world.tide.fetch({ session, fetch: upstream }) : upstream
  const fields = { stream, max_tokens: 3_000 }
  const host = new ClientAgent(fetch, tools, { fields, system: 'Careful. '.repeat(100), tools: TOOLS })
  await host.ask('Read the ledger.')
  const isWhole = JSON.stringify(host.messages.at(-1)).includes('The end.')
  const spent = session.money().spent.total
  await world.tide.close()
  return { isWhole, cuts, steps: host.requests, spent, bill: sumRequests(world).dollars }
}

describe.each([false, true])('a client that reads streams: %s', (stream) => {
  it.each(sampleCases([26_500, 28_500, 33_000], 1))(
    'goes on where the window of %i tokens cuts an answer, which ends it when it goes direct',
    async (window) => {
      const direct = await readWhole({ window, stream, isManaged: false })
      expect(direct).toMatchObject({ isWhole: false, cuts: 1 })
      const managed = await readWhole({ window, stream, isManaged: true })
      expect(managed).toMatchObject({ isWhole: true, steps: STEPS + 1 })
      expect(managed.spent).toBeCloseTo(managed.bill, 9)
    },
  )

  it('gets the cut answer where nothing can be made smaller', async () => {
    const script: Script = () => ({ blocks: [{ type: 'text', text: 'A sum. '.repeat(3_000) }] })
    const managed = await readWhole({ window: 3_000, stream, isManaged: true, script })
    expect(managed).toMatchObject({ isWhole: false, steps: 1, cuts: 1 })
    expect(managed.spent).toBeCloseTo(managed.bill, 9)
  })
})

it('a stream whose answer fits is passed on while it is written', async () => {
  const script = withSummaries(readLedger, createSummarizer())
  const world = createDropInWorld({ simulator: { script } })
  let isOpen = true
  const upstream: Fetch = async (input, init) => {
    const { body, headers } = await world.upstream(input, init)
    const [start] = new TextDecoder()
      .decode(await new Response(body).arrayBuffer())
      .split('event: content_block_stop')
    // The rest of the answer comes only once the client has read its beginning.
    const gate = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode(start)),
      cancel: () => {
        isOpen = false
      },
    })
    return new Response(gate, { headers })
  }
  const fetch = world.tide.fetch({ session: 'talk', fetch: upstream })
  const host = new ClientAgent(fetch, tools, { fields: { stream: true }, tools: TOOLS })
  host.messages.push({ role: 'user', content: 'Read the ledger.' })
  const { body } = await host.send()
  const reader = body?.getReader()
  expect(new TextDecoder().decode((await reader?.read())?.value)).toContain('Sum 0.')
  expect(isOpen).toBe(true)
  await reader?.cancel()
  await world.tide.close()
})
