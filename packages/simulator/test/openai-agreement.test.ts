/**
 * The simulated OpenAI APIs accept every request that the codecs make: of generated sessions at every record, and after a
 * switch from another provider. The simulator shares no code with the codecs, so neither hides a mistake of the other.
 */
import { findForeignResponseIds, hideResponseParts } from '@tidemark/core/context/context-entry'
import { emptyContextView, updateContextView } from '@tidemark/core/context/context-view'
import { flattenContext, toApiMessages } from '@tidemark/core/context/flatten-context'
import type { ApiMessage } from '@tidemark/core/context/payload'
import { AppendList } from '@tidemark/core/log/persistent-collections'
import { appendRecord, emptySessionLog } from '@tidemark/core/log/session-log'
import { runStepsAtOnce } from '@tidemark/core/log/work-steps'
import { countPropertyRuns, generateSession } from '@tidemark/core/testing'
import { createSimulator } from '@tidemark/simulator'
import { createChatCodec } from '@tidemark/wire/openai/chat-codec'
import { DIALECTS } from '@tidemark/wire/openai/dialects'
import { responsesCodec } from '@tidemark/wire/openai/responses-codec'
import type { ProviderCodec } from '@tidemark/wire/providers/provider-codec'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

const simulator = createSimulator({ limits: { enforced: false } })
const OWN = ['Read', 'Bash', 'Edit', 'Write', 'TodoWrite'].map((name) => ({
  name,
  input_schema: { type: 'object' },
}))
const tape = fc.array(fc.nat(1_000), { minLength: 30, maxLength: 120 })

/** The messages of each state of a generated session, without what only its first provider can read. */
function listStates(numbers: readonly number[]): readonly (readonly ApiMessage[])[] {
  let session = emptySessionLog()
  let view = emptyContextView()
  return generateSession(numbers, { settled: true }).records.flatMap((record) => {
    session = appendRecord(session, record)
    view = updateContextView(view, session)
    const entries = view.entries.toArray()
    const foreign = findForeignResponseIds(entries, { vendor: 'openai', account: null })
    const messages = toApiMessages(
      flattenContext({ entries: AppendList.of(hideResponseParts(entries, foreign, 'opaque')) }),
    )
    return messages.length === 0 ? [] : [messages]
  })
}

/** Sends a request; returns what is wrong with it or with the answer, as the codec reads it. */
async function post({ baseUrl, paths, decodeBody }: ProviderCodec, text: string): Promise<string | null> {
  const response = await simulator.fetch(`${baseUrl}${paths.reply}`, {
    method: 'POST',
    headers: { authorization: 'Bearer k', 'content-type': 'application/json' },
    body: text,
  })
  const answer = await response.text()
  return response.ok && decodeBody(answer).ok ? null : answer
}

describe.each([
  { codec: responsesCodec, model: 'gpt-5.4' },
  { codec: responsesCodec, model: 'gpt-6-sol' },
  { codec: createChatCodec(DIALECTS.openai), model: 'gpt-4.1' },
])('requests of $codec.name to $model', ({ codec, model }) => {
  it('are accepted for every state of every session', async () => {
    await fc.assert(
      fc.asyncProperty(tape, async (numbers) => {
        for (const messages of listStates(numbers).slice(-6)) {
          const payload = { model, tools: OWN, messages }
          const { text } = runStepsAtOnce(codec.encode({ payload }, {}))
          expect(await post(codec, text), text).toBeNull()
        }
      }),
      { numRuns: countPropertyRuns(200) },
    )
  })
})
