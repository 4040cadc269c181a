import { countPropertyRuns, createFakeClock, SessionBuilder } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { listTracedMessages } from '../../src/context/flatten-context.ts'
import { appendUnlinkedRecords, type UnlinkedRecord } from '../../src/engine/session-writer.ts'
import { toBlocks } from '../../src/log/block.ts'
import { prepareNextRequest } from '../../src/turn/turn.ts'
import {
  addLargeRound,
  BOUND,
  compactNow,
  LENIENT,
  openTestSession,
  perform,
  reopen,
  type TestSession,
  undoNow,
} from '../engine/test-session.ts'
import {
  addWork,
  buildSession,
  compactionPlans,
  messageBytes,
  openPlanned,
  requestBytes,
  toCompactAsked,
} from './planned-compactions.ts'

describe('clearings of generated sessions', () => {
  it.each([
    ['', LENIENT],
    [', bound thinking and all', BOUND],
  ])(
    'law 1 and 7: a process that opens the log sends the same bytes, and undo gives exactly the former request%s',
    async (_, profile) => {
      let cleared = 0
      const runs = countPropertyRuns(15, 6)
      await fc.assert(
        fc.asyncProperty(compactionPlans(1), async (story) => {
          const builder = buildSession(story)
          const policy = { clear: { keptFiles: 0 } }
          const clock = createFakeClock(Date.UTC(2026, 5, 1))
          const made = await openTestSession(builder.records, { profile, policy, host: { clock } })
          for (let round = 0; round < 9; round += 1) {
            const was = messageBytes(made.run.state)
            await perform(made, prepareNextRequest(made.run, 'prompt'))
            expect(await reopenedBytes(made)).toBe(requestBytes(made.run.state, made.host))
            if (made.events.some(({ type }) => type === 'microcompact')) {
              cleared += 1
              expect(await undoNow(made)).toMatchObject({ ok: true, kind: 'clear' })
              expect(messageBytes(made.run.state)).toBe(was)
              expect(await reopenedBytes(made)).toBe(requestBytes(made.run.state, made.host))
              return
            }
            await perform(made, appendUnlinkedRecords(made.run, createRound(round)))
            // After a pause nothing is cached any more, and clearing costs nothing.
            if (round > 6) await clock.advance(2 * 3_600_000)
          }
        }),
        { numRuns: runs },
      )
      expect(cleared).toBeGreaterThan(runs / 3)
    },
  )
})

/** The next request of a process that has sent none yet, markers included. */
async function reopenedBytes(made: TestSession): Promise<string> {
  return requestBytes(await reopen(made), made.host)
}

function createRound(round: number): readonly UnlinkedRecord[] {
  const call = { type: 'tool_use', id: `late-${round}`, name: 'Read', input: { file_path: `/${round}.ts` } }
  const result = { type: 'tool_result', tool_use_id: call.id, content: 'abc '.repeat(1_500) }
  const thinking = { type: 'thinking', thinking: 'hm', signature: `late-${round}` }
  const message = { id: `late-${round}`, role: 'assistant', model: 'model-a', content: [thinking, call] }
  return [
    { type: 'assistant', message },
    { type: 'user', message: { role: 'user', content: [result] } },
  ] as readonly UnlinkedRecord[]
}

function plainTeller(): SessionBuilder {
  const builder = new SessionBuilder('told')
  builder.user('look at the login')
  for (let round = 0; round < 4; round += 1) addLargeRound(builder, 900, true)
  return builder
}

/** What each thinking block was said behind, and what it stands behind now. */
function prefixes({ state }: TestSession['run']): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  let before = JSON.stringify(state.prefix.current?.epoch ?? null)
  for (const { message } of listTracedMessages(state.flat)) {
    for (const block of toBlocks(message.content)) {
      if (block.type === 'thinking') found.set(String(block.signature), before)
      before += `${message.role} ${JSON.stringify(block)}`
    }
  }
  return found
}

describe('law 12: thinking that is bound to what lies before it', () => {
  it('stands where it was said or goes whole, whatever is compacted and undone', async () => {
    let [lost, stayed] = [0, 0]
    const runs = countPropertyRuns(30)
    await fc.assert(
      fc.asyncProperty(
        compactionPlans(4),
        fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
        async (story, undoes) => {
          const made = await openPlanned(story, BOUND, plainTeller())
          const said = new Map(prefixes(made.run))
          const check = () => {
            const now = prefixes(made.run)
            for (const [signature, before] of now)
              if (said.has(signature)) expect(before).toBe(said.get(signature))
            lost += [...said.keys()].filter((signature) => !now.has(signature)).length
            stayed += now.size
          }
          for (const [index, asked] of story.acts.entries()) {
            await addWork(made, asked)
            for (const [signature, before] of prefixes(made.run))
              if (!said.has(signature)) said.set(signature, before)
            await compactNow(made, toCompactAsked(made.run.state, asked))
            check()
            await addWork(made, { ...asked, prompts: 0, pin: null })
            for (const [signature, before] of prefixes(made.run))
              if (!said.has(signature)) said.set(signature, before)
            if (undoes[index] === true) await undoNow(made)
            check()
          }
        },
      ),
      { numRuns: runs },
    )
    const least = (20 / 30) * runs
    expect([lost > least, stayed > least]).toEqual([true, true])
  })
})
