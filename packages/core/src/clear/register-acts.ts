/** What earlier clearings left in the view: where the last one stands, and what the provider was told to take out. */
import { CACHE_EDITS_DROPPED, isClearedRemotely, isMicrocompactBoundary } from '../conversation/boundary.ts'
import type { MicrocompactMetadata } from '../conversation/metadata.ts'
import type { SystemRecord } from '../conversation/record.ts'
import { Trie } from '../conversation/trie.ts'
import { countOf } from '../measure/figure.ts'
import { NO_TALLY, type Register, resultOf, sizeOfItem, type Tally } from './register-state.ts'
import type { Deletion } from './registered.ts'

export function registerAct(register: Register, record: SystemRecord): Register {
  if (record.subtype === CACHE_EDITS_DROPPED) return withoutDeletions(register)
  if (!isMicrocompactBoundary(record)) return register
  const { microcompactMetadata: metadata } = record
  const cleared = { ...register, fresh: NO_TALLY }
  return isClearedRemotely(metadata) ? takenOut(cleared, record.uuid, metadata) : cleared
}

function takenOut(register: Register, boundary: string, metadata: MicrocompactMetadata): Register {
  const way = metadata.way === 'native' ? 'native' : 'cached'
  const ids = idsIn(metadata.compactedToolIds).filter((id) => register.remote.get(id) === undefined)
  let { remote } = register
  for (const id of ids) remote = remote.set(id, way)
  const anchorUuid = typeof metadata.anchorUuid === 'string' ? metadata.anchorUuid : null
  const { answeredAt } = register
  const deletions =
    way === 'cached' && anchorUuid !== null && ids.length > 0
      ? [...register.deletions, { boundary, anchorUuid, ids, answeredAt }]
      : register.deletions
  const next = { ...register, remote, deletions, active: less(register.active, sumOf(register, ids)) }
  return way === 'native' ? withNative(next, ids, metadata) : next
}

/** The provider works its edits out anew with every request: what was left out so far must stay left out. */
function withNative(register: Register, ids: readonly string[], metadata: MicrocompactMetadata): Register {
  const last = Math.max(-1, ...ids.map((id) => register.callPlaces.get(id) ?? -1))
  const thoughtless = new Set(idsIn(metadata.clearedThinking))
  const lost = [...register.thinkers].findLastIndex((id) => thoughtless.has(id))
  const { native } = register
  return {
    ...register,
    native: {
      cut: Math.max(last + 1, native?.cut ?? 0),
      tokens: (native?.tokens ?? 0) + countOf(metadata.tokensSaved),
    },
    thoughtless: lost === -1 ? register.thoughtless : lost + 1,
  }
}

/** Their text is in the request again. */
function withoutDeletions(register: Register): Register {
  const ids = register.deletions.flatMap((deletion: Deletion) => deletion.ids)
  const back = sumOf(register, ids)
  let remote = Trie.empty<'cached' | 'native'>()
  for (const [id, way] of register.remote) if (way === 'native') remote = remote.set(id, way)
  const { active, fresh } = register
  return { ...register, remote, deletions: [], active: plus(active, back), fresh: plus(fresh, back) }
}

function sumOf(register: Register, ids: readonly string[]): Tally {
  return ids.reduce((sum, id) => {
    const result = resultOf(register, id)
    const tokens = result?.call.isClearable === true ? sizeOfItem(result) : 0
    return tokens === 0 ? sum : { count: sum.count + 1, tokens: sum.tokens + tokens }
  }, NO_TALLY)
}

function plus(tally: Tally, added: Tally): Tally {
  return { count: tally.count + added.count, tokens: tally.tokens + added.tokens }
}

function less(tally: Tally, taken: Tally): Tally {
  return { count: tally.count - taken.count, tokens: tally.tokens - taken.tokens }
}

/** Other programs may write anything there. */
function idsIn(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.filter((id): id is string => typeof id === 'string') : []
}
