/** Tools as users write them: typed inputs from JSON Schema and three schema libraries, progress, order of calls. */
import type { Script } from '@tidemark/simulator'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import { type SessionEvent, type Tools, tool } from 'tidemark'
import * as v from 'valibot'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { createTestTidemark } from '../support/test-tidemark.ts'

type Call = { readonly name: string; readonly input: Record<string, unknown> }

/** A model that makes these calls in one response and then says what the results were. */
function callOnce(calls: readonly Call[]): Script {
  return ({ messages }) => {
    const last = messages.at(-1)
    const results = (Array.isArray(last?.content) ? last.content : []).filter(
      (block) => (block as { type: string }).type === 'tool_result',
    )
    if (results.length === 0) return { blocks: calls.map((call) => ({ type: 'tool_use' as const, ...call })) }
    const texts = results.map((block) => JSON.stringify((block as { content?: unknown }).content))
    return { blocks: [{ type: 'text', text: texts.join(' | ') }] }
  }
}

async function runOnce(tools: Tools, ...calls: Call[]): Promise<{ text: string; events: SessionEvent[] }> {
  const { tide } = createTestTidemark({ script: callOnce(calls), history: false })
  const session = await tide.open('one')
  const run = session.run('Go.', { tools })
  const events: SessionEvent[] = []
  for await (const event of run) events.push(event)
  const outcome = await run.outcome
  return { text: outcome.ok ? outcome.text : outcome.message, events }
}

describe('the input of a tool', () => {
  const libraries = {
    zod: tool({
      description: 'Adds.',
      input: z.object({ a: z.number(), b: z.number().min(1) }),
      run: ({ a, b }) => {
        expectTypeOf(a).toEqualTypeOf<number>()
        return `sum ${a + b}`
      },
    }),
    valibot: tool({
      description: 'Adds.',
      input: toStandardJsonSchema(v.object({ a: v.number(), b: v.pipe(v.number(), v.minValue(1)) })),
      run: ({ a, b }) => {
        expectTypeOf(b).toEqualTypeOf<number>()
        return `sum ${a + b}`
      },
    }),
    arktype: tool({
      description: 'Adds.',
      input: type({ a: 'number', b: 'number >= 1' }),
      run: ({ a, b }) => {
        expectTypeOf(a).toEqualTypeOf<number>()
        return `sum ${a + b}`
      },
    }),
  }

  it.each(Object.entries(libraries))('is checked and typed by a schema of %s', async (_, add) => {
    expect(add.inputSchema).toMatchObject({ type: 'object', properties: { a: { type: 'number' } } })
    expect((await runOnce({ add }, { name: 'add', input: { a: 2, b: 3 } })).text).toBe('"sum 5"')
    const wrong = await runOnce({ add }, { name: 'add', input: { a: 2, b: 0 } })
    expect(wrong.text).toMatch(/does not fit, so the tool was not run: b: /)
  })

  it('is typed by a JSON Schema', async () => {
    const find = tool({
      input: {
        type: 'object',
        properties: {
          text: { type: 'string' },
          limit: { type: 'integer' },
          kinds: { type: 'array', items: { enum: ['file', 'folder'] } },
        },
        required: ['text'],
      },
      run(input) {
        expectTypeOf(input.text).toEqualTypeOf<string>()
        expectTypeOf(input.limit).toEqualTypeOf<number | undefined>()
        expectTypeOf(input.kinds).toEqualTypeOf<readonly ('file' | 'folder')[] | undefined>()
        return `${input.text} ${input.limit}`
      },
    })
    expect((await runOnce({ find }, { name: 'find', input: { text: 'x', limit: '5' } })).text).toBe('"x 5"')
  })

  it('a schema whose library gives no JSON Schema is refused with what to do', () => {
    const schema = v.object({ a: v.number() })
    expect(() => tool({ input: schema, run: () => '' })).toThrow(/valibot gives no JSON Schema .*inputSchema/)
    expect(() => tool({ input: schema, inputSchema: { type: 'object' }, run: () => '' })).not.toThrow()
    expect(() => tool({} as never)).toThrow(/expected \{ description, input, run/)
  })
})

describe('calls of one response', () => {
  /** Tools that note when they begin and end. */
  function createTracedTools(parallel: boolean): { readonly trace: string[]; readonly tools: Tools } {
    const trace: string[] = []
    const traced = tool({
      input: { type: 'object', properties: { n: { type: 'integer' } } },
      parallel,
      async run({ n }) {
        trace.push(`begin ${n}`)
        await new Promise((resolve) => setTimeout(resolve, 20))
        trace.push(`end ${n}`)
        return `${n}`
      },
    })
    return { trace, tools: { traced, alone: { ...traced, parallel: false } } }
  }
  const call = (n: number, name = 'traced'): Call => ({ name, input: { n } })

  it('run one after another, unless their tools say that it is safe', async () => {
    const { trace, tools } = createTracedTools(false)
    await runOnce(tools, call(1), call(2))
    expect(trace).toEqual(['begin 1', 'end 1', 'begin 2', 'end 2'])
  })

  it('run at the same time where the tools say so, and wait for one that does not', async () => {
    const { trace, tools } = createTracedTools(true)
    const { text } = await runOnce(tools, call(1), call(2), call(3, 'alone'), call(4))
    expect(trace.slice(0, 2)).toEqual(['begin 1', 'begin 2'])
    expect(trace.slice(4)).toEqual(['begin 3', 'end 3', 'begin 4', 'end 4'])
    expect(text).toBe('"1" | "2" | "3" | "4"')
  })
})

it('a running tool tells its progress, which is an event and not part of the result', async () => {
  const build = tool({
    run: async (_, { progress }) => {
      progress('1 of 2')
      await new Promise((resolve) => setTimeout(resolve, 5))
      progress('2 of 2')
      return 'built'
    },
  })
  const { text, events } = await runOnce({ build }, { name: 'build', input: {} })
  const told = events.flatMap((event) =>
    event.type === 'tool-progress' ? event.text : event.type === 'tool-ended' ? 'ended' : [],
  )
  expect(told).toEqual(['1 of 2', '2 of 2', 'ended'])
  expect(text).toBe('"built"')
})

it('a tool returns an image as a block', async () => {
  const data =
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  const shot = tool({
    run: () => [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }],
  })
  expect((await runOnce({ shot }, { name: 'shot', input: {} })).text).toContain('image/png')
})

it.each([
  [['a', 'b']],
  [[null]],
  [[{ type: 'image', data: 'x', mimeType: 'image/png' }]],
  [[{ type: 'resource' }]],
])(
  'a result with blocks that no provider takes is an error result, and the session goes on: %j',
  async (blocks) => {
    const odd = tool({ run: () => blocks as never })
    expect((await runOnce({ odd }, { name: 'odd', input: {} })).text).toContain('in a list of blocks')
  },
)

it('a tool that changes its input changes nothing in the conversation', async () => {
  const { tide } = createTestTidemark({
    script: callOnce([{ name: 'odd', input: { t: 'original' } }]),
    history: false,
  })
  const session = await tide.open('one')
  const odd = tool({
    input: { type: 'object', properties: { t: { type: 'string' } } },
    run: (input) => {
      Object.assign(input, { t: 'changed' })
      return 'ok'
    },
  })
  await session.run('Go.', { tools: { odd } }).outcome
  expect(JSON.stringify(session.messages())).toContain('original')
})
