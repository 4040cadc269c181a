/** The gaps of a session that is opened again, read off its log: each response tells when it was asked for and how large. */
import { isKnown, type KnownRecord, SYNTHETIC_MODEL } from '../conversation/record.ts'
import type { Session } from '../conversation/session.ts'
import { recordAt } from '../conversation/tree.ts'
import { contextOf } from '../measure/usage-figures.ts'
import type { CacheRules } from '../policy/profile.ts'
import { type GapTally, NO_GAPS, tallyGap } from './gaps.ts'

interface Walk {
  readonly tally: GapTally
  /** When the newest record came that is no response: a request starts no earlier. */
  readonly saidAt: number
  readonly response: string | null
  /** When the call before started, and what it left. */
  readonly askedAt: number | null
  readonly prefix: number
}

export function recallGaps(session: Session, cache: CacheRules): GapTally {
  let walk: Walk = { tally: NO_GAPS, saidAt: Number.NaN, response: null, askedAt: null, prefix: 0 }
  for (const index of session.branch) {
    const record = recordAt(session, index)
    if (isKnown(record)) walk = step(walk, record, cache)
  }
  return walk.tally
}

function step(walk: Walk, record: KnownRecord, cache: CacheRules): Walk {
  if (record.type !== 'assistant') return { ...walk, saidAt: Date.parse(record.timestamp) }
  const { id, model, usage } = record.message
  const prompt = contextOf(usage)
  if (id === walk.response || model === SYNTHETIC_MODEL || prompt === 0 || Number.isNaN(walk.saidAt))
    return walk
  const { askedAt, saidAt, prefix } = walk
  const gapMs = askedAt === null ? null : saidAt - askedAt
  const tally = tallyGap(walk.tally, { gapMs, prefix, added: Math.max(0, prompt - prefix) }, cache)
  return { ...walk, tally, response: id, askedAt: saidAt, prefix: prompt }
}
