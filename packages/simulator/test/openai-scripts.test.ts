/** The scripts of the simulator on OpenAI's APIs: they see the same conversation, and play the model to the end. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createCoder,
  createManualClock,
  createSimulator,
  loadScenario,
  type Script,
  withSummaries,
} from '@tidemark/simulator'
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions'
import type { ResponseInputItem } from 'openai/resources/responses/responses'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Clock } from '../src/protocol/clock-and-ids.ts'
import type { Block, JsonObject } from '../src/protocol/messages-request.ts'
import type { ScriptRequest } from '../src/scripts/script.ts'
import { postMessage } from './ask.ts'
import { CLIENT_STYLES, createClientTools } from './client-tools.ts'
import { connect, FUNCTION, NEW_MODEL, OLD_MODEL, postChat, postResponse } from './openai-requests.ts'

let directory = ''

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'openai-scripts-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

/** A script that keeps what it is shown. */
function listen(): {
  readonly script: Script
  readonly seen: Pick<ScriptRequest, 'system' | 'tools' | 'messages'>[]
} {
  const seen: Pick<ScriptRequest, 'system' | 'tools' | 'messages'>[] = []
  const script: Script = ({ system, tools, messages }) => {
    seen.push({ system, tools, messages })
    return { blocks: [{ type: 'text', text: 'ok' }] }
  }
  return { script, seen }
}

const arguments_ = '{"path":"a"}'

/** Returns the pauses before the chunks of a streamed chat completion, in milliseconds. */
async function listPauses(blocks: readonly Block[]): Promise<readonly number[]> {
  const pauses: number[] = []
  const manual = createManualClock()
  const clock: Clock = {
    ...manual,
    sleep: async (ms) => {
      pauses.push(ms)
    },
  }
  const delays = { blockMs: 100, pieceMs: 1 }
  const simulator = createSimulator({
    script: () => ({ blocks, delays }),
    clock,
    deltaSize: 100,
    openai: { dialect: 'deepseek' },
  })
  await postChat(simulator, { messages: [{ role: 'user', content: 'hi' }], stream: true })
  return pauses
}

describe('the delay between blocks in Chat Completions', () => {
  const text = { type: 'text', text: 'I read.' }
  const call = { type: 'tool_use', id: 'call_1', name: 'read', input: { path: 'a' } }

  it('comes before each block but the first: a call after text waits, a call alone does not', async () => {
    expect(await listPauses([text, call])).toEqual([1, 100, 1])
    expect(await listPauses([call])).toEqual([1])
    expect(await listPauses([call, { ...call, id: 'call_2' }])).toEqual([1, 100, 1])
  })

  it('comes before a text after thinking', async () => {
    expect(await listPauses([{ type: 'thinking', thinking: 'Read first.' }, text])).toEqual([1, 101])
  })
})

describe('a script', () => {
  it('sees the same conversation on all three APIs', async () => {
    const { script, seen } = listen()
    const simulator = createSimulator({ script })
    const result = (content: unknown): object => ({ type: 'tool_result', tool_use_id: 'call_1', content })
    await postMessage(simulator, {
      system: [{ type: 'text', text: 'Be brief.' }],
      tools: [{ name: 'read', description: 'Reads a file', input_schema: FUNCTION.parameters }],
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'hi' }] },
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'I read.' },
            { type: 'tool_use', id: 'call_1', name: 'read', input: { path: 'a' } },
          ],
        },
        { role: 'user', content: [result([{ type: 'text', text: 'text' }]), { type: 'text', text: 'and?' }] },
      ],
    })
    await postResponse(simulator, {
      instructions: 'Be brief.',
      tools: [FUNCTION],
      input: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: [{ type: 'output_text', text: 'I read.' }] },
        { type: 'function_call', call_id: 'call_1', name: 'read', arguments: arguments_ },
        { type: 'function_call_output', call_id: 'call_1', output: 'text' },
        { role: 'user', content: 'and?' },
      ],
    })
    const call = { id: 'call_1', type: 'function', function: { name: 'read', arguments: arguments_ } }
    const { type: _type, strict: _strict, ...definition } = FUNCTION
    await postChat(simulator, {
      tools: [{ type: 'function', function: definition }],
      messages: [
        { role: 'developer', content: 'Be brief.' },
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: 'I read.', tool_calls: [call] },
        { role: 'tool', tool_call_id: 'call_1', content: 'text' },
        { role: 'user', content: 'and?' },
      ],
    })
    expect(seen).toHaveLength(3)
    expect(seen[1]).toEqual(seen[0])
    expect(seen[2]).toEqual(seen[0])
  })

  it('gets its thinking back, and that of a compaction', async () => {
    const seen: string[] = []
    const script: Script = ({ kind, messages }) => {
      seen.push(JSON.stringify(messages))
      if (kind === 'compaction') return { blocks: [{ type: 'text', text: 'a summary' }] }
      return {
        blocks: [
          { type: 'thinking', thinking: 'hm' },
          { type: 'text', text: 'ok' },
        ],
      }
    }
    const simulator = createSimulator({ script })
    const { output } = (await postResponse(simulator, { input: 'hi' })).body
    const compacted = await postResponse(simulator, { input: [...output, { type: 'compaction_trigger' }] })
    await postResponse(simulator, { input: [...compacted.body.output, { role: 'user', content: 'on' }] })
    expect(seen[1]).toContain('"thinking":"hm"')
    expect(seen[2]).toContain('"content":"a summary"')
  })

  it('knows the session by the cache key', async () => {
    const path = join(directory, 'turns.yaml')
    writeFileSync(path, 'turns:\n  - text: first\n  - text: second\n')
    const loaded = await loadScenario(path)
    if (!loaded.ok) throw new Error(loaded.message)
    const simulator = createSimulator({ script: loaded.script })
    const say = async (key: string, input: unknown): Promise<string> =>
      (await postResponse(simulator, { input, prompt_cache_key: key })).body.output[0].content[0].text
    const answered = [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'first' },
      { role: 'user', content: 'b' },
    ]
    expect([await say('one', 'a'), await say('two', 'a'), await say('one', answered)]).toEqual([
      'first',
      'first',
      'second',
    ])
  })
})

