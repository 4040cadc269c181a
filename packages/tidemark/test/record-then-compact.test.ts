/** A client may ask for a compaction with a request that also brings its last results: both are one step. */
import { anthropicCodec } from '@tidemark/wire/anthropic/codec'
import { anthropic, createTidemark } from 'tidemark'
import { expect, it } from 'vitest'
import { recordThenCompact } from '../src/dropin/take-request.ts'
import { findOpenSession } from '../src/library/session.ts'

const MODEL = 'claude-sonnet-5-5'

/** A list of so many tool rounds, whose last message has the newest result. */
function listMessages(rounds: number): readonly object[] {
  return [
    { role: 'user', content: 'Find the fault in the sums.' },
    ...Array.from({ length: rounds }, (_, index) => [
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: `toolu_${index}`, name: 'Query', input: { number: index } }],
      },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: `toolu_${index}`, content: `${index} `.repeat(2_000) }],
      },
    ]).flat(),
  ]
}

async function openWorld() {
  const fetch = () => Promise.reject(new Error('No call to the model is expected.'))
  const tide = createTidemark({ memory: true, model: anthropic(MODEL, { apiKey: 'any', fetch }) })
  const session = await tide.open('asked')
  const open = findOpenSession(session)
  if (open === null) throw new Error('The session is not open.')
  const ask = (rounds: number) => {
    const tools = [{ name: 'Query', input_schema: { type: 'object' } }]
    const body = JSON.parse(
      JSON.stringify({
        model: MODEL,
        max_tokens: 1_000,
        system: 'You are a coder.',
        tools,
        messages: listMessages(rounds),
      }),
    )
    const request = anthropicCodec.client.readRequest({ body, headers: new Headers() })
    if (request === null) throw new Error('The request cannot be read.')
    return { body, compact: () => recordThenCompact(open, request) }
  }
  return { tide, session, ask }
}

it('records what the request brings, then compacts the log', async () => {
  const { tide, session, ask } = await openWorld()
  await session.take(ask(6).body)
  const outcome = await ask(9).compact()
  expect(outcome.ok).toBe(true)
  const history = await session.export({ as: 'messages' })
  expect(history).toContain('toolu_8')
  const next = await session.take(ask(9).body)
  expect(next.ok && next.text.length).toBeLessThan(JSON.stringify(ask(9).body).length / 2)
  await tide.close()
})

it('requests that come at once are handled one after the other', async () => {
  const { tide, session, ask } = await openWorld()
  const [taken, outcome] = await Promise.all([session.take(ask(6).body), ask(7).compact()])
  expect([taken.ok, outcome.ok]).toEqual([true, true])
  await tide.close()
})
