/**
 * Which of what comes back may stand in front of the summary: what did not change since the last compaction. There
 * it stays where it was in the request, and a cache that was marked at its end is read again.
 */
import type { Attachment } from '../conversation/record.ts'
import type { Act, View } from '../view/view.ts'
import type { Carried } from './carrier.ts'
import { keyOf, sameRendering } from './shown.ts'

/** What the newest standing compaction brought back, in order. */
export interface FormerCarried {
  /** In front of its summary … */
  readonly front: readonly Attachment[]
  /** … and behind it. */
  readonly behind: readonly Attachment[]
}

export interface Arrangement {
  /** Between boundary and summary, in this order … */
  readonly front: readonly Carried[]
  /** … of which the first so many stand exactly where they stood before. */
  readonly cached: number
  /** Behind the summary and the messages kept. */
  readonly behind: readonly Carried[]
}

export function formerCarried({ acts, entries }: View): FormerCarried {
  const act = acts.findLast(({ kind }) => kind === 'compact')
  if (act === undefined || act.batch === null) return { front: [], behind: [] }
  const records = [...entries].map(({ record }) => record)
  const summary = records.findIndex(({ uuid }) => uuid === act.summary)
  const own = (from: number, to?: number): readonly Attachment[] =>
    records
      .slice(from, to)
      .flatMap((record) => (record.type === 'attachment' && isOf(act, record) ? [record.attachment] : []))
  return { front: own(0, summary), behind: own(summary + 1) }
}

function isOf({ batch }: Act, record: { readonly batch?: { readonly id: string } }): boolean {
  return record.batch?.id === batch
}

/** What stood in front keeps its order; what proves steady joins at the end of it. */
export function arrange(carried: readonly Carried[], former: FormerCarried): Arrangement {
  const stayed = former.front.map((attachment) => carried.find((one) => isSame(one, attachment)))
  const before = stayed.filter((one) => one !== undefined)
  const joining = carried.filter(
    (one) => !before.includes(one) && former.behind.some((attachment) => isSame(one, attachment)),
  )
  const front = [...before, ...joining]
  const changed = stayed.indexOf(undefined)
  const cached = changed === -1 ? stayed.length : changed
  return { front, cached, behind: carried.filter((one) => !front.includes(one)) }
}

function isSame({ key, attachment }: Carried, other: Attachment): boolean {
  return keyOf(other) === key && sameRendering(other, attachment)
}
