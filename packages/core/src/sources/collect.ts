/**
 * What comes back after a compaction: every carrier's present state, within its budget, in one order, one copy each.
 * What the kept messages show as it is now is left out; what they show otherwise is named, so that it is not kept.
 */

import type { Act, View } from '../context/context-view.ts'
import { TidemarkError } from '../errors.ts'
import type { Attachment } from '../log/record.ts'
import type { Policy, TargetPolicy } from '../policy/policy.ts'
import type { Measure } from '../summary/truncate-text.ts'
import {
  CARRIED_KINDS,
  type Carried,
  type CarriedKind,
  type Carrier,
  type CarryContext,
  type CarryOutcome,
  type CompactionQuestion,
  carrierOf,
  fit,
  isRendering,
  keyFor,
  keyOf,
  type Limit,
  NO_LIMIT,
  type NotCarried,
  type Offer,
  type Shown,
  type ShownAttachment,
  sameRendering,
  shownIn,
} from './context-source.ts'

export async function carry(
  carriers: readonly Carrier[],
  question: CompactionQuestion,
): Promise<CarryOutcome> {
  const shown = shownIn(question.kept)
  const rendered = await renderAll(carriers, { ...question, shown, moment: 'compaction' })
  const sorted = rendered.map((one) => sort(one, shown))
  return {
    carried: inOrder(sorted.flatMap(({ carried }) => carried)),
    alreadyShown: sorted.flatMap(({ alreadyShown }) => alreadyShown),
    superseded: sorted.flatMap(({ superseded }) => superseded),
    skipped: rendered.flatMap(({ skipped }) => skipped),
    failed: failuresOf(rendered),
  }
}

export function failuresOf(rendered: readonly Rendered[]): CarryOutcome['failed'] {
  return rendered.flatMap(({ carrier, failed }) =>
    failed === null ? [] : [{ carrier: carrier.name, why: failed }],
  )
}

/** By kind, then as the carriers stand, then as they rendered: the same for the same state. */
export function inOrder(carried: readonly Carried[]): readonly Carried[] {
  return CARRIED_KINDS.flatMap((kind) => carried.filter((one) => one.kind === kind))
}

type Sorted = Pick<CarryOutcome, 'carried' | 'alreadyShown' | 'superseded'>

function sort(one: Rendered, shown: Shown): Sorted {
  const carried: Carried[] = []
  const alreadyShown: NotCarried[] = []
  const superseded: string[] = endedIn(one, shown).flatMap(([, attachments]) =>
    attachments.map(({ uuid }) => uuid),
  )
  for (const { isDelta, ...rendering } of one.renderings) {
    const before = isDelta ? [] : (shown.byKey.get(rendering.key) ?? [])
    const last = before.at(-1)
    const isSame = last !== undefined && sameRendering(last.attachment, rendering.attachment)
    if (isSame)
      alreadyShown.push({ carrier: one.carrier.name, key: rendering.key, why: `is shown by ${last.uuid}` })
    else carried.push(rendering)
    superseded.push(...before.slice(0, isSame ? -1 : undefined).map(({ uuid }) => uuid))
  }
  return { carried, alreadyShown, superseded }
}

/** What is shown of a carrier that renders all there is, and did not render this. Nothing ends because of a failure. */
export function endedIn(
  { carrier, renderings, skipped, failed }: Rendered,
  { byKey }: Shown,
): readonly (readonly [string, readonly ShownAttachment[]])[] {
  if (!carrier.isWhole || failed !== null) return []
  const present = new Set([...renderings, ...skipped].map(({ key }) => key))
  return [...byKey].filter(([key]) => carrierOf(key) === carrier.name && !present.has(key))
}

// Asks one carrier for what it has, within its limit. A carrier that fails is reported and harms no other.

export interface Rendered {
  readonly carrier: Carrier
  readonly renderings: readonly (Carried & { readonly isDelta: boolean })[]
  readonly skipped: readonly NotCarried[]
  readonly failed: string | null
}

/** Side by side; the answer is in the order of the carriers. */
export function renderAll(carriers: readonly Carrier[], context: CarryContext): Promise<readonly Rendered[]> {
  checkNames(carriers)
  const on = carriers.filter(({ kind }) => isOn(kind, context.policy))
  return Promise.all(on.map((carrier) => renderOne(carrier, context)))
}

