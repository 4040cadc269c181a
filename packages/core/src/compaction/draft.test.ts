import { createCountingIds, SessionBuilder } from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'
import { openTestSession } from '../../test/engine/test-session.ts'
import type { ContextEntry } from '../context/context-entry.ts'
import type { TurnContext } from '../engine/session-writer.ts'
import { emptyKnownPrefix } from '../request/prefix-snapshot.ts'
import type { RecordBody } from '../request/prefix-updates.ts'
import type { CompactionSpan } from '../summary/select-span.ts'
import {
  type CompactionRecordParts,
  createCompactionRecords,
  createDraftRecords,
  type KeptContext,
  listResponsesLosingThinking,
  readSummarizedHistory,
  type UnmeasuredDraft,
} from './draft.ts'
import { planCompaction } from './plan-compaction.ts'

const note = (content: string): RecordBody => ({
  type: 'attachment',
  isMeta: true,
  attachment: { type: 'todo', content },
})

const PARTS: CompactionRecordParts = {
  form: 'full',
  metadata: { trigger: 'manual', preTokens: 9 },
  summary: { type: 'user', message: { role: 'user', content: 'Summary: x' }, isCompactSummary: true },
  kept: [],
  last: [],
  sourcesBefore: [],
  snapshot: null,
  sourcesAfter: [],
}

const EPOCH = { sections: [], tools: [], model: 'model-a', parameters: {} }

function made(parts: Partial<CompactionRecordParts>) {
  const ids = createCountingIds()
  return createCompactionRecords(
    { ...PARTS, ...parts },
    { ids, timestamp: '2026-01-01T00:00:00.000Z', sessionId: 'told', tip: 'tip' },
  )
}

const kinds = (parts: Partial<CompactionRecordParts>): readonly string[] =>
  made(parts).map((record) => {
    const { type, subtype, attachment } = record as {
      type: string
      subtype?: string
      attachment?: { content?: string }
    }
    return subtype ?? attachment?.content ?? type
  })

it('what the provider cleared since a draft was planned stays cleared in its result', () => {
  const builder = new SessionBuilder('late')
  builder.user('begin')
  builder.call('Read', { file_path: 'a.ts' }, 'old text')
  const { entries, rewrites } = builder.view
  builder.call('Read', { file_path: 'b.ts' }, 'new text')
  const boundary = builder.notice('microcompact_boundary', {
    microcompactMetadata: {
      trigger: 'auto',
      way: 'native',
      preTokens: 20,
      tokensSaved: 9,
      compactedToolIds: [],
      clearedAttachmentUUIDs: [],
    },
  })
  const span = { form: 'full', summarised: [], kept: [], pinned: [], unanswered: [] }
  const plan = { entries, rewrites, span, request: { trigger: 'auto' }, before: { expected: 20 }, at: 1 }
  const draft = {
    plan,
    summary: { text: 'Summary', block: null, fallbackReason: null, recordsCoveredLocally: 0 },
    ...{ sourcesBefore: [], sourcesAfter: [], hookContext: [], outdated: [], snapshot: null, durationMs: 1 },
  } as unknown as UnmeasuredDraft
  const compaction = { retrieval: { historyTool: null, transcript: null } }
  const ports = { ids: createCountingIds(), clock: { now: () => 0 } }
  const host = { ...ports, compaction, profile: defineMessagesProfile({}) }
  const { view, session } = builder
  const state = { id: 'late', view, session, prefix: emptyKnownPrefix() }
  const records = createDraftRecords({ host, state } as unknown as TurnContext, draft)
  expect(records?.[0]).toMatchObject({
    compactMetadata: { unansweredMessages: { uuids: expect.arrayContaining([boundary.uuid]) } },
  })
})

describe('the records of a compaction', () => {
  it('stand in order, each behind the one before, the boundary behind nothing', () => {
    const parts: Partial<CompactionRecordParts> = {
      sourcesBefore: [note('front')],
      snapshot: EPOCH,
      sourcesAfter: [note('a'), note('b')],
    }
    expect(kinds(parts)).toEqual(['compact_boundary', 'front', 'user', 'epoch', 'a', 'b'])
    const records = made(parts)
    expect(records.map(({ parentUuid }) => parentUuid)).toEqual([
      null,
      ...records.slice(0, -1).map(({ uuid }) => uuid),
    ])
    expect(records[0]).toMatchObject({ logicalParentUuid: 'tip', level: 'info', isMeta: false })
  })

  it.each([
    ['full', 1],
    ['up_to', 1],
    ['from', 0],
  ] as const)('name what is kept: %s', (form, anchor) => {
    const records = made({ form, kept: ['k1', 'k2'], last: ['u'], sourcesAfter: [note('a')] })
    expect((records[0] as { compactMetadata?: unknown } | undefined)?.compactMetadata).toEqual({
      trigger: 'manual',
      preTokens: 9,
      preservedMessages: { anchorUuid: records[anchor]?.uuid, uuids: ['k1', 'k2'] },
      unansweredMessages: { anchorUuid: records.at(-1)?.uuid, uuids: ['u'] },
    })
  })

  it('make a view in which what is unanswered comes last', () => {
    const builder = new SessionBuilder('told')
    builder.user('asked', { uuid: 'u' })
    builder.batch(() => {
      for (const record of made({ last: ['u'], sourcesAfter: [note('a')] }))
        builder.notice('x', record as unknown as Record<string, never>)
    })
    expect(
      builder.view.entries
        .toArray()
        .map(({ record }) => record.uuid)
        .at(-1),
    ).toBe('u')
  })
})

