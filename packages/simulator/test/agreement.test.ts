/**
 * The simulator accepts exactly what the engine's own `validate` has nothing against. The two are written
 * apart, from the same facts; where they disagree, one of them has the facts wrong.
 */
import { type Payload, validate } from '@tidemark/core'
import { createSimulator } from '@tidemark/simulator'
import { lookUpModel, modelCatalogue, profileFor } from '@tidemark/wire'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ask } from './ask.ts'
import { type MadeUp, madeUp, Tape } from './payloads.ts'

const simulator = createSimulator({ binding: { foreignSignatures: 'allow' }, limits: { enforced: false } })

async function refusalOf({ body, betas, version }: MadeUp): Promise<string | null> {
  const told = await ask(simulator, body, { betas, version })
  return told.status === 200 ? null : told.body.error.message
}

function findingsOf({ body, betas, version }: MadeUp): readonly string[] {
  const found = lookUpModel(modelCatalogue, String(body.model))
  if (!found.found) throw new Error(`no model ${String(body.model)}`)
  const profile = profileFor(found.model, { anthropicVersion: version })
  return validate({ ...body, betas } as unknown as Payload, profile).map(
    ({ code, path }) => `${code} at ${path}`,
  )
}

const tape = fc.array(fc.nat(1_000), { minLength: 40, maxLength: 160 })

describe('the simulator and the engine', () => {
  it('agree on what is a valid request', async () => {
    const seen = { accepted: 0, refused: 0 }
    await fc.assert(
      fc.asyncProperty(tape, async (numbers) => {
        const request = madeUp(new Tape(numbers))
        const [refusal, findings] = [await refusalOf(request), findingsOf(request)]
        seen[refusal === null ? 'accepted' : 'refused'] += 1
        expect({ refusal, findings }, JSON.stringify(request)).toEqual(
          refusal === null
            ? { refusal: null, findings: [] }
            : { refusal, findings: expect.arrayContaining([expect.any(String)]) },
        )
      }),
      { numRuns: 1_500 },
    )
    // Neither side may be the only one that is ever tried.
    expect(Math.min(seen.accepted, seen.refused)).toBeGreaterThan(100)
  })
})
