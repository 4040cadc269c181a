import { countPropertyRuns } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { emptyContextView, updateContextView } from '../../src/context/context-view.ts'
import { isKnownRecord, type SessionRecord } from '../../src/log/record.ts'
import { appendRecord, emptySessionLog } from '../../src/log/session-log.ts'
import type { Policy } from '../../src/policy/policy.ts'
import {
  createContextMeter,
  measureContextTokens,
  measureGrowthPerCall,
  updateContextMeter,
} from '../../src/tokens/context-meter.ts'
import { calibrateSize, startCalibration } from '../../src/tokens/usage.ts'
import { ESTIMATOR, POLICY } from '../clear/situation.ts'
import { contextTokens } from './context-tokens.ts'
import { generatedSessions } from './generated-sessions.ts'

const { estimate }: Policy = POLICY
const CALIBRATION = startCalibration({ scale: 1.2, offset: 5, weight: 2_000 })
const PREFIX = 1_000

/** Usage on most responses, as providers and logs have it: on some records, at times from the start of a stream. */
function withUsage(record: SessionRecord, index: number, seed: number): SessionRecord {
  if (!isKnownRecord(record) || record.type !== 'assistant') return record
  const kind = (index * 7 + seed) % 5
  if (kind === 0) return record
  const usage = {
    input: kind === 1 ? 0 : 100 * index,
    read: kind === 2 ? 5_000 : null,
    output: (seed % 3) * 40,
  }
  return { ...record, message: { ...record.message, usage } }
}

describe('the meter', () => {
  it('law 11: read after every record, it says what counting anew says', () => {
    fc.assert(
      fc.property(
        generatedSessions(),
        fc.nat({ max: 99 }),
        fc.boolean(),
        ({ records }, seed, stripsThinking) => {
          let [session, view] = [emptySessionLog(), emptyContextView()]
          let meter = createContextMeter(ESTIMATOR)
          for (const [index, record] of records.entries()) {
            session = appendRecord(session, withUsage(record, index + 1, seed))
            view = updateContextView(view, session)
            meter = updateContextMeter(meter, view)
            const shared = {
              calibration: CALIBRATION,
              policy: estimate,
              stripsThinking,
              prefix: () => PREFIX,
            }
            const deleted = seed % 2 === 0 ? [] : [{ type: 'text', text: 'deleted since' }]
            const tokens = deleted.reduce((sum, block) => sum + ESTIMATOR.block(block), 0)
            expect(measureContextTokens(meter, { ...shared, deleted: tokens })).toEqual(
              contextTokens({ ...shared, view, estimator: ESTIMATOR, deleted }),
            )
          }
        },
      ),
      { numRuns: countPropertyRuns(80, 12) },
    )
  })

  it('law 11: right after a rewrite it is the estimate of the next request, and nothing measured before counts', () => {
    fc.assert(
      fc.property(generatedSessions(), ({ builder }) => {
        builder.notice('microcompact_boundary', {
          microcompactMetadata: {
            trigger: 'auto',
            preTokens: 9,
            tokensSaved: 9,
            compactedToolIds: [],
            clearedAttachmentUUIDs: [],
          },
        })
        const meter = updateContextMeter(createContextMeter(ESTIMATOR), builder.view)
        const tokens = builder.view.entries
          .toArray()
          .reduce((sum, entry) => sum + ESTIMATOR.entry(entry), PREFIX)
        const reading = {
          calibration: CALIBRATION,
          policy: estimate,
          stripsThinking: false,
          prefix: () => PREFIX,
          deleted: 0,
        }
        expect(measureContextTokens(meter, reading)).toEqual({
          ...calibrateSize(CALIBRATION, tokens, estimate),
          source: 'estimated',
        })
        expect(measureGrowthPerCall(meter)).toBeNull()
      }),
      { numRuns: countPropertyRuns(40, 8) },
    )
  })
})
