import { describe, expect, it } from 'vitest'
import type { Block } from '../log/block.ts'
import type { ApiCall } from './estimator-calls.ts'
import { reminderTokens } from './estimator-reminders.ts'

const RULE = { tools: ['Todo'], every: 3, tokens: 100 }
const text: Block = { type: 'text', text: 'x' }
const thought: Block = { type: 'thinking', thinking: 'x' }
const use = (name: string): Block => ({ type: 'tool_use', id: 'c', name, input: {} })

const reminded = (...said: readonly (readonly Block[] | 'restart')[]): readonly number[] =>
  reminderTokens(
    said.map(
      (blocks): ApiCall => ({
        model: 'm',
        context: 1,
        said: blocks === 'restart' ? [] : blocks,
        heard: [],
        endsTurn: false,
        broken: blocks === 'restart' ? 'restart' : null,
      }),
    ),
    RULE,
  )

describe('reminderTokens', () => {
  it.each<[string, readonly number[], readonly number[]]>([
    ['every third block', reminded([text], [text], [text], [text], [text], [text]), [0, 0, 100, 0, 0, 100]],
    ['several blocks at once', reminded([text, use('Read')], [text, use('Read')], [text]), [0, 100, 0]],
    ['thinking is no step', reminded([thought], [thought, text], [text], [thought, text]), [0, 0, 0, 100]],
    [
      'a tool that puts it off',
      reminded([text], [text], [use('Todo')], [text], [text], [text]),
      [0, 0, 0, 0, 0, 100],
    ],
    [
      'counted anew after a break',
      reminded([text], [text], 'restart', [text], [text], [text]),
      [0, 0, 0, 0, 0, 100],
    ],
  ])('%s', (_, tokens, expected) => {
    expect(tokens).toEqual(expected)
  })
})
