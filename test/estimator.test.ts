/**
 * The token estimate on real sessions, each with constants fitted to all the others. Skips where the folder is
 * absent.
 */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { measurePredictionError } from '../scripts/estimator/estimator-error.ts'
import { entryOf, FAMILY, leftOutTurns } from '../scripts/estimator/leave-out.ts'
import { readSessions } from '../scripts/estimator/sessions.ts'

const folder = fileURLToPath(new URL('../../shared/transcripts/', import.meta.url))

const isThere = existsSync(folder)
const note = isThere ? '' : ' (skipped: no recorded sessions here)'

describe.skipIf(!isThere)(`estimates of sessions that the constants have not seen${note}`, () => {
  const sessions = isThere ? readSessions(folder, (model) => entryOf(model)?.tokenizer === FAMILY) : []
  const turns = leftOutTurns(sessions)
  const each = turns.map(measurePredictionError)
  const pooled = measurePredictionError(turns.flat())
  const share = (passes: readonly boolean[]): number => passes.filter(Boolean).length / passes.length

  it('are out by 45 tokens a turn or less, and by 2% in sum', () => {
    expect(pooled.medianAbsError).toBeLessThanOrEqual(45)
    expect(Math.abs(pooled.bias)).toBeLessThanOrEqual(0.02)
  })

  it('hold for most single sessions too', () => {
    expect(share(each.map((error) => error.medianAbsError <= 50))).toBeGreaterThanOrEqual(0.8)
    expect(share(each.map((error) => Math.abs(error.bias) <= 0.05))).toBeGreaterThanOrEqual(0.9)
  })

  it('leave out few turns', () => {
    const calls = sessions.reduce((sum, session) => sum + session.calls.length - 1, 0)
    expect(pooled.turns / calls).toBeGreaterThanOrEqual(0.97)
  })
})
