import type { ApiMessage } from '@tidemark/core/context/payload'
import { describe, expect, it } from 'vitest'
import { extendsPrefix, leftOf, prefixOf } from './outcome.ts'
import { spell, textBlocks } from './spelling.ts'
import { tellStory } from './story.ts'

const [step] = tellStory(1).steps
if (step === undefined) throw new Error('a story of one step has one')

const user: ApiMessage = { role: 'user', content: 'go' }
const call: ApiMessage = {
  role: 'assistant',
  content: [{ type: 'tool_use', id: step.id, name: step.tool, input: step.input }],
}
const answered = (content: string): ApiMessage => ({
  role: 'user',
  content: [{ type: 'tool_result', tool_use_id: step.id, content }],
})

describe('leftOf', () => {
  it('counts the results whose text is there', () => {
    expect(leftOf([user, call, answered(step.result)])).toMatchObject({
      results: 1,
      refused: null,
      messages: 3,
    })
    expect(leftOf([user, call, answered('[cleared]')])).toMatchObject({ results: 0, refused: null })
  })

  it('tells of a result whose call is gone, and of a call whose result is', () => {
    const said: ApiMessage = { role: 'assistant', content: 'so' }
    expect(leftOf([user, said, answered(step.result)]).refused).toBe(
      'tool-result-unexpected at messages.2.content.0',
    )
    expect(leftOf([user, call, user]).refused).toBe('tool-result-missing at messages.1')
  })
})

describe('extendsPrefix', () => {
  const prefix = prefixOf([user, call])
  it.each([
    ['the same', [user, call], true],
    ['more behind', [user, call, answered('x')], true],
    ['more in the same message', [user, call, answered('x'), { role: 'user', content: 'and' }], true],
    ['less', [user], false],
    ['another first message', [{ role: 'user', content: 'stop' }, call], false],
  ] as const)('%s', (_, messages, expected) => {
    expect(extendsPrefix(prefix, prefixOf(messages as readonly ApiMessage[]))).toBe(expected)
  })

  it('does not see markers', () => {
    const marked: ApiMessage = {
      role: 'user',
      content: [{ type: 'text', text: 'go', cache_control: { type: 'ephemeral' } }],
    }
    expect(prefixOf([marked])).toEqual(prefixOf([user]))
  })
})

describe('spell', () => {
  it('makes one message of roles that follow each other and leaves out empty ones', () => {
    expect(
      spell([
        { role: 'user', blocks: textBlocks('a') },
        { role: 'assistant', blocks: textBlocks('') },
        { role: 'user', blocks: textBlocks('b') },
      ]),
    ).toEqual([{ role: 'user', content: [...textBlocks('a'), ...textBlocks('b')] }])
  })
})
