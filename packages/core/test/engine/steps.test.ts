import { createFakeBlobs, SessionBuilder } from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'
import { listEntriesSincePlan } from '../../src/compaction/draft.ts'
import { toApiMessages } from '../../src/context/flatten-context.ts'
import { appendSourceUpdates } from '../../src/engine/announce-updates.ts'
import type { TurnEvent } from '../../src/engine/events.ts'
import { gatherContextPlanInput, isJustCompacted, measureContext } from '../../src/engine/measure-context.ts'
import {
  appendUnlinkedRecords,
  linkRecords,
  previewAppend,
  type UnlinkedRecord,
} from '../../src/engine/session-writer.ts'
import type { Block } from '../../src/log/block.ts'
import { makeContextPlan } from '../../src/planner/context-plan.ts'
import { reduceContext } from '../../src/turn/reduce-context.ts'
import { answerHistoryCall, createToolResultRecord } from '../../src/turn/run-tools.ts'
import { countTurnAndRecordClearing } from '../../src/turn/turn.ts'
import {
  addLargeRound,
  compactNow,
  logLines as lines,
  openTestSession,
  perform,
  SESSION,
  type TestSession,
  type TestSessionOptions,
  textCarrier,
} from './test-session.ts'

function told(rounds = 3, tokens = 1_000): SessionBuilder {
  const builder = new SessionBuilder(SESSION)
  builder.user('look at the login')
  for (let round = 0; round < rounds; round += 1) addLargeRound(builder, tokens)
  return builder
}

const open = (options: TestSessionOptions = {}, builder = told()): Promise<TestSession> =>
  openTestSession(builder.records, options)
const said = (content: string): UnlinkedRecord => ({ type: 'user', message: { role: 'user', content } })
const call = (
  name: string,
  input: object = {},
): Block & { type: 'tool_use'; id: string; name: string; input: never } =>
  ({ type: 'tool_use', id: 'c-1', name, input }) as never

describe('a session on trial', () => {
  it('is what it would be, and the real one stays and goes on as it was', async () => {
    const { run } = await open()
    const before = run.state
    const next = previewAppend(before, linkRecords(run, [said('tried')]))
    expect([next.position, lines(next).at(-1)]).toEqual([before.position + 1, 'user: tried'])
    await perform({ events: [] } as unknown as TestSession, appendUnlinkedRecords(run, [said('real')]))
    expect(lines(run.state).at(-1)).toBe('user: real')
    expect(listEntriesSincePlan(before.view, run.state.view)?.map(({ record }) => record.type)).toEqual([
      'user',
    ])
    expect(listEntriesSincePlan(next.view, run.state.view)).toBeNull()
  })
})

describe('what has come since', () => {
  it('is nothing behind a compaction, until somebody speaks', async () => {
    const made = await open()
    expect(isJustCompacted(made.run.state)).toBe(false)
    await compactNow(made)
    expect(isJustCompacted(made.run.state)).toBe(true)
    await perform(
      made,
      appendUnlinkedRecords(made.run, [
        { type: 'attachment', isMeta: true, attachment: { type: 'todo', content: 'x' } },
      ]),
    )
    expect(isJustCompacted(made.run.state)).toBe(true)
    await perform(made, appendUnlinkedRecords(made.run, [said('and now?')]))
    expect(isJustCompacted(made.run.state)).toBe(false)
  })
})

describe('a large result on arrival', () => {
  const result = { type: 'tool_result' as const, tool_use_id: 'c-1', content: 'abc\n'.repeat(60_000) }

  it('is put aside, and the tool that reads it gives it back', async () => {
    const blobs = createFakeBlobs()
    const made = await open({ room: { blobs, retrieval: { historyTool: 'history', transcript: null } } })
    const { body } = await perform(made, createToolResultRecord(made.run, call('Bash'), result))
    expect(made.events.map(({ type }) => type)).toEqual(['spilled'])
    expect(JSON.stringify(body).length).toBeLessThan(result.content.length / 2)
    const message = { id: 'm-1', role: 'assistant' as const, model: 'model-a', content: [call('Bash')] }
    await perform(made, appendUnlinkedRecords(made.run, [{ type: 'assistant', message }, body]))
    const answer = await answerHistoryCall(made.run, call('history', { id: 'c-1' }))
    expect(JSON.stringify(answer)).toContain('abc')
    expect(await answerHistoryCall(made.run, call('Bash'))).toBeNull()
  })

  it('stays whole where there is nowhere to put it, or the place fails', async () => {
    const whole = await open()
    expect((await perform(whole, createToolResultRecord(whole.run, call('Bash'), result))).result).toBe(
      result,
    )
    const blobs = { ...createFakeBlobs(), put: () => Promise.reject(new Error('disk full')) }
    const failing = await open({ room: { blobs, retrieval: { historyTool: 'history', transcript: null } } })
    expect(
      (await perform(failing, createToolResultRecord(failing.run, call('Bash'), result))).result.content,
    ).toBe(result.content)
    expect(failing.events).toEqual([{ type: 'spill-failed', toolUseId: 'c-1', why: 'disk full' }])
  })
})

