/**
 * Which items of a rollout are one response. Codex does not say: it tells what a call took in tokens, today
 * behind the items of the response, until late in 2025 in front of them. So items are held until it is known
 * which call they belong to; what stands among them is held with them and keeps its place.
 */
import type { Draft } from './draft.ts'
import type { CallCount } from './token-counts.ts'

/** Drafts in order; those of the model among them are one response, which took `count` where that is known. */
export interface Response {
  readonly drafts: readonly Draft[]
  readonly count: CallCount | null
}

export interface Responses {
  /** The next item, or whatever else has to keep its place. */
  take(draft: Draft): readonly Response[]
  /** A call is accounted for. `silence` stands for its response if it has none. */
  counted(count: CallCount, silence: Draft): readonly Response[]
  /** Whatever comes belongs to another response. */
  close(): readonly Response[]
  /** Nothing of a response has come since the last count. */
  readonly isResting: boolean
}

interface Holding {
  held: Draft[]
  hasItems: boolean
  /** A count that no items have come for; its silence is the first of those held. */
  open: CallCount | null
  /** Where counts stood last time it could be told. */
  order: 'unknown' | 'in-front' | 'behind'
}

/** `countsAreTold`: does this log tell of tokens? If not, a response ends where tools have answered. */
export function createResponses(countsAreTold: () => boolean): Responses {
  const holding: Holding = { held: [], hasItems: false, open: null, order: 'unknown' }
  return {
    take(draft) {
      const isModels = draft.part.from === 'model'
      const before = isModels && !countsAreTold() && endsWithAnswer(holding.held) ? close(holding) : []
      if (!isModels && holding.held.length === 0) return [...before, { drafts: [draft], count: null }]
      holding.held.push(draft)
      holding.hasItems ||= isModels
      return before
    },
    counted: (count, silence) => counted(holding, count, silence),
    close: () => close(holding),
    get isResting() {
      return !holding.hasItems
    },
  }
}

function counted(holding: Holding, count: CallCount, silence: Draft): readonly Response[] {
  const { open, hasItems, order } = holding
  if (hasItems && (open === null || order === 'behind')) {
    const { held } = emptied(holding)
    holding.order = 'behind'
    return open === null ? [{ drafts: held, count }] : apart(held, open, count)
  }
  const released = close(holding)
  holding.open = count
  holding.held.push(silence)
  return released
}

function close(holding: Holding): readonly Response[] {
  if (holding.held.length === 0) return []
  const { held, hasItems, open, order } = emptied(holding)
  if (open === null || !hasItems) return [{ drafts: held, count: open }]
  if (order === 'behind') return apart(held, open, null)
  holding.order = 'in-front'
  return [{ drafts: held.slice(1), count: open }]
}

/** The count at the front has no items: those held are another response's. */
function apart(held: readonly Draft[], open: CallCount, count: CallCount | null): readonly Response[] {
  return [
    { drafts: held.slice(0, 1), count: open },
    { drafts: held.slice(1), count },
  ]
}

function emptied(holding: Holding): Readonly<Holding> {
  const before = { ...holding }
  Object.assign(holding, { held: [], hasItems: false, open: null })
  return before
}

function endsWithAnswer(held: readonly Draft[]): boolean {
  return held.findLast(({ part }) => part.from === 'model' || part.from === 'tool')?.part.from === 'tool'
}
