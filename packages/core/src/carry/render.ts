/** Asks one carrier for what it has, within its limit. A carrier that fails is reported and harms no other. */
import { TidemarkError } from '../errors.ts'
import type { Policy } from '../policy/policy.ts'
import type { Measure } from '../retrieve/fit-text.ts'
import { fit, NO_LIMIT } from './allowance.ts'
import {
  type Carried,
  type CarriedKind,
  type Carrier,
  type CarryContext,
  isRendering,
  keyFor,
  type Limit,
  type NotCarried,
  type Offer,
} from './carrier.ts'

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
