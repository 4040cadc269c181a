/** Where the money of one or more sessions went: parts that add up to the cost, and one sentence about them. */
import { formatWholePercent } from '@tidemark/terminal/render/format-numbers'
import type { PageSessionReport } from 'tidemark/report'

export interface SpendingPart {
  readonly key: 'carried' | 'added' | 'breaks' | 'clearings' | 'output' | 'rest'
  readonly label: string
  /** What the part is, in one or two sentences. */
  readonly about: string
  readonly usd: number
  /** Share of the known cost, from 0 to 1. */
  readonly share: number
}

interface PartKind extends Omit<SpendingPart, 'usd' | 'share'> {
  /** Completes "12% …". */
  readonly verb: string
}

const KINDS: readonly PartKind[] = [
  {
    key: 'carried',
    label: 'Context carried along',
    about: 'Every call sends the whole context again. This is what reading it from the cache cost.',
    verb: 'carried the context from call to call',
  },
  {
    key: 'added',
    label: 'New content',
    about: 'What came into the context: prompts, files, tool results, put into the cache for the first time.',
    verb: 'added new content',
  },
  {
    key: 'breaks',
    label: 'Lost to cache breaks',
    about: 'Content that had been in the cache and was processed again at the full price.',
    verb: 'was lost to cache breaks',
  },
  {
    key: 'clearings',
    label: 'Clearings',
    about: 'Content processed again because something before it was cleared on purpose.',
    verb: 'went to clearings',
  },
  { key: 'output', label: 'Output', about: 'What the model wrote.', verb: 'paid for output' },
  {
    key: 'rest',
    label: 'Other',
    about: 'Fees, and calls that the program made but did not log.',
    verb: 'went to fees and calls that are not in the log',
  },
]

type PricedSession = Pick<PageSessionReport, 'money'>

/** A part is listed from half a cent on, and in a cheap session from this share on: otherwise a bar of cents would have gaps. */
const LISTED_USD = 0.005
const LISTED_SHARE = 0.005

/** Lists the parts, largest first. They add up to the known cost, except for what is too small to be listed. */
export function listSpendingParts(sessions: readonly PricedSession[]): readonly SpendingPart[] {
  const sum = (read: (money: PageSessionReport['money']) => number | null): number =>
    sessions.reduce((total, { money }) => total + (read(money) ?? 0), 0)
  const whole = sum(({ pricedUsd }) => pricedUsd)
  const carried = sum(({ byClass }) => byClass.cacheRead.usd)
  const output = sum(({ byClass }) => byClass.output.usd)
  const breaks = sum(({ lostToBreaks }) => lostToBreaks)
  const clearings = sum(({ spentOnClearings }) => spentOnClearings)
  const written = sum(
    ({ byClass }) => (byClass.input.usd ?? 0) + (byClass.write5m.usd ?? 0) + (byClass.write1h.usd ?? 0),
  )
  const added = Math.max(0, written - breaks - clearings)
  const rest = Math.max(0, whole - carried - output - breaks - clearings - added)
  const amounts = { carried, added, breaks, clearings, output, rest }
  return KINDS.map(({ verb, ...kind }) => ({
    ...kind,
    usd: amounts[kind.key],
    share: whole === 0 ? 0 : amounts[kind.key] / whole,
  }))
    .filter(({ usd, share }) => usd >= LISTED_USD || share >= LISTED_SHARE)
    .toSorted((one, other) => other.usd - one.usd)
}

/** Minimum share at which the sentence names a part. Cache breaks are named at a smaller share. */
const NOTABLE_SHARE = 0.05
const NOTABLE_BREAKS = 0.005

/** Formats where the money went: "45% carried the context from call to call, 30% …". Empty if nothing was paid. */
export function formatSpendingParts(parts: readonly SpendingPart[]): string {
  const told = parts
    .filter(({ key, share }) => share >= (key === 'breaks' ? NOTABLE_BREAKS : NOTABLE_SHARE))
    .map(
      ({ key, share }) =>
        `${formatWholePercent(share)} ${KINDS.find((kind) => kind.key === key)?.verb ?? ''}`,
    )
  const last = told.at(-1) ?? ''
  return told.length < 2 ? last : `${told.slice(0, -1).join(', ')} and ${last}`
}
