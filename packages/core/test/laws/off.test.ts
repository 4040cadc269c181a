import { countPropertyRuns, SessionBuilder } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { flattenContext, toApiMessages } from '../../src/context/flatten-context.ts'
import type { ApiMessage } from '../../src/context/payload.ts'
import { type Block, isToolUse } from '../../src/log/block.ts'

const text = fc.string({ minLength: 1, maxLength: 20 }).filter((value) => value.trim() !== '')
const textBlock = text.map((value): Block => ({ type: 'text', text: value }))
const strange = fc.record({ type: fc.constant('hologram'), payload: fc.jsonValue() }) as fc.Arbitrary<Block>
const image = fc.constant<Block>({
  type: 'image',
  source: { type: 'url', url: 'https://example.test/a.png' },
})
const marked = textBlock.map((block): Block => ({ ...block, cache_control: { type: 'ephemeral' } }))
const thinking = fc.oneof(
  text.map((value): Block => ({ type: 'thinking', thinking: value, signature: 's' })),
  fc.constant<Block>({ type: 'thinking', thinking: '', signature: 's' }),
  fc.constant<Block>({ type: 'redacted_thinking', data: 'x' }),
)
const said = fc.oneof(
  text,
  fc.array(fc.oneof(textBlock, image, strange, marked), { minLength: 1, maxLength: 3 }),
)
const answer = fc.oneof(text, fc.array(fc.oneof(textBlock, image), { maxLength: 2 }))

interface Round {
  readonly said: string | readonly Block[]
  readonly thinking: readonly Block[]
  readonly reply: string | readonly Block[]
  readonly calls: readonly { readonly input: unknown; readonly answer: string | readonly Block[] }[]
  readonly search: boolean
  readonly behind: readonly Block[]
  readonly reminder: string | null
}

const round: fc.Arbitrary<Round> = fc.record({
  said,
  thinking: fc.array(thinking, { maxLength: 2 }),
  reply: fc.oneof(text, fc.array(fc.oneof(textBlock, strange), { minLength: 1, maxLength: 2 })),
  calls: fc.array(fc.record({ input: fc.dictionary(fc.string(), fc.jsonValue()), answer }), { maxLength: 3 }),
  search: fc.boolean(),
  behind: fc.array(textBlock, { maxLength: 1 }),
  reminder: fc.option(text, { freq: 5 }),
})

/** A conversation as a client of the API would hold it: roles alternate, every call is answered. */
function conversation(rounds: readonly Round[]): readonly ApiMessage[] {
  const messages: ApiMessage[] = []
  let count = 0
  for (const [turn, item] of rounds.entries()) {
    messages.push({ role: 'user', content: item.said })
    if (item.reminder !== null) messages.push({ role: 'system', content: item.reminder, clear_at: 'never' })
    const uses = item.calls.map(({ input }): Block => {
      count += 1
      return { type: 'tool_use', id: `call-${count}`, name: 'Read', input }
    })
    messages.push(reply(item, uses, turn))
    if (uses.length === 0) continue
    const results = uses.map(
      (use, at): Block => ({ type: 'tool_result', tool_use_id: use.id, content: item.calls[at]?.answer }),
    )
    messages.push(
      { role: 'user', content: [...results, ...item.behind] },
      { role: 'assistant', content: 'done' },
    )
  }
  return messages
}

function reply(item: Round, uses: readonly Block[], turn: number): ApiMessage {
  const id = `srv-${turn}`
  const search: readonly Block[] = item.search
    ? [
        { type: 'server_tool_use', id, name: 'web_search', input: {} },
        { type: 'web_search_tool_result', tool_use_id: id, content: [] },
      ]
    : []
  if (item.thinking.length + search.length + uses.length === 0)
    return { role: 'assistant', content: item.reply }
  const words = typeof item.reply === 'string' ? [{ type: 'text', text: item.reply }] : item.reply
  return { role: 'assistant', content: [...item.thinking, ...search, ...words, ...uses] }
}

function append(builder: SessionBuilder, message: ApiMessage): void {
  const { role, content, ...fields } = message
  if (role === 'assistant') builder.assistant(builder.id('msg'), content)
  else if (role === 'user') builder.user(content)
  else builder.system(content, { message: { role, content, ...fields } })
}

describe('law 8: off is off', () => {
  it('valid API messages appended one by one come out deep-equal', () => {
    fc.assert(
      fc.property(fc.array(round, { minLength: 1, maxLength: 6 }), (rounds) => {
        const messages = conversation(rounds)
        const builder = new SessionBuilder()
        messages.forEach((message, index) => {
          append(builder, message)
          const waits =
            message.role === 'assistant' &&
            typeof message.content !== 'string' &&
            message.content.some(isToolUse)
          if (!waits)
            expect(toApiMessages(flattenContext(builder.view))).toEqual(messages.slice(0, index + 1))
        })
      }),
      { numRuns: countPropertyRuns(300, 12) },
    )
  })
})
