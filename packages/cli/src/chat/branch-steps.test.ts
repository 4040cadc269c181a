import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { findUndoStep, isTurnInterrupted, listBranchPrompts, listChangedFiles } from './branch-steps.ts'

describe('a turn', () => {
  it('is interrupted until it is answered; a compaction does not change that', () => {
    const builder = new SessionBuilder()
    expect(isTurnInterrupted(builder.records)).toBe(false)
    builder.user('Fix it.')
    expect(isTurnInterrupted(builder.records)).toBe(true)
    builder.call('Read', { file_path: 'a.ts' })
    builder.compact('They want it fixed.')
    expect(isTurnInterrupted(builder.records)).toBe(true)
    builder.answer('Done.')
    expect(isTurnInterrupted(builder.records)).toBe(false)
    builder.compact('It is fixed.')
    expect(isTurnInterrupted(builder.records)).toBe(false)
    builder.user('And now?')
    builder.assistant('m', [{ type: 'text', text: 'Now we' }], { isInterrupted: true })
    expect(isTurnInterrupted(builder.records)).toBe(true)
  })
})

describe('what can be gone back to', () => {
  it('are the messages of the user, also those before a compaction, and the files changed since are named', () => {
    const builder = new SessionBuilder()
    const first = builder.user('Fix it.')
    builder.call('Edit', { file_path: 'a.ts', old_string: 'a', new_string: 'b' })
    builder.answer()
    builder.compact('It is fixed.')
    builder.user('And the test?')
    builder.call('Write', { file_path: 'a.test.ts', content: 'c' })
    expect(listBranchPrompts(builder.records)).toMatchObject([
      { text: 'Fix it.', isCompacted: true },
      { text: 'And the test?', isCompacted: false },
    ])
    expect(listChangedFiles(builder.records, first.uuid)).toEqual(['a.ts', 'a.test.ts'])
  })

  it('an undo of a compaction brings back what the context had, plus what was said since', () => {
    const builder = new SessionBuilder()
    builder.user('Fix it.')
    builder.answer()
    builder.compact('It is fixed.')
    expect(findUndoStep(builder.records, 400)).toMatchObject({
      name: 'the compaction (1.0k tokens)',
      leaving: 0,
      size: 1_000,
    })
  })
})
