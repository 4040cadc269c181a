/** The epoch that begins with a compaction: the cache behind the prefix is lost anyway, so what changed moves in. */
import type { Epoch } from '../../conversation/record.ts'
import { turnEpoch } from '../../prompt/epoch.ts'
import { presentNow } from '../prefix-changes.ts'
import type { TurnRun } from '../turn-run.ts'
import { type Keeping, thinkingLost } from './lost-thinking.ts'

/** Null where the prefix stays: nothing changed, thinking that is kept is bound to it, or the host has none to give. */
export async function epochAfter(run: TurnRun, keeping: Keeping): Promise<Epoch | null> {
  const { span } = keeping
  const { standing } = run.state.told
  if (standing === null || span.form === 'from') return null
  const lost = new Set(thinkingLost(keeping, run.host.profile))
  const records = [...span.kept, ...span.pinned]
    .map(({ record }) => record)
    .filter((record) => record.type !== 'assistant' || !lost.has(record.message.id))
  const present = await presentNow({ ...run, state: { ...run.state, texts: new Map() } })
  if ('ok' in present) return null
  const { ttl } = standing.epoch
  const turn = turnEpoch(standing.epoch, ttl === undefined ? present : { ...present, ttl }, {
    records,
    profile: run.host.profile,
  })
  return turn.turns ? turn.epoch : null
}
