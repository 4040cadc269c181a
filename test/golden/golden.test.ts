/**
 * Observable behaviour, pinned: every request body, every record appended and what the commands print, for 40
 * generated sessions with the Messages API, one with each other codec, and 6 sample logs. After a change of behaviour that is meant: `npm run golden`, and read the
 * difference. `GOLDEN_DUMP=folder` writes the full texts, so that two runs can be compared.
 */
import { describe, expect, it } from 'vitest'
import golden from './golden.json' with { type: 'json' }
import { differences, observeAll } from './observe.ts'

describe('golden sessions', () => {
  it('send, log and report exactly what they did before', async () => {
    expect(differences(golden, await observeAll(process.env.GOLDEN_DUMP))).toEqual([])
  })
})