/** Lists the files that differ from what the coder should have written. */
function findWrongFiles(files: ReadonlyMap<string, string>): readonly string[] {
  expect(files.size).toBeGreaterThan(0)
  return [...files].filter(([path, text]) => readFile(path) !== text).map(([path]) => path)
}

function readFile(path: string): string | null {
  const file = join(directory, 'tidemark-coder', path)
  return existsSync(file) ? readFileSync(file, 'utf8') : null
}

const style = CLIENT_STYLES.PI
const functions = style.tools.map(({ name, input_schema }) => ({
  type: 'function' as const,
  name: String(name),
  parameters: input_schema as Record<string, unknown>,
  strict: false,
}))

describe('the coder', () => {
  it('does its work over Responses, with reasoning and real files', async () => {
    const coder = createCoder({ files: 3, turns: 12, resultTokens: 100 })
    const simulator = createSimulator({ script: withSummaries(coder.script) })
    const client = connect(simulator)
    const tools = createClientTools(style, directory)
    let input: ResponseInputItem[] = [{ role: 'user', content: 'Raise the limits.' }]
    for (;;) {
      const response = await client.responses
        .stream({
          model: NEW_MODEL,
          instructions: style.system(directory),
          tools: functions,
          input,
          store: false,
        })
        .finalResponse()
      const calls = response.output.flatMap((item): Block[] =>
        item.type === 'function_call'
          ? [{ type: 'tool_use', id: item.call_id, name: item.name, input: JSON.parse(item.arguments) }]
          : [],
      )
      if (calls.length === 0) break
      const { content } = tools.run(calls)
      const outputs = (content as readonly Block[]).map((block) => ({
        type: 'function_call_output' as const,
        call_id: String(block.tool_use_id),
        output: String(block.content),
      }))
      const output = response.output.map((item) => {
        const { parsed_arguments: _parsed, ...rest } = item as { parsed_arguments?: unknown }
        return withoutParsed(rest) as ResponseInputItem
      })
      input = [...input, ...output, ...outputs]
    }
    expect(findWrongFiles(coder.clientFiles(12))).toEqual([])
    expect(simulator.requests.every(({ status }) => status === 200)).toBe(true)
    expect(simulator.requests.length).toBeGreaterThan(10)
  })

  it('does its work over Chat Completions', async () => {
    const coder = createCoder({ files: 3, turns: 12, resultTokens: 100 })
    const simulator = createSimulator({ script: coder.script })
    const client = connect(simulator)
    const tools = createClientTools(style, directory)
    let messages: ChatCompletionMessageParam[] = [
      { role: 'system', content: style.system(directory) },
      { role: 'user', content: 'Raise the limits.' },
    ]
    for (;;) {
      const { choices } = await client.chat.completions.create({
        model: OLD_MODEL,
        messages,
        tools: functions.map(({ name, parameters }) => ({
          type: 'function',
          function: { name, parameters },
        })),
      })
      const message = choices[0]?.message
      const calls = (message?.tool_calls ?? []).flatMap((call): Block[] =>
        call.type === 'function'
          ? [
              {
                type: 'tool_use',
                id: call.id,
                name: call.function.name,
                input: JSON.parse(call.function.arguments) as JsonObject,
              },
            ]
          : [],
      )
      if (message === undefined || calls.length === 0) break
      const { content } = tools.run(calls)
      const answers = (content as readonly Block[]).map((block) => ({
        role: 'tool' as const,
        tool_call_id: String(block.tool_use_id),
        content: String(block.content),
      }))
      messages = [...messages, message, ...answers]
    }
    expect(findWrongFiles(coder.clientFiles(12))).toEqual([])
    expect(simulator.requests.every(({ status }) => status === 200)).toBe(true)
  })
})

/** Removes what the helper of the SDK adds to content, which the API does not take. */
function withoutParsed(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, each) => (key === 'parsed' ? undefined : each)))
}

it('withSummaries writes the summary of a conversation on both APIs', async () => {
  const simulator = createSimulator({
    script: withSummaries(() => ({ blocks: [{ type: 'text', text: 'x' }] })),
  })
  const demand = 'Summarize this conversation inside <summary> tags. First <analysis>.'
  const before = [
    { role: 'user', content: 'Paint it blue.' },
    { role: 'assistant', content: 'Done.' },
    { role: 'user', content: demand },
  ]
  const response = await postResponse(simulator, { input: before })
  const completion = await postChat(simulator, { messages: before })
  expect(response.body.output[0].content[0].text).toContain('Paint it blue.')
  expect(completion.body.choices[0].message.content).toContain('Paint it blue.')
})
