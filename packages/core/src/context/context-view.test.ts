import { Teller } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'

const shown = (teller: Teller): readonly string[] =>
  teller.view.entries.toArray().map((entry) => entry.record.uuid)

/** A boundary and its summary as other programs write them: two lines, no batch. */
function compacted(teller: Teller, metadata: Record<string, unknown> = {}, id = ''): void {
  const compactMetadata = { trigger: 'auto' as const, preTokens: 9, ...metadata }
  teller.notice('compact_boundary', {
    uuid: `b${id}`,
    parentUuid: null,
    logicalParentUuid: teller.tip,
    compactMetadata,
  })
  teller.user('Summary: …', { uuid: `s${id}`, isCompactSummary: true, isVisibleInTranscriptOnly: true })
}

function talk(): Teller {
  const teller = new Teller()
  teller.user('one', { uuid: 'p1' })
  teller.assistant('m1', 'two', { uuid: 'a1' })
  teller.user('three', { uuid: 'p2' })
  teller.assistant('m2', 'four', { uuid: 'a2' })
  return teller
}

describe('the view', () => {
  it('begins at the last boundary, and a summary is an ordinary message of it', () => {
    const teller = talk()
    compacted(teller)
    teller.user('five', { uuid: 'p3' })
    expect(shown(teller)).toEqual(['b', 's', 'p3'])
    compacted(teller, {}, '2')
    expect(shown(teller)).toEqual(['b2', 's2'])
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
    [
      'unanswered messages behind the kept ones',
      {
        preservedMessages: { anchorUuid: 's', uuids: ['a1'] },
        unansweredMessages: { anchorUuid: 's', uuids: ['p2'] },
      },
      ['b', 's', 'a1', 'p2'],
    ],
  ])('%s', (_, metadata, expected) => {
    const teller = talk()
    compacted(teller, metadata)
    expect(shown(teller)).toEqual(expected)
  })

  it('keeps what a second partial compaction names, though it is no range of the file', () => {
    const teller = talk()
    compacted(teller, { preservedMessages: { anchorUuid: 's', uuids: ['p2', 'a2'] } })
    teller.user('five', { uuid: 'p3' })
    teller.assistant('m3', 'six', { uuid: 'a3' })
    compacted(teller, { preservedSegment: { headUuid: 'a2', tailUuid: 'p3', anchorUuid: 's2' } }, '2')
    expect(shown(teller)).toEqual(['b2', 's2', 'a2', 'p3'])
  })

  it('reports a kept record that is not in the log', () => {
    const teller = talk()
    compacted(teller, { preservedMessages: { anchorUuid: 's', uuids: ['nowhere', 'a2'] } })
    expect(shown(teller)).toEqual(['b', 's', 'a2'])
    expect([...teller.view.damage].map(({ kind, uuid }) => [kind, uuid])).toEqual([
      ['missing-preserved', 'nowhere'],
    ])
  })

  it.each([
    ['is nowhere', { preservedMessages: { anchorUuid: 'nowhere', uuids: ['p2', 'a2'] } }],
    ['stands before the boundary', { preservedMessages: { anchorUuid: 'p1', uuids: ['p2', 'a2'] } }],
    ['is not named at all', { preservedSegment: { headUuid: 'p2', tailUuid: 'a2' } }],
  ])('shows kept messages also where their anchor %s, and says so', (_, metadata) => {
    const teller = talk()
    compacted(teller, metadata)
    teller.user('five', { uuid: 'p3' })
    expect(shown(teller)).toEqual(['b', 's', 'p2', 'a2', 'p3'])
    expect([...teller.view.damage].map((item) => item.kind)).toEqual(['missing-anchor'])
  })

  it('shows a message once, however often it is named as kept', () => {
    const teller = talk()
    const twice = { anchorUuid: 's', uuids: ['p2', 'a2', 'p2'] }
    compacted(teller, { preservedMessages: twice, unansweredMessages: { anchorUuid: 's', uuids: ['p2'] } })
    expect(shown(teller)).toEqual(['b', 's', 'p2', 'a2'])
  })

  it('keeps what came between a boundary and its summary', () => {
    const teller = talk()
    teller.notice('compact_boundary', { uuid: 'b', parentUuid: null, logicalParentUuid: 'a2' })
    teller.attachment({ type: 'todo', content: 'x' }, { uuid: 't' })
    teller.user('Summary: …', { uuid: 's', isCompactSummary: true })
    expect(shown(teller)).toEqual(['b', 't', 's'])
  })

  it('leaves a deletion in the provider’s cache alone: the messages stay as they are', () => {
    const teller = talk()
    teller.assistant('m3', [{ type: 'tool_use', id: 'c1', name: 'Read', input: {} }])
    teller.result('c1', 'text')
    const metadata = {
      trigger: 'auto',
      preTokens: 2,
      tokensSaved: 1,
      compactedToolIds: ['c1'],
      clearedAttachmentUUIDs: [],
    }
    teller.notice('microcompact_boundary', { microcompactMetadata: { ...metadata, way: 'cached' } })
    expect([teller.view.acts, teller.view.entries.toArray().some((entry) => entry.cleared)]).toEqual([
      [],
      false,
    ])
    teller.notice('microcompact_boundary', { microcompactMetadata: { ...metadata, way: 'idle' } })
    expect([teller.view.acts.length, teller.view.entries.toArray().some((entry) => entry.cleared)]).toEqual([
      1,
      true,
    ])
  })

  it('is as before where a boundary never gets its summary, and says so at the next one', () => {
    const teller = talk()
    teller.notice('compact_boundary', { uuid: 'lost', parentUuid: null, logicalParentUuid: 'a2' })
    teller.user('five', { uuid: 'p3' })
    expect(shown(teller)).toEqual(['p1', 'a1', 'p2', 'a2', 'p3'])
    compacted(teller)
    expect([shown(teller), [...teller.view.damage].map((item) => item.kind)]).toEqual([
      ['b', 's'],
      ['boundary-without-summary'],
    ])
  })

  it('goes back, by undo, to what another program’s compaction replaced', () => {
    const teller = talk()
    compacted(teller)
    teller.user('five', { uuid: 'p3' })
    teller.notice('compact_undone', { uuid: 'u', of: 'b' })
    expect(shown(teller)).toEqual(['p1', 'a1', 'p2', 'a2', 'p3', 'u'])
    expect(teller.view.rewrittenAt).toBe(7)
  })

  it('knows since when usage measures it', () => {
    const teller = talk()
    expect(teller.view.rewrittenAt).toBe(-1)
    compacted(teller)
    expect(teller.view.rewrittenAt).toBe(5)
    teller.notice('epoch', { epoch: { sections: [], tools: [], model: 'm', parameters: {} } })
    teller.user('five')
    expect(teller.view.rewrittenAt).toBe(6)
  })
})