const BOUND = defineMessagesProfile({ thinking: { binding: 'prefix' } })

function entries(...ids: readonly string[]): readonly ContextEntry[] {
  const builder = new SessionBuilder('told')
  for (const id of ids) {
    if (id.startsWith('note')) builder.attachment({ type: 'todo', content: id }, { uuid: id })
    else
      builder.assistant(id, [
        { type: 'thinking', thinking: id, signature: 's' },
        { type: 'text', text: 'x' },
      ])
  }
  return builder.view.entries.toArray()
}

const span = (parts: Partial<CompactionSpan>): CompactionSpan => ({
  form: 'full',
  summarised: [],
  kept: [],
  pinned: [],
  unanswered: [],
  input: [],
  unpinned: [],
  pivot: null,
  movedFrom: null,
  note: null,
  ...parts,
})

const keeping = (parts: Partial<CompactionSpan>, more: Partial<KeptContext> = {}): KeptContext => ({
  span: span(parts),
  outdated: [],
  isBlock: false,
  added: [],
  ...more,
})

describe('thinking that a compaction makes invalid', () => {
  it.each<[string, KeptContext, readonly string[]]>([
    ['all that stands behind a summary', keeping({ form: 'up_to', kept: entries('a', 'b') }), ['a', 'b']],
    ['nothing that stands in front of it', keeping({ form: 'from', kept: entries('a', 'b') }), []],
    [
      'nothing that follows a block directly',
      keeping({ form: 'up_to', kept: entries('a') }, { isBlock: true }),
      [],
    ],
    ['what is pinned', keeping({ form: 'from', kept: entries('a'), pinned: entries('p') }), ['p']],
    [
      'what stands behind something that is left out',
      keeping({ form: 'from', kept: entries('a', 'note', 'b') }, { outdated: ['note'] }),
      ['b'],
    ],
    ['what came meanwhile', keeping({}, { added: entries('late') }), ['late']],
  ])('%s', (_, kept, lost) => {
    expect(listResponsesLosingThinking(kept, BOUND)).toEqual(lost)
    expect(
      listResponsesLosingThinking(kept, defineMessagesProfile({ thinking: { binding: 'model' } })),
    ).toEqual([])
  })
})

it('a summary knows the open tasks of a todo tool that only the policy names', async () => {
  const session = new SessionBuilder()
  session.user('Begin.')
  session.call('board', { cards: [{ content: 'Write the parser', status: 'pending' }] }, 'ok')
  session.answer()
  const { run, room, host } = await openTestSession(session.records, {
    policy: { rehydrate: { todoTools: ['board'] } },
  })
  const plan = planCompaction(run.state, { trigger: 'manual', cause: 'person' }, host)
  if (!plan.ok) throw new Error(plan.message)
  const history = await readSummarizedHistory(run, room, plan)
  expect(history?.facts.todos).toEqual([{ text: 'Write the parser', status: 'pending' }])
})

it('a prompt whose answer is among the messages kept counts as answered, so that it is cut and not left out', async () => {
  const session = new SessionBuilder()
  session.user('Begin.')
  session.answer()
  session.user(`Now the long part. ${'word '.repeat(400)}`)
  const pivot = session.answer('I am at it.')
  session.user('Go on.')
  session.answer()
  const { run, room, host } = await openTestSession(session.records)
  const request = { trigger: 'auto', cause: 'threshold', form: 'up_to', pivot: pivot.uuid } as const
  const plan = planCompaction(run.state, request, host)
  if (!plan.ok) throw new Error(plan.message)
  const history = await readSummarizedHistory(run, room, plan)
  expect(history?.facts.messages.map(({ text, isAnswered }) => [text.slice(0, 12), isAnswered])).toEqual([
    ['Begin.', true],
    ['Now the long', true],
  ])
})
