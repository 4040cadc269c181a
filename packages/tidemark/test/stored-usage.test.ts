/**
 * Logs that were written before records had neutral usage: the money and the size of the context that were read from
 * them then, and the bytes that are written now.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { anthropic, assistant, createTidemark, type Session, type Tidemark, user } from 'tidemark'
import { afterEach, expect, it } from 'vitest'

const HOME = mkdtempSync(join(tmpdir(), 'stored-usage-'))
const LOG = join(HOME, 'sessions', 's.jsonl')
let tide: Tidemark | null = null

afterEach(async () => {
  await tide?.close()
  rmSync(HOME, { recursive: true, force: true })
})

const HEADER = {
  type: 'tidemark',
  format: 'tidemark-session',
  version: 1,
  sessionId: 's',
  timestamp: '2026-03-09T09:00:00.000Z',
}

/** Writes a log with these records, each after the one before. */
function writeLog(...records: readonly object[]): void {
  const lines = records.map((record, index) => ({
    seq: index + 1,
    uuid: `r${index + 1}`,
    parentUuid: index === 0 ? null : `r${index}`,
    timestamp: `2026-03-09T09:${String(index).padStart(2, '0')}:00.000Z`,
    sessionId: 's',
    ...record,
  }))
  mkdirSync(join(HOME, 'sessions'), { recursive: true })
  writeFileSync(LOG, [HEADER, ...lines].map((line) => `${JSON.stringify(line)}\n`).join(''))
}

const prompt = (text: string) => ({ type: 'user', message: { role: 'user', content: text } })

function response(id: string, usage: object, fields: object = {}) {
  const content = [{ type: 'text', text: 'Done.' }]
  const message = {
    id,
    role: 'assistant',
    model: 'claude-sonnet-4-5',
    content,
    stop_reason: 'end_turn',
    usage,
  }
  return { type: 'assistant', message, ...fields }
}

async function open(): Promise<Session> {
  const model = anthropic('claude-sonnet-4-5', {
    apiKey: 'none',
    fetch: () => Promise.reject(new Error('no')),
  })
  tide = createTidemark({ model, home: HOME, env: {} })
  return tide.open('s')
}

const SPLIT = { ephemeral_5m_input_tokens: 2_000, ephemeral_1h_input_tokens: 6_000 }
const RUNS = [
  { type: 'message', input_tokens: 10, cache_read_input_tokens: 8_000, output_tokens: 40 },
  { type: 'compaction', input_tokens: 9_000, output_tokens: 700 },
  { type: 'advisor_message', model: 'claude-opus-4-5', input_tokens: 500, output_tokens: 20 },
  { type: 'message', input_tokens: 1_200, cache_creation_input_tokens: 3_000, output_tokens: 60 },
]
const ALL = [
  prompt('look'),
  response('m1', {
    input_tokens: 12,
    cache_creation_input_tokens: 8_000,
    cache_creation: SPLIT,
    cache_read_input_tokens: 0,
    output_tokens: 30,
    service_tier: 'standard',
  }),
  prompt('search'),
  response('m2', {
    input_tokens: 4,
    cache_creation_input_tokens: 500,
    cache_read_input_tokens: 8_000,
    output_tokens: 90,
    server_tool_use: { web_search_requests: 2, web_fetch_requests: 1 },
  }),
  prompt('again'),
  response(
    'm2b',
    { input_tokens: 9_000, output_tokens: 9 },
    { billedUsage: { input_tokens: 0, output_tokens: 0 } },
  ),
  {
    type: 'system',
    subtype: 'model_call',
    isMeta: true,
    modelCall: {
      id: 'm3',
      source: 'compact',
      model: 'claude-sonnet-4-5',
      usage: { input_tokens: 20_000, output_tokens: 333, output_tokens_estimated: true },
    },
  },
  response('m4', { input_tokens: 1_210, output_tokens: 100, iterations: RUNS }),
]

/** As version 0.1.0 of November 2026 gave them. */
const MONEY = {
  calls: 4,
  tokens: { input: 30_726, cacheRead: 16_000, writeShort: 5_500, writeLong: 6_000, output: 1_273 },
  spent: {
    total: 0.193898,
    priced: 0.193898,
    byClass: {
      input: 0.093178,
      cacheRead: 0.0048,
      writeShort: 0.020624999999999998,
      writeLong: 0.036,
      output: 0.019295,
    },
    fees: 0.02,
    missing: [],
    assumed: [
      'cache writes without a lifetime are counted as writes for the shortest one',
      'the output of responses that broke off is estimated from what arrived',
    ],
  },
  savedByCache: { total: 0.021074999999999993, known: 0.021074999999999993 },
  spentOnCompaction: { total: 0.064995, known: 0.064995 },
}

it('a log of an older version costs what it cost, with the same assumptions', async () => {
  writeLog(...ALL)
  const { calls, tokens, spent, savedByCache, spentOnCompaction } = (await open()).money()
  expect({ calls, tokens, spent, savedByCache, spentOnCompaction }).toEqual(MONEY)
  // The names of earlier versions.
  expect(tokens).toHaveProperty('write5m', 5_500)
  expect(spent.byClass).toHaveProperty('write1h', 0.036)
})

it.each([
  ['writes for two lifetimes', 2, 8_042],
  ['cached tokens', 4, 8_594],
  ['a response that was billed before', 6, 9_009],
  ['several runs of the model', 8, 4_260],
])('the context behind %s has the size that it had', async (_, records, tokens) => {
  writeLog(...ALL.slice(0, records))
  expect((await open()).contextRemaining()).toMatchObject({ tokens, high: tokens, source: 'measured' })
})

it('a response is logged in the words of its provider, without a second form of them', async () => {
  writeLog(...ALL.slice(0, 1))
  const session = await open()
  const { message } = response('m1', { input_tokens: 5, output_tokens: 2, service_tier: 'standard' })
  await session.append(assistant(message as Parameters<typeof assistant>[0]), user('on'))
  const lines = readFileSync(LOG, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(Object.keys(lines[2])).toEqual([
    'seq',
    'type',
    'message',
    'uuid',
    'parentUuid',
    'timestamp',
    'sessionId',
  ])
  expect(lines[2].message.usage).toEqual({ input_tokens: 5, output_tokens: 2, service_tier: 'standard' })
  expect(session.money().tokens).toMatchObject({ input: 5, output: 2 })
})
