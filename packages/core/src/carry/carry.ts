/**
 * What comes back after a compaction: every carrier's present state, within its budget, in one order, one copy each.
 * What the kept messages show as it is now is left out; what they show otherwise is named, so that it is not kept.
 */
import {
  CARRIED_KINDS,
  type Carried,
  type Carrier,
  type CarryOutcome,
  type CompactionQuestion,
  type NotCarried,
} from './carrier.ts'
import { type Rendered, renderAll } from './render.ts'
import { carrierOf, type Shown, type ShownAttachment, sameRendering, shownIn } from './shown.ts'

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
