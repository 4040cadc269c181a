/**
 * Laws of the engine over drawn sessions, for every protocol that has a codec: what was drawn is opened with a model of the
 * provider, its requests go to a server of the provider that refuses what it does not have, and the session goes on.
 */
import { type Block, isBlock, isThinkingBlock, type MessageContent, toBlocks } from '@tidemark/core/log/block'
import { type JsonObject, parseJson } from '@tidemark/core/log/json'
import type { SessionRecord } from '@tidemark/core/log/record'
import { countPropertyRuns, GeneratorChoices, generateSession } from '@tidemark/core/testing'
import { createSimulator, type Script } from '@tidemark/simulator'
import type { ProviderCodec } from '@tidemark/wire/providers/provider-codec'
import fc from 'fast-check'
import {
  anthropic,
  assistant,
  compatible,
  createTidemark,
  type ModelChoice,
  openai,
  type Session,
  toolResult,
  user,
} from 'tidemark'
import { createMemoryJournal, type MemoryStore } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import { createMadeUpWorld } from '../support/made-up-provider/talk-world.ts'

interface Provider {
  readonly model: ModelChoice
  readonly fetch: typeof globalThis.fetch
  /** True if drawn thinking would be its own: its server knows that it never signed it. */
  readonly isMaker?: boolean
}

const WINDOW = 200_000
const ADDRESS = 'http://simulator.test/v1'
const script: Script = () => ({ blocks: [{ type: 'text', text: 'Done.' }] })

function onSimulator(
  create: (fetch: typeof globalThis.fetch) => ModelChoice,
  dialect: 'openai' | 'vllm' = 'openai',
): Provider {
  const { fetch } = createSimulator({ script, window: WINDOW, openai: { dialect } })
  return { model: create(fetch), fetch }
}

const key = { apiKey: 'any', window: WINDOW, maxOutput: 4_000 }
const server = { baseUrl: ADDRESS, window: WINDOW, maxOutput: 4_000 }
const PROVIDERS: Readonly<Record<string, () => Provider>> = {
  'the Messages API': () => ({
    ...onSimulator((fetch) => anthropic('claude-opus-5', { ...key, fetch })),
    isMaker: true,
  }),
  'Responses, cached by prefix': () => onSimulator((fetch) => openai('gpt-5.4', { ...key, fetch })),
  'Responses, with breakpoints': () => onSimulator((fetch) => openai('gpt-6-sol', { ...key, fetch })),
  'Chat Completions': () => onSimulator((fetch) => openai('gpt-4.1', { ...key, fetch, api: 'chat' })),
  'Chat Completions of another server': () =>
    onSimulator((fetch) => compatible('gpt-4.1', { ...server, fetch, dialect: 'vllm' }), 'vllm'),
  'the made-up provider': () => {
    const world = createMadeUpWorld({ script, window: WINDOW })
    return { model: world.choose(), fetch: world.server.fetch }
  },
}

const CALL = { type: 'tool_use', id: 'call-long', name: 'Bash', input: { command: 'cat sums.log' } }
const TOOLS = ['Read', 'Bash', 'Edit'].map((name) => ({
  name,
  description: name,
  input_schema: { type: 'object' },
}))

interface DrawnSession {
  readonly session: Session
  readonly reopen: () => Promise<Session>
}

async function openDrawn(
  choices: readonly number[],
  { model, isMaker = false }: Provider,
): Promise<DrawnSession> {
  const { records } = generateSession(new GeneratorChoices(choices), { settled: true })
  const lines = records.map((record) => JSON.stringify(withKnownBlocks(record, isMaker)))
  const store: MemoryStore = new Map([['drawn', { lines, holder: null }]])
  const reopen = (): Promise<Session> =>
    createTidemark({
      model,
      journal: createMemoryJournal(store),
      blobs: null,
      system: 'You repair programs.',
      env: {},
    }).open('drawn')
  return { session: await reopen(), reopen }
}

