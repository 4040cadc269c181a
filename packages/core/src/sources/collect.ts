/**
 * Collects what is attached after a compaction: the current state of every context source, within its budget, in a
 * fixed order, one copy each. State that kept messages already show is left out; outdated attachments are reported.
 */

import type { View } from '../context/context-view.ts'
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
  const sorted = rendered.map((one) => compareWithShown(one, shown))
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

/** By kind, then in the order of the sources and of their items: the same state gives the same order. */
export function inOrder(carried: readonly Carried[]): readonly Carried[] {
  return CARRIED_KINDS.flatMap((kind) => carried.filter((one) => one.kind === kind))
}

function compareWithShown(
  one: Rendered,
  shown: Shown,
): Pick<CarryOutcome, 'carried' | 'alreadyShown' | 'superseded'> {
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

/** Shown items that a source which renders all its items no longer has. A source that failed ends nothing. */
export function endedIn(
  { carrier, renderings, skipped, failed }: Rendered,
  { byKey }: Shown,
): readonly (readonly [string, readonly ShownAttachment[]])[] {
  if (!carrier.isWhole || failed !== null) return []
  const present = new Set([...renderings, ...skipped].map(({ key }) => key))
  return [...byKey].filter(([key]) => carrierOf(key) === carrier.name && !present.has(key))
}

// Rendering the sources within their limits. A source that fails is reported and does not affect the others.

export interface Rendered {
  readonly carrier: Carrier
  readonly renderings: readonly (Carried & { readonly isDelta: boolean })[]
  readonly skipped: readonly NotCarried[]
  readonly failed: string | null
}

/** Concurrently; the results are in the order of the sources. */
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
  throw new TidemarkError(
    'bad-option',
    `A context source is named "${wrong}": each needs a unique name without a colon.`,
    { details: { name: wrong } },
  )
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
  const renderings: Rendered['renderings'][number][] = []
  const skipped: NotCarried[] = []
  try {
    const limit = carrier.limit(context) ?? NO_LIMIT
    let { total } = limit
    if (limit.count <= 0) return { carrier, renderings, skipped, failed: null }
    for await (const offer of carrier.render(context)) {
      const key = keyFor(carrier.name, offer.id)
      const isTwice = isRendering(offer) && renderings.some((rendering) => rendering.key === key)
      const limits = { ...limit, total }
      const placed = isTwice ? 'was rendered twice' : fitOffer(carrier, offer, limits, context.measure)
      if (typeof placed === 'string') {
        skipped.push({ carrier: carrier.name, key, why: placed })
      } else {
        renderings.push(placed)
        total -= placed.tokens
        if (renderings.length >= limit.count) break
      }
    }
    return { carrier, renderings, skipped, failed: null }
  } catch (thrown) {
    const failed = thrown instanceof Error ? thrown.message : String(thrown)
    return { carrier, renderings, skipped, failed }
  }
}

/** The item as it fits, or the reason why it is not attached. */
function fitOffer(
  { name, kind }: Carrier,
  offer: Offer,
  limit: Limit,
  measure: Measure,
): Rendered['renderings'][number] | string {
  if (!isRendering(offer)) return offer.why
  const key = keyFor(name, offer.id)
  const fitted = fit({ ...offer, attachment: { ...offer.attachment, key } }, limit, measure)
  if (typeof fitted === 'string') return fitted
  const { source, sheddable = null, isDelta = false } = offer
  const { attachment, tokens } = fitted
  return { carrier: name, kind, key, attachment, source, sheddable, isDelta, tokens }
}

// What is dropped when the compacted context is above its target, and in which order. Most items never are.

export interface Shedding {
  readonly kept: readonly Carried[]
  readonly shed: readonly Carried[]
  readonly freedTokens: number
  /** Tokens that cannot be freed by dropping. */
  readonly stillOver: number
}

/** Drops no more than needed to free `overBy` tokens, in the policy's order; of one kind the oldest first. */
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

/** Oldest first: sources render newest first. */
function sheddable(
  carried: readonly Carried[],
  kind: TargetPolicy['shed'][number],
  { keptSkills }: TargetPolicy,
): readonly Carried[] {
  const ofKind = carried.filter((one) => one.sheddable === kind)
  return ofKind.slice(kind === 'skills' ? keptSkills : 0).reverse()
}

// Attachments that did not change since the last compaction go in front of the summary: there they keep their place
// in the request, and a cache entry that ends behind them is read again.

/** What the last compaction attached, in order. */
export interface FormerCarried {
  /** In front of its summary. */
  readonly front: readonly Attachment[]
  /** Behind its summary. */
  readonly behind: readonly Attachment[]
}

export interface Arrangement {
  /** Between boundary and summary, in this order. */
  readonly front: readonly Carried[]
  /** How many of `front` are exactly where they were before. */
  readonly cached: number
  /** Behind the summary and the kept messages. */
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
      .flatMap((record) =>
        record.type === 'attachment' && record.batch?.id === act.batch ? [record.attachment] : [],
      )
  return { front: own(0, summary), behind: own(summary + 1) }
}

/** What was in front keeps its order; what did not change since joins at its end. */
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
