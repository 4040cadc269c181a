import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import type { ContextEntry } from '../context/context-entry.ts'
import type { CompactionForm } from './select-span.ts'
import { type CompactionSpan, chooseCompactionSpan, listKeptUuids, type SpanOptions } from './select-span.ts'

/** q1 · a1 with two calls · their results · a2 · q2 · a3 */
function createTalk(): SessionBuilder {
  const builder = new SessionBuilder()
  builder.user('one', { uuid: 'q1' })
  builder.assistant('m1', [{ type: 'tool_use', id: 'c1', name: 'Read', input: {} }], { uuid: 'a1' })
  builder.assistant('m1', [{ type: 'tool_use', id: 'c2', name: 'Read', input: {} }], { uuid: 'a1b' })
  builder.result('c1', 'text', { uuid: 'r1' })
  builder.result('c2', 'text', { uuid: 'r2' })
  builder.assistant('m2', 'done', { uuid: 'a2' })
  builder.user('two', { uuid: 'q2' })
  builder.assistant('m3', 'done too', { uuid: 'a3' })
  return builder
}

const uuids = (entries: readonly ContextEntry[]): readonly string[] =>
  entries.map((entry) => entry.record.uuid)

function selectExampleSpan(builder: SessionBuilder, options: SpanOptions): CompactionSpan {
  const choice = chooseCompactionSpan(builder.view, options)
  if (!choice.ok) throw new Error(choice.message)
  return choice.span
}

function classifyRecords(builder: SessionBuilder, options: SpanOptions): Record<string, readonly string[]> {
  const { summarised, kept, pinned, unanswered } = selectExampleSpan(builder, options)
  return {
    summarised: uuids(summarised),
    kept: uuids(kept),
    pinned: uuids(pinned),
    unanswered: uuids(unanswered),
  }
}

describe('the span of a compaction', () => {
  const all = ['q1', 'a1', 'a1b', 'r1', 'r2', 'a2', 'q2', 'a3']

  it.each<[string, CompactionForm, string, number, string | null]>([
    ['from a prompt', 'from', 'q2', 6, null],
    ['from inside a round keeps the whole round', 'from', 'r1', 5, 'r1'],
    ['from the second record of a response keeps it whole', 'from', 'a1b', 5, 'a1b'],
    ['up to a prompt', 'up_to', 'q2', 6, null],
    ['up to a result keeps the round it ends', 'up_to', 'r2', 1, 'r2'],
    ['up to a response', 'up_to', 'a2', 5, null],
  ])('%s', (_, form, pivot, cut, movedFrom) => {
    const found = selectExampleSpan(createTalk(), { form, pivot })
    const [front, back] = [all.slice(0, cut), all.slice(cut)]
    expect(uuids(found.summarised)).toEqual(form === 'from' ? back : front)
    expect(uuids(found.kept)).toEqual(form === 'from' ? front : back)
    expect([found.pivot, found.movedFrom]).toEqual([all[cut], movedFrom])
    expect(found.note === null).toBe(movedFrom === null)
    expect(uuids(found.input)).toEqual(form === 'from' ? all : front)
  })

  it('a moved cut is reported with both records', () => {
    expect(selectExampleSpan(createTalk(), { form: 'up_to', pivot: 'r2' }).note).toBe(
      'The cut was moved from r2 to a1, so that no tool call is parted from its result and no response from its own records. More is kept than was asked for.',
    )
  })

  it('full takes everything, earlier summaries and what they kept included', () => {
    const builder = createTalk()
    builder.batch(() => {
      builder.notice('compact_boundary', {
        uuid: 'b',
        parentUuid: null,
        compactMetadata: {
          trigger: 'manual',
          preTokens: 1,
          preservedMessages: { anchorUuid: 's', uuids: ['q2', 'a3'] },
        },
      })
      builder.user('Summary: before', { uuid: 's', isCompactSummary: true })
    })
    builder.user('three', { uuid: 'q3' })
    builder.assistant('m4', 'done again', { uuid: 'a4' })
    const found = selectExampleSpan(builder, { form: 'full' })
    expect(uuids(found.summarised)).toEqual(['s', 'q2', 'a3', 'q3', 'a4'])
  })

  it('unanswered user messages come last, attachments and notices aside', () => {
    const builder = createTalk()
    builder.assistant('m3', 'API error', {
      uuid: 'e',
      isApiErrorMessage: true,
      message: { id: 'e', role: 'assistant', model: '<synthetic>', content: 'API error' },
    })
    builder.user('three', { uuid: 'q3' })
    builder.attachment({ type: 'file', path: '/a', content: 'x' }, { uuid: 'f' })
    builder.user('<local-command-stdout>ls</local-command-stdout>', { uuid: 'l' })
    builder.user('a hint', { uuid: 'h', isMeta: true })
    builder.user([{ type: 'image', source: {} }], { uuid: 'p' })
    expect(classifyRecords(builder, { form: 'full' })).toEqual({
      summarised: [...all, 'f', 'l', 'h'],
      kept: [],
      pinned: [],
      unanswered: ['q3', 'p'],
    })
    expect(classifyRecords(builder, { form: 'up_to', pivot: 'q2' })).toMatchObject({
      kept: ['q2', 'a3', 'f', 'l', 'h'],
      unanswered: ['q3', 'p'],
    })
    expect(classifyRecords(builder, { form: 'from', pivot: 'q2' })).toMatchObject({
      summarised: ['q2', 'a3', 'f', 'l', 'h'],
      unanswered: ['q3', 'p'],
    })
  })

  it('words beside the answer to a call are not lost', () => {
    const builder = new SessionBuilder()
    builder.user('one', { uuid: 'q1' })
    builder.assistant('m1', [{ type: 'tool_use', id: 'c1', name: 'Bash', input: {} }], { uuid: 'a1' })
    builder.user(
      [
        { type: 'tool_result', tool_use_id: 'c1', content: 'denied' },
        { type: 'text', text: 'No, do it otherwise.' },
      ],
      { uuid: 'r1' },
    )
    expect(classifyRecords(builder, { form: 'full' })).toMatchObject({
      summarised: ['q1', 'a1'],
      unanswered: ['r1'],
    })
  })
})