/** Kinds that the generator makes up are text here. */
function withKnownBlocks(record: SessionRecord, isMaker: boolean): SessionRecord {
  const { message } = record as {
    readonly message?: { readonly role: string; readonly content: MessageContent }
  }
  if (message === undefined) return record
  const blocks = toBlocks(message.content)
  const content = blocks.map((block: unknown) =>
    isBlock(block) && (!KINDS.has(block.type) || (isMaker && isThinkingBlock(block)))
      ? { type: 'text', text: `Was ${block.type}.` }
      : (block as Block),
  )
  return { ...record, message: { ...message, content } } as SessionRecord
}

const KINDS: ReadonlySet<string> = new Set([
  'text',
  'tool_use',
  'tool_result',
  'thinking',
  'redacted_thinking',
  'image',
])

async function readNext(session: Session): Promise<{ readonly text: string; readonly headers: object }> {
  const next = await session.next({ tools: TOOLS, settle: true })
  if (!next.ok) throw new Error(`${next.reason}: ${next.message}`)
  return next
}

/** Sends the next request and returns what its server answers. */
async function send(
  { model, fetch }: Provider,
  next: Awaited<ReturnType<typeof readNext>>,
): Promise<JsonObject> {
  const codec = model.codec as ProviderCodec
  const headers = {
    'content-type': 'application/json',
    ...codec.createHeaders({ style: 'key', secret: 'any' }, '2026-10-21'),
    ...next.headers,
  }
  const base = codec.baseUrl === '' ? ADDRESS : codec.baseUrl
  const response = await fetch(base + codec.paths.reply, { method: 'POST', headers, body: next.text })
  const text = await response.text()
  if (!response.ok) throw new Error(`${response.status} ${text}\n${next.text}`)
  return parseJson(text) as JsonObject
}

/** The entries of a body, whatever the protocol calls them, without cache markers. */
function listEntries(text: string): readonly unknown[] {
  const body = JSON.parse(text, (name, value) =>
    name === 'cache_control' || name === 'prompt_cache_breakpoint' ? undefined : value,
  )
  return body.messages ?? body.input ?? body.entries
}

const drawn = fc.array(fc.nat({ max: 0xffff }), { minLength: 20, maxLength: 200, size: 'max' })

describe.each(Object.entries(PROVIDERS))('%s', (_, createProvider) => {
  it('takes every request of a drawn session; appending changes no entry; a rewrite is undone to the byte', async () => {
    await fc.assert(
      fc.asyncProperty(drawn, async (choices) => {
        const provider = createProvider()
        const { session, reopen } = await openDrawn(choices, provider)
        await session.append(user('Read the log.'))
        await session.append(assistant({ id: 'long', model: provider.model.id, content: [CALL] }))
        await session.append(toolResult(CALL.id, 'sum is wrong by one cent\n'.repeat(2_000)), user('Go on.'))
        const first = await readNext(session)
        const answer = await send(provider, first)
        await session.append(answer as never)
        await session.append(user('And the tests?'))
        const second = await readNext(session)
        await send(provider, second)
        const [before, after] = [listEntries(first.text), listEntries(second.text)]
        expect(after.slice(0, before.length)).toEqual(before)
        expect(await session.compact({ summarizer: 'local', abandon: true })).toMatchObject({ ok: true })
        const rewritten = await readNext(session)
        await send(provider, rewritten)
        expect(rewritten.text.length).toBeLessThan(second.text.length)
        expect(await session.undo(undefined, { abandon: true })).toMatchObject({ ok: true })
        expect(listEntries((await readNext(session)).text)).toEqual(after)
        const last = await readNext(session)
        await session.close()
        const again = await reopen()
        expect((await readNext(again)).text).toBe(last.text)
        await again.close()
      }),
      { numRuns: countPropertyRuns(20, 4), endOnFailure: true },
    )
  })
})