describe('carriers between compactions', () => {
  it('tell a change once, and only those that tell changes', async () => {
    const [todo, silent] = [{ text: 'todo 1' }, { text: 'silent 1' }]
    const made = await open({
      room: { sources: [textCarrier('todos', todo, { tellsChanges: true }), textCarrier('quiet', silent)] },
    })
    const shown = (): readonly string[] =>
      made.run.state.view.entries
        .toArray()
        .flatMap(({ record }) => (record.type === 'attachment' ? [String(record.attachment.content)] : []))
    await compactNow(made)
    expect(shown()).toEqual(['todo 1', 'silent 1'])
    await perform(made, appendSourceUpdates(made.run))
    expect(shown()).toEqual(['todo 1', 'silent 1'])
    todo.text = 'todo 2'
    silent.text = 'silent 2'
    await perform(made, appendSourceUpdates(made.run))
    await perform(made, appendSourceUpdates(made.run))
    expect(shown()).toEqual(['todo 1', 'silent 1', 'todo 2'])
  })

  it('stop where the person calls it off', async () => {
    const made = await open({
      room: { sources: [textCarrier('todos', { text: 'x' }, { tellsChanges: true })] },
    })
    await perform(made, appendUnlinkedRecords(made.run, [said('go on')]))
    const run = { ...made.run, signal: { aborted: true } }
    expect(await perform(made, appendSourceUpdates(run))).toEqual({ ok: false, reason: 'aborted' })
  })
})

describe('after an answer', () => {
  it('turns are counted', async () => {
    const made = await open()
    const message = { id: 'm', role: 'assistant' as const, model: 'model-a', content: [] }
    const reply = { message, rawBlocks: [], cutInputs: [], unfinished: [], others: [] }
    for (let turn = 0; turn < 3; turn += 1) await perform(made, countTurnAndRecordClearing(made.run, reply))
    expect(made.run.state.context?.tracking.turns).toBe(3)
    await compactNow(made)
    expect(made.run.state.context?.tracking).toMatchObject({ turns: 0 })
  })
})

describe('deletions from a cache that has lapsed', () => {
  const profile = defineMessagesProfile({
    roles: { consecutive: 'merged', prefill: 'allowed' },
    thinking: { closing: 'not-at-end', firstInModes: [] },
    capabilities: { cacheEdits: true },
  })

  it('are dropped and told with all their tokens, and the text counts again', async () => {
    const builder = told(3)
    const calls = builder.records.flatMap(
      (record) => JSON.stringify(record).match(/"id":"(call-\d+)"/)?.[1] ?? [],
    )
    const anchorUuid = builder.tip ?? ''
    builder.notice('microcompact_boundary', {
      microcompactMetadata: {
        trigger: 'auto',
        way: 'cached',
        anchorUuid,
        preTokens: 9,
        tokensSaved: 9,
        compactedToolIds: calls.slice(0, 2),
        clearedAttachmentUUIDs: [],
      },
    })
    builder.user(
      [
        {
          type: 'cache_edits',
          edits: calls.slice(0, 2).map((id) => ({ type: 'delete', cache_reference: id })),
        },
      ],
      { isMeta: true },
    )
    builder.user('go on')
    const made = await open({ profile, policy: { switches: { microcompactEnabled: false } } }, builder)
    const before = measureContext(made.run.state, made.host).expected
    const { context } = gatherContextPlanInput(made.run.state, made.host, 'prompt')
    expect(makeContextPlan(context).context.expected).toBe(before)
    await perform(made, reduceContext(made.run, 'prompt'))
    const dropped = made.events.filter(
      (event): event is Extract<TurnEvent, { type: 'cache-edits-dropped' }> =>
        event.type === 'cache-edits-dropped',
    )
    expect(dropped.length).toBe(1)
    expect(dropped[0]?.tokens).toBeGreaterThan(1_900)
    expect(measureContext(made.run.state, made.host).expected).toBeGreaterThan(before + 1_900)
    expect(JSON.stringify(toApiMessages(made.run.state.flat))).not.toContain('cache_edits')
  })
})
