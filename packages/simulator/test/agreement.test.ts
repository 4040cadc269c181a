/**
 * The simulator accepts exactly the requests that the engine's own `validate` accepts. The two are written
 * independently from the same facts, so a disagreement means that one of them is wrong.
 */

import type { Payload } from '@tidemark/core/context/payload'
import { countPropertyRuns } from '@tidemark/core/testing'
import { validateRequest } from '@tidemark/core/validate/validate-request'
import { createSimulator } from '@tidemark/simulator'
import { lookUpModel, modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import { createProviderProfile } from '@tidemark/wire/profiles/provider-profile'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../src/protocol/messages-request.ts'
import { postMessage } from './ask.ts'
import { ChoiceTape, type GeneratedRequest, generateRequest } from './payloads.ts'

const simulator = createSimulator({ binding: { foreignSignatures: 'allow' }, limits: { enforced: false } })

async function refusalOf({ body, betas, version }: GeneratedRequest): Promise<string | null> {
  // No defaults: a field that the body leaves out stays out.
  const told = await postMessage(simulator, { max_tokens: undefined, ...body }, { betas, version })
  return told.status === 200 ? null : told.body.error.message
}

function findingsOf({ body, betas, version }: GeneratedRequest): readonly string[] {
  const found = lookUpModel(modelCatalogue, String(body.model))
  if (!found.found) throw new Error(`no model ${String(body.model)}`)
  const profile = createProviderProfile(found.model, { anthropicVersion: version })
  return validateRequest({ ...body, betas } as unknown as Payload, profile).map(
    ({ code, path }) => `${code} at ${path}`,
  )
}

const look = { name: 'look', input_schema: { type: 'object' } }
const deferred = (count: number): readonly JsonObject[] =>
  Array.from({ length: count }, (_, at) => ({ ...look, name: `tool_${at}`, defer_loading: true }))
const waiting = (name: string): JsonObject => ({
  messages: [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: [{ type: 'server_tool_use', id: 'srvtoolu_1', name, input: {} }] },
  ],
})

/** Rules that generated requests would seldom both keep and break. */
const LIMITS: readonly { readonly what: string; readonly body: JsonObject; readonly isValid: boolean }[] = [
  { what: 'as many deferred tools as may be', body: { tools: [look, ...deferred(10_000)] }, isValid: true },
  { what: 'one deferred tool more', body: { tools: [look, ...deferred(10_001)] }, isValid: false },
  {
    what: 'a search that waits, and is there',
    body: { tools: [{ type: 'web_search_20260318', name: 'web_search' }], ...waiting('web_search') },
    isValid: true,
  },
  {
    what: 'a search that waits, and is gone',
    body: { tools: [look], ...waiting('web_search') },
    isValid: false,
  },
  {
    what: 'code that waits, whose tool has a shorter name',
    body: {
      tools: [{ type: 'code_execution_20250825', name: 'code_execution' }],
      ...waiting('bash_code_execution'),
    },
    isValid: true,
  },
]

/** A search that waits beside a call of the client, and still does after a compaction for which the provider paused. */
const LATE_SEARCH = [
  0, 0, 495, 0, 0, 255, 0, 416, 811, 565, 0, 0, 0, 15, 0, 0, 0, 0, 549, 0, 0, 0, 0, 0, 0, 887, 0, 157, 0, 376,
  0, 262, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
]

/** A message that only sets the effort, before the first message of the user. */
const EFFORT_FIRST = [
  0, 0, 0, 68, 0, 0, 343, 74, 0, 0, 0, 0, 0, 41, 899, 0, 112, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
]

const tape = fc.array(fc.nat(1_000), { minLength: 40, maxLength: 160 })

describe('the simulator and the engine', () => {
  it('agree on which requests are valid', async () => {
    const seen = { accepted: 0, refused: 0 }
    const runs = countPropertyRuns(1_500, 200)
    await fc.assert(
      fc.asyncProperty(tape, async (numbers) => {
        const request = generateRequest(new ChoiceTape(numbers))
        const [refusal, findings] = [await refusalOf(request), findingsOf(request)]
        seen[refusal === null ? 'accepted' : 'refused'] += 1
        expect({ refusal, findings }, JSON.stringify(request)).toEqual(
          refusal === null
            ? { refusal: null, findings: [] }
            : { refusal, findings: expect.arrayContaining([expect.any(String)]) },
        )
      }),
      { numRuns: runs, examples: [[LATE_SEARCH], [EFFORT_FIRST]] },
    )
    // Both valid and invalid requests must have been generated.
    expect(Math.min(seen.accepted, seen.refused)).toBeGreaterThan(runs / 15)
  })

  it.each(LIMITS)('agree on $what', async ({ body, isValid }) => {
    const request: GeneratedRequest = {
      betas: [],
      version: '2026-10-21',
      body: { model: 'claude-opus-5', max_tokens: 100, messages: [{ role: 'user', content: 'a' }], ...body },
    }
    const [refusal, findings] = [await refusalOf(request), findingsOf(request)]
    expect([refusal === null, findings.length === 0], `${refusal} | ${findings}`).toEqual([isValid, isValid])
  })
})