describe('pins', () => {
  const pins = (targets: readonly string[], budgetTokens = 100): NonNullable<SpanOptions['pins']> => ({
    targets,
    budgetTokens,
    countTokens: () => 10,
  })

  it('keep a record with all it cannot be parted from', () => {
    expect(classifyRecords(createTalk(), { form: 'full', pins: pins(['r2', 'q1']) })).toMatchObject({
      summarised: ['a2', 'q2', 'a3'],
      pinned: ['q1', 'a1', 'a1b', 'r1', 'r2'],
    })
  })

  it('the newest get the budget, and those beyond it are reported', () => {
    const found = selectExampleSpan(createTalk(), { form: 'full', pins: pins(['q1', 'r2', 'q2'], 25) })
    expect([uuids(found.pinned), uuids(found.unpinned)]).toEqual([['q1', 'q2'], ['r2']])
    expect(uuids(found.summarised)).toEqual(['a1', 'a1b', 'r1', 'r2', 'a2', 'a3'])
  })

  it('on the kept side say nothing new', () => {
    expect(classifyRecords(createTalk(), { form: 'up_to', pivot: 'q2', pins: pins(['q2']) }).pinned).toEqual(
      [],
    )
  })
})

describe('what cannot be compacted', () => {
  const waiting = (): SessionBuilder => {
    const builder = createTalk()
    builder.assistant('m4', [{ type: 'tool_use', id: 'c9', name: 'Bash', input: {} }], { uuid: 'a4' })
    builder.user('hurry', { uuid: 'q9' })
    return builder
  }

  it.each<[string, SessionBuilder, SpanOptions, string]>([
    ['an empty conversation', new SessionBuilder(), { form: 'full' }, 'empty-conversation'],
    ['a call that waits', waiting(), { form: 'full' }, 'pending-call'],
    ['a call that waits on the kept side', waiting(), { form: 'up_to', pivot: 'q2' }, 'pending-call'],
    ['a pivot nobody knows', createTalk(), { form: 'from', pivot: 'nowhere' }, 'unknown-pivot'],
    ['no pivot at all', createTalk(), { form: 'up_to' }, 'unknown-pivot'],
    ['nothing to keep in front', createTalk(), { form: 'from', pivot: 'q1' }, 'empty-side'],
    ['nothing before the pivot', createTalk(), { form: 'up_to', pivot: 'q1' }, 'empty-side'],
  ])('%s', (_, builder, options, reason) => {
    const choice = chooseCompactionSpan(builder.view, options)
    expect(choice).toMatchObject({ ok: false, reason })
  })

  it('a cut that moves to the end leaves nothing to summarise', () => {
    const builder = new SessionBuilder()
    builder.user('one', { uuid: 'q1' })
    builder.assistant('m1', [{ type: 'tool_use', id: 'c1', name: 'Read', input: {} }], { uuid: 'a1' })
    builder.result('c1', 'text', { uuid: 'r1' })
    expect(chooseCompactionSpan(builder.view, { form: 'from', pivot: 'r1' })).toEqual({
      ok: false,
      reason: 'empty-side',
      message: 'There is nothing to summarise behind the picked message. Pick another one.',
    })
  })

  it('a message that waits for its answer is not summarised away', () => {
    const builder = new SessionBuilder()
    builder.user('one')
    expect(chooseCompactionSpan(builder.view, { form: 'full' })).toMatchObject({
      ok: false,
      reason: 'nothing-to-summarise',
    })
  })

  it('a pending call of the provider is dropped once the user has continued', () => {
    const builder = createTalk()
    builder.assistant('m4', [{ type: 'server_tool_use', id: 's1', name: 'web_search', input: {} }], {
      uuid: 'a4',
    })
    expect(chooseCompactionSpan(builder.view, { form: 'full' })).toMatchObject({ reason: 'pending-call' })
    builder.user('never mind', { uuid: 'q9' })
    expect(classifyRecords(builder, { form: 'full' })).toMatchObject({
      summarised: [...talkUuids, 'a4'],
      unanswered: ['q9'],
    })
  })

  const talkUuids = ['q1', 'a1', 'a1b', 'r1', 'r2', 'a2', 'q2', 'a3']
})

