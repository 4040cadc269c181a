import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'

const shown = (builder: SessionBuilder): readonly string[] =>
  builder.view.entries.toArray().map((entry) => entry.record.uuid)

/** A boundary and its summary as other programs write them: two lines, no batch. */
function compacted(builder: SessionBuilder, metadata: Record<string, unknown> = {}, id = ''): void {
  const compactMetadata = { trigger: 'auto' as const, preTokens: 9, ...metadata }
  builder.notice('compact_boundary', {
    uuid: `b${id}`,
    parentUuid: null,
    logicalParentUuid: builder.tip,
    compactMetadata,
  })
  builder.user('Summary: …', { uuid: `s${id}`, isCompactSummary: true, isVisibleInTranscriptOnly: true })
}

function talk(): SessionBuilder {
  const builder = new SessionBuilder()
  builder.user('one', { uuid: 'p1' })
  builder.assistant('m1', 'two', { uuid: 'a1' })
  builder.user('three', { uuid: 'p2' })
  builder.assistant('m2', 'four', { uuid: 'a2' })
  return builder
}

describe('the view', () => {
  it('begins at the last boundary, and a summary is an ordinary message of it', () => {
    const builder = talk()
    compacted(builder)
    builder.user('five', { uuid: 'p3' })
    expect(shown(builder)).toEqual(['b', 's', 'p3'])
    compacted(builder, {}, '2')
    expect(shown(builder)).toEqual(['b2', 's2'])
  })

  it.each([
    [
      'up_to: kept messages behind the summary',
      { preservedMessages: { anchorUuid: 's', uuids: ['p2', 'a2'] } },
      ['b', 's', 'p2', 'a2'],
    ],
    [
      'from: kept messages in front of it',
      { preservedMessages: { anchorUuid: 'b', uuids: ['p1', 'a1'] } },
      ['b', 'p1', 'a1', 's'],
    ],
    [
      'the older form, a segment',
      { preservedSegment: { headUuid: 'a1', tailUuid: 'a2', anchorUuid: 's' } },
      ['b', 's', 'a1', 'p2', 'a2'],
    ],
    ['a segment without head and tail keeps nothing', { preservedSegment: {} }, ['b', 's']],
    [
      'unanswered messages behind the kept ones',
      {
        preservedMessages: { anchorUuid: 's', uuids: ['a1'] },
        unansweredMessages: { anchorUuid: 's', uuids: ['p2'] },
      },
      ['b', 's', 'a1', 'p2'],
    ],
  ])('%s', (_, metadata, expected) => {
    const builder = talk()
    compacted(builder, metadata)
    expect(shown(builder)).toEqual(expected)
  })

  it('keeps what a second partial compaction names, though it is no range of the file', () => {
    const builder = talk()
    compacted(builder, { preservedMessages: { anchorUuid: 's', uuids: ['p2', 'a2'] } })
    builder.user('five', { uuid: 'p3' })
    builder.assistant('m3', 'six', { uuid: 'a3' })
    compacted(builder, { preservedSegment: { headUuid: 'a2', tailUuid: 'p3', anchorUuid: 's2' } }, '2')
    expect(shown(builder)).toEqual(['b2', 's2', 'a2', 'p3'])
  })

  it('reports a kept record that is not in the log', () => {
    const builder = talk()
    compacted(builder, { preservedMessages: { anchorUuid: 's', uuids: ['nowhere', 'a2'] } })
    expect(shown(builder)).toEqual(['b', 's', 'a2'])
    expect([...builder.view.damage].map(({ kind, uuid }) => [kind, uuid])).toEqual([
      ['missing-preserved', 'nowhere'],
    ])
  })

  it.each([
    ['is nowhere', { preservedMessages: { anchorUuid: 'nowhere', uuids: ['p2', 'a2'] } }],
    ['stands before the boundary', { preservedMessages: { anchorUuid: 'p1', uuids: ['p2', 'a2'] } }],
    ['is not named at all', { preservedSegment: { headUuid: 'p2', tailUuid: 'a2' } }],
  ])('shows kept messages also where their anchor %s, and says so', (_, metadata) => {
    const builder = talk()
    compacted(builder, metadata)
    builder.user('five', { uuid: 'p3' })
    expect(shown(builder)).toEqual(['b', 's', 'p2', 'a2', 'p3'])
    expect([...builder.view.damage].map((item) => item.kind)).toEqual(['missing-anchor'])
  })

  it('shows a message once, however often it is named as kept', () => {
    const builder = talk()
    const twice = { anchorUuid: 's', uuids: ['p2', 'a2', 'p2'] }
    compacted(builder, { preservedMessages: twice, unansweredMessages: { anchorUuid: 's', uuids: ['p2'] } })
    expect(shown(builder)).toEqual(['b', 's', 'p2', 'a2'])
  })

  it('keeps what came between a boundary and its summary', () => {
    const builder = talk()
    builder.notice('compact_boundary', { uuid: 'b', parentUuid: null, logicalParentUuid: 'a2' })
    builder.attachment({ type: 'todo', content: 'x' }, { uuid: 't' })
    builder.user('Summary: …', { uuid: 's', isCompactSummary: true })
    expect(shown(builder)).toEqual(['b', 't', 's'])
  })

  it('leaves a deletion in the provider’s cache alone: the messages stay as they are', () => {
    const builder = talk()
    builder.assistant('m3', [{ type: 'tool_use', id: 'c1', name: 'Read', input: {} }])
    builder.result('c1', 'text')
    const metadata = {
      trigger: 'auto',
      preTokens: 2,
      tokensSaved: 1,
      compactedToolIds: ['c1'],
      clearedAttachmentUUIDs: [],
    }
    builder.notice('microcompact_boundary', { microcompactMetadata: { ...metadata, way: 'cached' } })
    expect([builder.view.rewrites, builder.view.entries.toArray().some((entry) => entry.cleared)]).toEqual([
      [],
      false,
    ])
    builder.notice('microcompact_boundary', { microcompactMetadata: { ...metadata, way: 'idle' } })
    expect([
      builder.view.rewrites.length,
      builder.view.entries.toArray().some((entry) => entry.cleared),
    ]).toEqual([1, true])
  })

  it('is as before where a boundary never gets its summary, and says so at the next one', () => {
    const builder = talk()
    builder.notice('compact_boundary', { uuid: 'lost', parentUuid: null, logicalParentUuid: 'a2' })
    builder.user('five', { uuid: 'p3' })
    expect(shown(builder)).toEqual(['p1', 'a1', 'p2', 'a2', 'p3'])
    compacted(builder)
    expect([shown(builder), [...builder.view.damage].map((item) => item.kind)]).toEqual([
      ['b', 's'],
      ['boundary-without-summary'],
    ])
  })

  it('goes back, by undo, to what another program’s compaction replaced', () => {
    const builder = talk()
    compacted(builder)
    builder.user('five', { uuid: 'p3' })
    builder.notice('compact_undone', { uuid: 'u', of: 'b' })
    expect(shown(builder)).toEqual(['p1', 'a1', 'p2', 'a2', 'p3', 'u'])
    expect(builder.view.rewrittenAt).toBe(7)
  })

  it('knows since when usage measures it', () => {
    const builder = talk()
    expect(builder.view.rewrittenAt).toBe(-1)
    compacted(builder)
    expect(builder.view.rewrittenAt).toBe(5)
    builder.notice('epoch', { epoch: { sections: [], tools: [], model: 'm', parameters: {} } })
    builder.user('five')
    expect(builder.view.rewrittenAt).toBe(6)
  })
})
