import { SessionBuilder } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { listTracedMessages } from '../../src/context/flatten.ts'
import { toBlocks } from '../../src/log/block.ts'
import { reduceContext } from '../../src/turn/reduce-context.ts'
import {
  addLargeRound,
  BOUND,
  compactNow,
  LENIENT,
  openTestSession,
  perform,
  type TestSession,
  undoNow,
} from '../engine/test-session.ts'
import {
  addWork,
  buildSession,
  compactionPlans,
  messageBytes,
  openPlanned,
  toCompactAsked,
} from './planned-compactions.ts'

describe('clearings of generated sessions', () => {
  it.each([
    ['', LENIENT],
    [', bound thinking and all', BOUND],
  ])('law 7: undo gives exactly the former request%s', async (_, profile) => {
    let cleared = 0
    await fc.assert(
      fc.asyncProperty(compactionPlans(1), async (story) => {
        const builder = buildSession(story)
        for (let round = 0; round < 7; round += 1) addLargeRound(builder, 1_500, true)
        const policy = { clear: { keptFiles: 0 } }
        const made = await openTestSession(builder.records, { profile, policy })
        const was = messageBytes(made.run.state)
        await perform(made, reduceContext(made.run, 'prompt'))
        if (messageBytes(made.run.state) === was) return
        cleared += 1
        expect(await undoNow(made)).toMatchObject({ ok: true, kind: 'clear' })
        expect(messageBytes(made.run.state)).toBe(was)
      }),
      { numRuns: 15 },
    )
    expect(cleared).toBeGreaterThan(5)
  })
})

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
      { numRuns: 30 },
    )
    expect([lost > 20, stayed > 20]).toEqual([true, true])
  })
})
