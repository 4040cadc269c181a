import { Teller } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import {
  hasPromptSince,
  isJustUndone,
  isWaitingForPrompt,
  UNDO_NOTICE,
  undoNotice,
  untoldUndoings,
} from './measure-context.ts'

function undoneOnce(): Teller {
  const teller = new Teller('told')
  teller.user('one')
  teller.assistant('a', 'x')
  const boundary = teller.notice('microcompact_boundary', {
    microcompactMetadata: {
      trigger: 'auto',
      preTokens: 1,
      tokensSaved: 1,
      compactedToolIds: [],
      clearedAttachmentUUIDs: [],
    },
  })
  teller.notice('clear_undone', { of: boundary.uuid })
  return teller
}

describe('an act that was undone', () => {
  it('makes what starts by itself wait for the person, and is told once', () => {
    const teller = undoneOnce()
    expect([isWaitingForPrompt(teller.view), undoNotice(untoldUndoings(teller.view))]).toEqual([
      true,
      'The clearing of old tool results was undone: the results above are the original ones again.',
    ])
    teller.attachment({ type: UNDO_NOTICE, content: 'told' })
    expect(untoldUndoings(teller.view)).toEqual([])
    teller.user('two')
    expect(isWaitingForPrompt(teller.view)).toBe(false)
  })

  it('is fresh until the model has spoken', () => {
    const teller = undoneOnce()
    teller.user('two')
    expect([isJustUndone(teller.view, 1), isJustUndone(teller.view, 5)]).toEqual([true, false])
    const other = new Teller('told')
    other.user('one')
    expect(isJustUndone(other.view, -1)).toBe(false)
  })
})

describe('new words', () => {
  it('are prompts behind the record, not answers of tools', () => {
    const teller = new Teller('told')
    teller.user('one')
    teller.assistant('a', [{ type: 'tool_use', id: 'c', name: 'Read', input: {} }])
    teller.result('c', 'text')
    expect([hasPromptSince(teller.view, 0), hasPromptSince(teller.view, -1)]).toEqual([false, true])
    teller.user('two')
    expect([hasPromptSince(teller.view, 2), hasPromptSince(teller.view, 3)]).toEqual([true, false])
  })
})
