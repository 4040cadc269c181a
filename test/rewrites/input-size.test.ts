/** The input of a summariser is sized by what it is shown: what is sent is larger by a few tokens a record at most. */

import type { ContextEntry } from '@tidemark/core/context/context-entry'
import { DEFAULT_POLICY } from '@tidemark/core/policy/create-policy'
import { countPropertyRuns, GeneratorChoices, generateSession } from '@tidemark/core/testing'
import { createDefaultWeights, createEstimator } from '@tidemark/core/tokens/estimator'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  buildDirectSummaryRequest,
  stripSummaryInput,
} from '../../packages/core/src/summary/direct-summary-request.ts'

const estimator = createEstimator(createDefaultWeights(DEFAULT_POLICY.estimate))
const summariser = {
  model: 'model-a',
  profile: defineMessagesProfile({}),
  window: 100_000,
  outputTokens: 1_000,
}
const numbers = fc.array(fc.nat({ max: 0xffff }), { minLength: 20, maxLength: 200, size: 'max' })

/** For the text that names tool and caller where calls are sent as text. */
const MOST_PER_RECORD = 12

function sentTokens(entries: readonly ContextEntry[], asText: boolean): number {
  const { messages } = buildDirectSummaryRequest({
    entries,
    prompt: 'Go.',
    summariser,
    tools: [],
    asText,
  }).payload
  return messages.reduce((sum, { content }) => sum + estimator.content(content), 0)
}

describe('what a summariser is sent', () => {
  it.each([false, true])(
    'is what it was sized by, but for a few tokens a record; calls as text: %s',
    (asText) => {
      fc.assert(
        fc.property(numbers, (choices) => {
          const { builder } = generateSession(new GeneratorChoices(choices))
          const shown = stripSummaryInput(builder.view.entries.toArray(), { asText: false })
          const sized = shown.reduce((sum, entry) => sum + estimator.entry(entry), 0)
          expect(sentTokens(shown, asText) - sized).toBeLessThanOrEqual(MOST_PER_RECORD * (shown.length + 1))
        }),
        { numRuns: countPropertyRuns(100, 12) },
      )
    },
  )
})
