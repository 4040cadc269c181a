import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { compactNow, openRounds, playTurn, reopen, text } from '../../test/engine/test-session.ts'
import {
  describeUndo,
  findUnannouncedUndos,
  gatherContextPlanInput,
  hasPromptSince,
  hasUnansweredUndo,
  UNDO_NOTICE_TYPE,
} from './measure-context.ts'

function undoneOnce(): SessionBuilder {
  const builder = new SessionBuilder('told')
  builder.user('one')
  builder.assistant('a', 'x')
  const boundary = builder.notice('microcompact_boundary', {
    microcompactMetadata: {
      trigger: 'auto',
      preTokens: 1,
      tokensSaved: 1,
      compactedToolIds: [],
      clearedAttachmentUUIDs: [],
    },
  })
  builder.notice('clear_undone', { of: boundary.uuid })
  return builder
}

describe('an act that was undone', () => {
  it('makes what starts by itself wait for the person, and is told once', () => {
    const builder = undoneOnce()
    const undone = findUnannouncedUndos(builder.view)
    expect([undone.length, describeUndo(undone)]).toEqual([
      1,
      'The clearing of old tool results was undone: the results above are the original ones again.',
    ])
    builder.attachment({ type: UNDO_NOTICE_TYPE, content: 'told' })
    expect(findUnannouncedUndos(builder.view)).toEqual([])
    builder.user('two')
    expect(findUnannouncedUndos(builder.view)).toEqual([])
  })

  it('is fresh until the model has spoken', () => {
    const builder = undoneOnce()
    builder.user('two')
    expect([hasUnansweredUndo(builder.view, 1), hasUnansweredUndo(builder.view, 5)]).toEqual([true, false])
    const other = new SessionBuilder('told')
    other.user('one')
    expect(hasUnansweredUndo(other.view, -1)).toBe(false)
  })
})

describe('new words', () => {
  it('are prompts behind the record, not answers of tools', () => {
    const builder = new SessionBuilder('told')
    builder.user('one')
    builder.assistant('a', [{ type: 'tool_use', id: 'c', name: 'Read', input: {} }])
    builder.result('c', 'text')
    expect([hasPromptSince(builder.view, 0), hasPromptSince(builder.view, -1)]).toEqual([false, true])
    builder.user('two')
    expect([hasPromptSince(builder.view, 2), hasPromptSince(builder.view, 3)]).toEqual([true, false])
  })
})

it('what a compaction left is the size that the provider reported after it, also when the session is opened again', async () => {
  const made = await openRounds({ replies: [{ blocks: [text('Done.')], usage: { input: 97_000 } }] })
  await compactNow(made)
  const find = (state: typeof made.run.state): number | undefined =>
    gatherContextPlanInput(state, made.host, 'call').context.expectedResult?.after
  expect(find(made.run.state)).toBeLessThan(10_000)
  const { outcome } = await playTurn(made.run.state, { prompt: 'Go on.' }, made.host)
  expect([find(outcome.state), find(await reopen(made))]).toEqual([97_000, 97_000])
})
