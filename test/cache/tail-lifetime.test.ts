/** A session of a user writes its newest messages for five minutes and the rest for an hour, and is billed so. */
import { createManualClock } from '@tidemark/simulator'
import type { EventOf } from 'tidemark'
import { expect, it } from 'vitest'
import { createTestTidemark } from '../support/test-tidemark.ts'

const SYSTEM = 'You write careful code and check it. '.repeat(400)
const MINUTE = 60_000

/** Two turns with a pause between them; the usage of the first call and of the first one after the pause. */
async function talk(pauseMs: number, tailTtl: 'auto' | 'same') {
  const clock = createManualClock(Date.UTC(2026, 10, 1))
  const { tide, tools } = createTestTidemark({
    clock,
    system: SYSTEM,
    interactive: true,
    policy: { cache: { tailTtl } },
  })
  const session = await tide.open('lifetimes')
  const usages: (EventOf<'answered'>['usage'] & object)[] = []
  session.on('answered', ({ usage }) => void (usage === null ? 0 : usages.push(usage)))
  await session.run('Fix the first test.', tools).outcome
  const calls = usages.length
  await clock.advance(pauseMs)
  await session.run('Now the second.', tools).outcome
  await tide.close()
  return { first: usages[0], last: usages[calls - 1], next: usages[calls] }
}

interface WrittenTokens {
  readonly ephemeral_5m_input_tokens: number
  readonly ephemeral_1h_input_tokens: number
}

const split = (usage: object | undefined) =>
  (usage as { readonly cache_creation: WrittenTokens }).cache_creation

it('the system prompt is written for an hour, the messages for five minutes', async () => {
  const { first, last } = await talk(MINUTE, 'auto')
  expect(split(first).ephemeral_1h_input_tokens).toBeGreaterThan(2_000)
  expect(split(last)).toMatchObject({ ephemeral_1h_input_tokens: 0 })
  expect(split(last).ephemeral_5m_input_tokens).toBeGreaterThan(100)
})

it.each([
  ['after four minutes all is read', 4, 'auto', 1],
  ['after six minutes the newest messages are written again, the system prompt is not', 6, 'auto', 0.5],
  ['with one lifetime all is read', 6, 'same', 1],
] as const)('%s', async (_, minutes, tailTtl, share) => {
  const { first, last, next } = await talk(minutes * MINUTE, tailTtl)
  const left = Number(last?.cache_read_input_tokens) + Number(last?.cache_creation_input_tokens)
  const read = Number(next?.cache_read_input_tokens)
  if (share === 1) expect(read).toBe(left)
  else {
    expect(read).toBeGreaterThanOrEqual(split(first).ephemeral_1h_input_tokens)
    expect(read).toBeLessThan(left)
  }
})
