import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { findLastSourceBeforeSummary } from './next-request.ts'

function compacted(inFront: number, behind: number): SessionBuilder {
  const builder = new SessionBuilder()
  builder.user('Go.')
  builder.attachment({ type: 'todo' })
  builder.batch(() => {
    builder.notice('compact_boundary', { compactMetadata: { trigger: 'auto', preTokens: 1 } })
    for (let at = 0; at < inFront; at += 1) builder.attachment({ type: 'todo' }, { uuid: `front-${at}` })
    builder.user('All was done.', { isCompactSummary: true })
    for (let at = 0; at < behind; at += 1) builder.attachment({ type: 'file' }, { uuid: `behind-${at}` })
  })
  return builder
}

describe('the end of the carriers in front', () => {
  it.each([
    [0, 0, null],
    [0, 2, null],
    [1, 0, 'front-0'],
    [3, 2, 'front-2'],
  ])('with %d in front of the summary and %d behind is %s', (inFront, behind, end) => {
    const { view, session } = compacted(inFront, behind)
    expect(findLastSourceBeforeSummary(view, session)).toBe(end)
  })

  it('is nowhere where nothing was compacted, or the compaction was taken back', () => {
    const builder = new SessionBuilder()
    builder.attachment({ type: 'todo' })
    expect(findLastSourceBeforeSummary(builder.view, builder.session)).toBe(null)
    const undone = compacted(2, 0)
    undone.notice('compact_undone', { of: undone.view.rewrites[0]?.uuid ?? '' })
    expect(findLastSourceBeforeSummary(undone.view, undone.session)).toBe(null)
  })

  it('is that of the newest compaction', () => {
    const builder = compacted(2, 0)
    builder.batch(() => {
      builder.notice('compact_boundary', { compactMetadata: { trigger: 'auto', preTokens: 1 } })
      builder.user('More was done.', { isCompactSummary: true })
    })
    expect(findLastSourceBeforeSummary(builder.view, builder.session)).toBe(null)
  })
})
