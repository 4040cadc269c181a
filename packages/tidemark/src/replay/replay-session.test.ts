import { describe, expect, it } from 'vitest'
import { LogBuilder } from '../../test/claude-code-log.ts'
import { readRecordedSession } from './recorded-session.ts'
import { createStandInText, type ReplayedAgent, type ReplayPolicy, replaySession } from './replay-session.ts'

const SESSION = readRecordedSession(
  new LogBuilder()
    .prompt('One.')
    .answer(0, { written: 2_000 })
    .prompt('Two.')
    .answer(2_000)
    .records.map(({ record }) => record),
)

/** An agent whose requests have so many tokens, and become smaller by so many if they are refused. */
function createSized(tokens: number, { drops }: { readonly drops: number }): ReplayPolicy {
  let size = tokens
  const agent: ReplayedAgent = {
    appendInput: async () => {},
    buildRequest: async () => ({ messages: [{ role: 'user', content: createStandInText(size) }] }),
    appendReply: async () => {},
    makeRoom: async () => {
      size -= drops
      return drops > 0
    },
    close: async () => {},
  }
  return { name: 'sized', open: async () => agent }
}

describe('a request that is larger than the window', () => {
  it.each([
    [
      'is not made, and costs nothing, under a policy that cannot make room',
      0,
      { calls: 0, refused: 2, cost: 0 },
    ],
    ['is made again, smaller, under one that can', 6_000, { calls: 2, refused: 0 }],
    ['is given up after three attempts', 1_000, { calls: 0, refused: 2 }],
  ])('%s', async (_, drops, totals) => {
    const replayed = await replaySession(SESSION, createSized(20_000, { drops }), { window: 15_000 })
    expect(replayed).toMatchObject(totals)
  })

  it('is made if no window is given', async () => {
    expect(await replaySession(SESSION, createSized(20_000, { drops: 0 }))).toMatchObject({
      calls: 2,
      refused: 0,
    })
  })
})
