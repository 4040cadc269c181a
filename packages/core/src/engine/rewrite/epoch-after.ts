/** The epoch that begins with a compaction: the cache behind the prefix is lost anyway, so what changed moves in. */
import type { Epoch } from '../../conversation/record.ts'
import { turnEpoch } from '../../prompt/epoch.ts'
import { presentNow } from '../prefix-changes.ts'
import type { TurnRun } from '../turn-run.ts'
import type { CompactionPlan } from './compaction-plan.ts'

/** Null where the prefix stays: nothing changed, or thinking that is kept is bound to it. */
export async function epochAfter(run: TurnRun, { span }: CompactionPlan): Promise<Epoch | null> {
  const { standing } = run.state.told
  if (standing === null || span.form === 'from') return null
  const records = [...span.kept, ...span.pinned].map(({ record }) => record)
  const present = await presentNow({ ...run, state: { ...run.state, texts: new Map() } })
  const { ttl } = standing.epoch
  const turn = turnEpoch(standing.epoch, ttl === undefined ? present : { ...present, ttl }, {
    records,
    profile: run.host.profile,
  })
  return turn.turns ? turn.epoch : null
}
