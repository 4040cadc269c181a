/** The made-up session as the lines of a log, with the usage a provider would have reported. */
import { DEFAULT_POLICY } from '@tidemark/core/policy/create-policy'
import { createEstimator } from '@tidemark/core/tokens/estimator'
import { createEstimatorWeights } from '@tidemark/wire/catalogue/estimator-weights'
import { callFor, code, createDice, promptAt } from './made-up-session.ts'

const CALLS = 300
const CALLS_A_TURN = 75
const COMPACT_AT = 165_000
const AFTER_COMPACTION = 38_000
const CLEAR_AT_CALL = 84
const CLEARED = 46_000

interface Telling {
  readonly lines: object[]
  readonly dice: (sides: number) => number
  /** Tokens of the next request, and of what is cached of it. */
  context: number
  cached: number
  minutes: number
  clock: number
}

export function toldLines(): readonly object[] {
  const telling: Telling = { lines: [], dice: createDice(), context: 24_000, cached: 0, minutes: 0, clock: 0 }
  for (let call = 0; call < CALLS; call += 1) {
    if (call % CALLS_A_TURN === 0) say(telling, promptAt(call / CALLS_A_TURN))
    if (call === CLEAR_AT_CALL) clear(telling)
    if (telling.context > COMPACT_AT) compact(telling)
    answer(telling, call)
  }
  return telling.lines
}

function say(telling: Telling, text: string): void {
  add(telling, { type: 'user', message: { role: 'user', content: text } })
  telling.minutes += 4
}

const { block: tokensOf } = createEstimator(createEstimatorWeights('claude-to-4.6', DEFAULT_POLICY.estimate))

function answer(telling: Telling, call: number): void {
  const { dice } = telling
  const { tool, input, size } = callFor(dice)
  const id = `toolu_${call}`
  const text = 'I look at what the form hands on before the account is looked up.'.slice(0, 20 + dice(45))
  const content = [
    { type: 'text', text },
    { type: 'tool_use', id, name: tool, input },
  ]
  const output = content.reduce((sum, block) => sum + tokensOf(block), 0)
  const usage = usageOf(telling, output)
  const message = { id: `msg_${call}`, role: 'assistant', model: 'claude-opus-4-5-20251101', content, usage }
  add(telling, { type: 'assistant', requestId: `req_${call}`, message })
  const result = { type: 'tool_result', tool_use_id: id, content: code(size) }
  add(telling, { type: 'user', message: { role: 'user', content: [result] } })
  telling.context += output + tokensOf(result) + dice(60)
  telling.minutes += isLongPause(call) ? 9 : 1
  if (isLongPause(call)) telling.cached = 0
}

function isLongPause(call: number): boolean {
  return call % 70 === 69
}

/** What was sent before is read from cache. */
function usageOf(telling: Telling, output: number) {
  const read = telling.cached
  const written = telling.context - read - 4
  telling.cached = telling.context - 4
  return {
    input_tokens: 4,
    output_tokens: output,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: written,
    cache_creation: { ephemeral_5m_input_tokens: written, ephemeral_1h_input_tokens: 0 },
  }
}

function clear(telling: Telling): void {
  const microcompactMetadata = {
    trigger: 'auto',
    preTokens: telling.context,
    tokensSaved: CLEARED,
    compactedToolIds: Array.from({ length: 19 }, (_, index) => `toolu_${index}`),
    clearedAttachmentUUIDs: [],
  }
  add(telling, {
    type: 'system',
    subtype: 'microcompact_boundary',
    content: 'Context microcompacted',
    microcompactMetadata,
  })
  telling.context -= CLEARED
  telling.cached = 0
}

function compact(telling: Telling): void {
  const compactMetadata = { trigger: 'auto', preTokens: telling.context }
  add(telling, {
    type: 'system',
    subtype: 'compact_boundary',
    content: 'Conversation compacted',
    compactMetadata,
  })
  const message = { role: 'user', content: `Summary: ${code(6_000)}` }
  add(telling, { type: 'user', isCompactSummary: true, isVisibleInTranscriptOnly: true, message })
  telling.context = AFTER_COMPACTION
  telling.cached = 18_000
}

function add(telling: Telling, said: object): void {
  const { lines } = telling
  telling.clock += 1
  lines.push({
    uuid: `line-${lines.length}`,
    parentUuid: lines.length === 0 ? null : `line-${lines.length - 1}`,
    timestamp: new Date(Date.UTC(2026, 10, 9, 9, 14 + telling.minutes, telling.clock % 60)).toISOString(),
    sessionId: '5f0c2a6e-login',
    cwd: '/home/user/shop',
    version: '2.1.0',
    ...said,
  })
}
