import { Teller } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import { sessionOf } from '../log/session.ts'
import { viewOf } from './context-view.ts'
import { flatten, messagesOf } from './flatten.ts'
import { REPEATED_CALL_TEXT } from './tool-pairing.ts'

describe('a response that made nothing but a call of an id used before', () => {
  it('keeps its place: what stood on either side of it stays apart', () => {
    const teller = new Teller()
    const call = { type: 'tool_use' as const, id: 'c', name: 'Read', input: {} }
    const records = [
      teller.user('look'),
      teller.assistant('m1', [call]),
      teller.user([{ type: 'tool_result', tool_use_id: 'c', content: 'text' }]),
      teller.assistant('m2', [call]),
      teller.user('and now'),
    ]
    const messages = messagesOf(flatten(viewOf(sessionOf(records))))
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user'])
    expect(messages[3]?.content).toEqual([{ type: 'text', text: REPEATED_CALL_TEXT }])
  })
})
