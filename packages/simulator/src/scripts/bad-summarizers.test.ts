import { describe, expect, it } from 'vitest'
import { assistant, context, joinTexts, readReplyText, request, user } from '../../test/script-request.ts'
import { countTextTokens } from '../protocol/tokenizer.ts'
import {
  BAD_SUMMARIZER_NAMES,
  BAD_SUMMARIZERS,
  type BadSummarizerName,
  INJECTED_INSTRUCTIONS,
} from './bad-summarizers.ts'
import { echo } from './script.ts'
import { withSummaries } from './summarizer.ts'

const ASK = 'Write an <analysis> block, then a <summary> block. Text only.'
const MESSAGES = [user('Fix the login.'), assistant('Done.'), user(ASK)]

async function answer(name: BadSummarizerName, given: Parameters<typeof request>[0] = {}) {
  return BAD_SUMMARIZERS[name](request({ messages: MESSAGES, ...given }), context())
}

describe('adversaries', () => {
  it('are complete', () => {
    expect(Object.keys(BAD_SUMMARIZERS)).toEqual([...BAD_SUMMARIZER_NAMES])
  })

  it.each<[BadSummarizerName, object]>([
    ['empty', { blocks: [] }],
    ['blank', { blocks: [{ type: 'text', text: ' \n' }] }],
    [
      'refusal',
      {
        blocks: [],
        stopReason: 'refusal',
        stopDetails: { type: 'refusal', category: null, explanation: 'This request was declined.' },
      },
    ],
    ['tool-call', { blocks: [{ type: 'tool_use', name: 'Read', input: {} }] }],
    ['echo-of-task', { blocks: [{ type: 'text', text: ASK }] }],
    ['hang', { blocks: [], fault: { type: 'hang' } }],
  ])('%s', async (name, reply) => {
    expect(await answer(name)).toEqual(reply)
  })

  it('calls a tool that is declared', async () => {
    const { blocks } = await answer('tool-call', { tools: [{ name: 'look', input_schema: {} }] })
    expect(blocks).toEqual([{ type: 'tool_use', name: 'look', input: {} }])
  })

  it('is cut off in a sentence, its tag open', async () => {
    const reply = await answer('cut-off')
    const text = joinTexts(reply)
    expect([
      reply.stopReason,
      text.includes('<summary>'),
      text.includes('</summary>'),
      /[\w,:]$/.test(text),
    ]).toEqual(['max_tokens', true, false, true])
  })

  it('is cut off in a tag', async () => {
    const reply = await answer('cut-off-in-tag')
    expect([reply.stopReason, joinTexts(reply).slice(-5)]).toEqual(['max_tokens', '</sum'])
  })

  it('is larger than its input', async () => {
    const text = await readReplyText(BAD_SUMMARIZERS.huge, { messages: MESSAGES }, { inputTokens: 5_000 })
    expect([countTextTokens(text) > 7_500, text.endsWith('</summary>')]).toEqual([true, true])
  })

  it('contains nothing of the conversation', async () => {
    const text = await readReplyText(BAD_SUMMARIZERS.garbage, { messages: MESSAGES })
    expect([text.length > 100, /login|[<>]/.test(text)]).toEqual([true, false])
    expect(await readReplyText(BAD_SUMMARIZERS.garbage, { messages: MESSAGES }, { index: 1 })).not.toBe(text)
  })

  it('never writes a complete summary', async () => {
    const whole = /<summary>[\s\S]*<\/summary>/
    const none: readonly BadSummarizerName[] = [
      'analysis-only',
      'error-text',
      'broken-markup',
      'cut-off',
      'thinking-only',
    ]
    const texts = await Promise.all(
      none.map((name) => readReplyText(BAD_SUMMARIZERS[name], { messages: MESSAGES })),
    )
    expect(texts.filter((text) => whole.test(text))).toEqual([])
  })

  it('inserts instructions into a good summary', async () => {
    const text = await readReplyText(BAD_SUMMARIZERS.injection, { messages: MESSAGES })
    expect([text.includes('Fix the login.'), text.includes(INJECTED_INSTRUCTIONS)]).toEqual([true, true])
  })

  it('answers only summary requests', async () => {
    const script = withSummaries(echo, BAD_SUMMARIZERS.empty)
    expect([
      await readReplyText(script, { says: 'Hello' }),
      await readReplyText(script, { messages: MESSAGES }),
    ]).toEqual(['Hello', ''])
    expect(await readReplyText(withSummaries(echo, BAD_SUMMARIZERS.blank), { messages: MESSAGES })).toBe(
      ' \n',
    )
  })
})