describe('a cut between roles', () => {
  it('is moved to where the speaker changes', () => {
    const builder = new SessionBuilder()
    builder.user('one', { uuid: 'q1' })
    builder.assistant('m1', 'yes', { uuid: 'a1' })
    builder.user('two', { uuid: 'q2' })
    builder.user('and three', { uuid: 'q3' })
    builder.assistant('m2', 'yes', { uuid: 'a2' })
    expect(selectExampleSpan(builder, { form: 'up_to', pivot: 'q3' }).pivot).toBe('q3')
    expect(selectExampleSpan(builder, { form: 'up_to', pivot: 'q3', betweenRoles: true })).toMatchObject({
      pivot: 'q2',
      movedFrom: 'q3',
    })
  })

  it('is refused, not moved, where no message follows', () => {
    const builder = new SessionBuilder()
    builder.user('one', { uuid: 'q1' })
    builder.assistant('m1', 'yes', { uuid: 'a1' })
    builder.notice('turn_duration', { uuid: 'n1' })
    for (const betweenRoles of [false, true])
      expect(chooseCompactionSpan(builder.view, { form: 'up_to', pivot: 'n1', betweenRoles })).toMatchObject({
        ok: false,
        reason: 'empty-side',
      })
  })
})

describe('what the boundary names', () => {
  it.each<[SpanOptions, { readonly summarised: number; readonly kept: readonly string[] }]>([
    [{ form: 'full' }, { summarised: 8, kept: [] }],
    [
      { form: 'from', pivot: 'q2' },
      { summarised: 2, kept: ['q1', 'a1', 'a1b', 'r1', 'r2', 'a2'] },
    ],
    [
      { form: 'up_to', pivot: 'q2', pins: { targets: ['q1'], budgetTokens: 9, countTokens: () => 1 } },
      { summarised: 5, kept: ['q1', 'q2', 'a3'] },
    ],
  ])('%j', (options, { summarised, kept }) => {
    const builder = createTalk()
    builder.user('nine', { uuid: 'q9' })
    const span = selectExampleSpan(builder, options)
    expect(span.summarised).toHaveLength(summarised)
    expect(listKeptUuids(span)).toEqual(kept)
    expect(span.unanswered.map(({ record }) => record.uuid)).toEqual(['q9'])
  })
})
