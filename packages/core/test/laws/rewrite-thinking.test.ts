import { SessionBuilder } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { blocksOf, flatMessagesOf } from '../../src/index.ts'
import { makeRoom } from '../../src/turn/reduce-context.ts'
import { acted, BOUND, compacted, LENIENT, largeRound, type Roomy, roomy, undone } from '../engine/roomy.ts'
import { goesOn, opened } from './compacting.ts'
import { askedOn, messageBytes, stories, tellerOf } from './stories.ts'

describe('clearings of generated sessions', () => {
  it.each([
    ['', LENIENT],
    [', bound thinking and all', BOUND],
  ])('law 7: undo gives exactly the former request%s', async (_, profile) => {
    let cleared = 0
    await fc.assert(
      fc.asyncProperty(stories(1), async (story) => {
        const builder = tellerOf(story)
        for (let round = 0; round < 7; round += 1) largeRound(builder, 1_500, true)
        const made = await roomy(builder.records, { profile })
        const was = messageBytes(made.run.state)
        await acted(made, makeRoom(made.run, 'prompt'))
        if (messageBytes(made.run.state) === was) return
        cleared += 1
        expect(await undone(made)).toMatchObject({ ok: true, kind: 'clear' })
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
  for (let round = 0; round < 4; round += 1) largeRound(builder, 900, true)
  return builder
}

/** What each thinking block was said behind, and what it stands behind now. */
function prefixes({ state }: Roomy['run']): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  let before = JSON.stringify(state.told.standing?.epoch ?? null)
  for (const { message } of flatMessagesOf(state.flat)) {
    for (const block of blocksOf(message.content)) {
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
        stories(4),
        fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
        async (story, undoes) => {
          const made = await opened(story, BOUND, plainTeller())
          const said = new Map(prefixes(made.run))
          const check = () => {
            const now = prefixes(made.run)
            for (const [signature, before] of now)
              if (said.has(signature)) expect(before).toBe(said.get(signature))
            lost += [...said.keys()].filter((signature) => !now.has(signature)).length
            stayed += now.size
          }
          for (const [index, asked] of story.acts.entries()) {
            await goesOn(made, asked)
            for (const [signature, before] of prefixes(made.run))
              if (!said.has(signature)) said.set(signature, before)
            await compacted(made, askedOn(made.run.state, asked))
            check()
            await goesOn(made, { ...asked, prompts: 0, pin: null })
            for (const [signature, before] of prefixes(made.run))
              if (!said.has(signature)) said.set(signature, before)
            if (undoes[index] === true) await undone(made)
            check()
          }
        },
      ),
      { numRuns: 30 },
    )
    expect([lost > 20, stayed > 20]).toEqual([true, true])
  })
})