function checkNames(carriers: readonly Carrier[]): void {
  const names = carriers.map(({ name }) => name)
  const wrong = names.find(
    (name, index) => name === '' || name.includes(':') || names.indexOf(name) !== index,
  )
  if (wrong === undefined) return
  const expected = 'each carrier needs a name of its own, without a colon'
  throw new TidemarkError('bad-option', `A carrier is named "${wrong}": ${expected}.`, {
    details: { name: wrong },
  })
}

function isOn(kind: CarriedKind, { rehydrate }: Policy): boolean {
  const switches: Partial<Record<CarriedKind, boolean>> = {
    todos: rehydrate.todos,
    plan: rehydrate.plan,
    'plan-mode': rehydrate.planMode,
    agents: rehydrate.agents,
    deltas: rehydrate.deltas,
  }
  return switches[kind] ?? true
}

async function renderOne(carrier: Carrier, context: CarryContext): Promise<Rendered> {
  const tray: Tray = { carrier, renderings: [], skipped: [] }
  try {
    const limit = carrier.limit(context) ?? NO_LIMIT
    if (limit.count > 0) await fill(tray, limit, context)
    return { ...tray, failed: null }
  } catch (thrown) {
    return { ...tray, failed: thrown instanceof Error ? thrown.message : String(thrown) }
  }
}

interface Tray {
  readonly carrier: Carrier
  readonly renderings: Rendered['renderings'][number][]
  readonly skipped: NotCarried[]
}

async function fill(tray: Tray, limit: Limit, context: CarryContext): Promise<void> {
  let total = limit.total
  for await (const offer of tray.carrier.render(context)) {
    const placed = place(tray, offer, { limit: { ...limit, total }, measure: context.measure })
    total -= placed?.tokens ?? 0
    if (tray.renderings.length >= limit.count) return
  }
}

interface Room {
  readonly limit: Limit
  readonly measure: Measure
}

function place(tray: Tray, offer: Offer, { limit, measure }: Room): Carried | null {
  const { carrier } = tray
  const key = keyFor(carrier.name, offer.id)
  const isTwice = tray.renderings.some((rendering) => rendering.key === key)
  const skip = (why: string): null => {
    tray.skipped.push({ carrier: carrier.name, key, why })
    return null
  }
  if (!isRendering(offer)) return skip(offer.why)
  if (isTwice) return skip('was rendered twice')
  const fitted = fit({ ...offer, attachment: { ...offer.attachment, key } }, limit, measure)
  if (typeof fitted === 'string') return skip(fitted)
  const { source, sheddable = null, isDelta = false } = offer
  const { attachment } = fitted
  const carried = { carrier: carrier.name, kind: carrier.kind, key, attachment, source, sheddable, isDelta }
  tray.renderings.push({ ...carried, tokens: fitted.tokens })
  return { ...carried, tokens: fitted.tokens }
}

// What goes when a compacted view is above its target, and in which order. Most things never do.

export interface Shedding {
  readonly kept: readonly Carried[]
  readonly shed: readonly Carried[]
  readonly freedTokens: number
  /** Tokens that nothing left to shed can free. */
  readonly stillOver: number
}

/** As little as frees `overBy` tokens, by the policy's order; of a kind the oldest first. */
export function shed(carried: readonly Carried[], overBy: number, policy: TargetPolicy): Shedding {
  const gone = new Set<Carried>()
  let freedTokens = 0
  for (const next of policy.shed.flatMap((kind) => sheddable(carried, kind, policy))) {
    if (freedTokens >= overBy) break
    gone.add(next)
    freedTokens += next.tokens
  }
  return {
    kept: carried.filter((one) => !gone.has(one)),
    shed: [...gone],
    freedTokens,
    stillOver: Math.max(0, overBy - freedTokens),
  }
}

/** Carriers render newest first. */
function sheddable(
  carried: readonly Carried[],
  kind: TargetPolicy['shed'][number],
  { keptSkills }: TargetPolicy,
): readonly Carried[] {
  const ofKind = carried.filter((one) => one.sheddable === kind)
  return ofKind.slice(kind === 'skills' ? keptSkills : 0).reverse()
}

// Which of what comes back may stand in front of the summary: what did not change since the last compaction. There
// it stays where it was in the request, and a cache that was marked at its end is read again.

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
