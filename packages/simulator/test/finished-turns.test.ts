/**
 * Two places decide when a turn is finished and its thinking removed: the engine, which has to predict it, and the
 * simulator, which does it. The two are written independently, from the same facts.
 */
import { flattenContext, listTracedMessages } from '@tidemark/core/context/flatten-context'
import { isNewTurnMessage } from '@tidemark/core/log/record'
import { GeneratorChoices, generateSession } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dropEarlierThinking } from '../src/context/context-edits.ts'
import {
  isThinkingBlock,
  listMessageBlocks,
  type MessageParam,
  type RequestBlock,
} from '../src/protocol/messages-request.ts'

const placeOf = ({ message, index }: RequestBlock): string => `${message}.${index}`

/** Where the engine expects thinking to remain: after the newest message that ended a turn. */
function expectedThinking(messages: readonly MessageParam[]): readonly string[] {
  const end = messages.findLastIndex(isNewTurnMessage)
  return listMessageBlocks(messages)
    .filter(({ message, block }) => isThinkingBlock(block) && message > end)
    .map(placeOf)
}

function leftThinking(messages: readonly MessageParam[]): readonly string[] {
  return dropEarlierThinking(listMessageBlocks(messages))
    .filter(({ block }) => isThinkingBlock(block))
    .map(placeOf)
}

const THOUGHT = { type: 'thinking', thinking: 'hm', signature: 's' }

describe('a finished turn', () => {
  it('is finished for both the engine and the simulator, in generated conversations', () => {
    const seen = { left: 0, gone: 0, mixed: 0 }
    const numbers = fc.array(fc.nat({ max: 0xffff }), { minLength: 20, maxLength: 200, size: 'max' })
    fc.assert(
      fc.property(numbers, fc.nat(3), (choices, every) => {
        const { builder } = generateSession(new GeneratorChoices(choices))
        const messages = listTracedMessages(flattenContext(builder.view)).map(
          ({ message }, at): MessageParam => {
            const { role, content } = message
            if (role !== 'assistant' || typeof content === 'string' || at % 4 === every)
              return { role, content }
            return { role, content: [THOUGHT, ...content] }
          },
        )
        const left = leftThinking(messages)
        expect(left).toEqual(expectedThinking(messages))
        const all = listMessageBlocks(messages).filter(({ block }) => isThinkingBlock(block)).length
        seen.left += left.length
        seen.gone += all - left.length
        for (const { role, content } of messages) {
          if (role !== 'user' || typeof content === 'string') continue
          const results = content.filter(({ type }) => type === 'tool_result').length
          if (results > 0 && results < content.length) seen.mixed += 1
        }
      }),
      { numRuns: 400 },
    )
    // Every kind of conversation must have been generated, also text beside tool results.
    expect(Math.min(seen.left, seen.gone, seen.mixed)).toBeGreaterThan(20)
  })
})
