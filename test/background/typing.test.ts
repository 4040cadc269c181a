/** Whatever the user types, at whatever moment of a preparation and a swap, appears once and in order. */
import { countPropertyRuns } from '@tidemark/core/testing'
import fc from 'fast-check'
import { user } from 'tidemark'
import { expect, it } from 'vitest'
import { openLongSession } from './long-session.ts'

const SUMMARY_MS = 20_000

/** Moments after the start of a summary: around its end, when it is swapped in, most of all. */
const moments = fc.array(
  fc.oneof(
    fc.integer({ min: 0, max: 60_000 }),
    fc.integer({ min: SUMMARY_MS - 3, max: SUMMARY_MS + 3 }),
    fc.constantFrom(0, 8_000, 16_000, 24_000, 32_000),
  ),
  { minLength: 1, maxLength: 12 },
)

it('a message typed while a summary is prepared or swapped in appears once and in order', async () => {
  await fc.assert(
    fc.asyncProperty(moments, fc.integer({ min: 1, max: 8 }), async (offsets, turns) => {
      const typed: string[] = []
      const typing: Promise<unknown>[] = []
      const long = await openLongSession({
        turns,
        summaryMs: SUMMARY_MS,
        window: 16_000,
        resultTokens: 500,
        onSummaryAsked() {
          for (const ms of offsets)
            typing.push(
              long.clock.sleep(ms).then(() => {
                const text = `Remark number ${typed.length + 1}.`
                typed.push(text)
                return long.session.append(user(text))
              }),
            )
        },
      })
      await long.workUntil('compact')
      await long.pass(Promise.all(typing))
      await long.work()
      const records = (long.store.get('long')?.lines ?? []).map((line) => JSON.parse(line))
      const logged = records.flatMap(({ type, message }) =>
        type === 'user' && String(message?.content).startsWith('Remark number') ? [message.content] : [],
      )
      expect(logged).toEqual(typed)
      // What a summary does not have stands in the conversation, once and in order.
      const [summary = '', ...others] = long.session
        .messages()
        .filter(({ role }) => role === 'user')
        .map((message) => JSON.stringify(message))
      const shown = [...others.join('\n').matchAll(/Remark number \d+\./g)].map(([text]) => text)
      expect(shown).toEqual(typed.filter((text) => shown.includes(text)))
      expect(typed.filter((text) => !shown.includes(text) && !summary.includes(text))).toEqual([])
      expect(long.list('compact-failed')).toEqual([])
    }),
    { numRuns: countPropertyRuns(12, 3) },
  )
})
