/**
 * Between compactions: what changed about the carriers since the view last showed it, to be appended. What did not
 * change adds nothing, so that a turn in which nothing happened costs nothing.
 */
import type { Attachment } from '../conversation/record.ts'
import { textOfAttachment } from '../view/attachment-text.ts'
import type { Carried, Carrier, CarryContext, CarryOutcome, ChangeQuestion } from './carrier.ts'
import { endedIn, failuresOf, inOrder } from './carry.ts'
import { type Rendered, renderAll } from './render.ts'
import { type ShownAttachment, sameRendering } from './shown.ts'

export type CarriedChanges = Pick<CarryOutcome, 'carried' | 'skipped' | 'failed'>

export async function carryChanges(
  carriers: readonly Carrier[],
  question: ChangeQuestion,
): Promise<CarriedChanges> {
  const context: CarryContext = { ...question, kept: question.shown.entries, moment: 'change' }
  const asked = carriers.filter(({ tellsChanges }) => tellsChanges)
  const rendered = await renderAll(asked, context)
  return {
    carried: inOrder(rendered.flatMap((one) => [...changed(one, context), ...ended(one, context)])),
    skipped: rendered.flatMap(({ skipped }) => skipped),
    failed: failuresOf(rendered),
  }
}

function changed({ renderings }: Rendered, { shown, measure }: CarryContext): readonly Carried[] {
  return renderings.flatMap(({ isDelta, ...rendering }) => {
    const last = isDelta ? undefined : shown.byKey.get(rendering.key)?.at(-1)
    if (last === undefined) return [rendering]
    if (sameRendering(last.attachment, rendering.attachment)) return []
    const attachment = { ...rendering.attachment, update: true }
    return [{ ...rendering, attachment, tokens: measure(textOfAttachment(attachment)) }]
  })
}

function ended(one: Rendered, { shown, measure }: CarryContext): readonly Carried[] {
  const { name, kind } = one.carrier
  return endedIn(one, shown).flatMap(([key, attachments]) => {
    const last = attachments.at(-1)
    if (last === undefined || last.attachment.ended === true) return []
    const attachment = endOf(last, key)
    const tokens = measure(textOfAttachment(attachment))
    return [{ carrier: name, kind, key, attachment, tokens, source: last.uuid, sheddable: null }]
  })
}

/** What it was is enough to say that it is over: its text is not repeated. */
function endOf({ attachment }: ShownAttachment, key: string): Attachment {
  const named = ['type', 'path', 'filename', 'planFilePath', 'name', 'taskId', 'status'] as const
  const told = named.flatMap((field) =>
    typeof attachment[field] === 'string' ? [[field, attachment[field]]] : [],
  )
  return { ...Object.fromEntries(told), key, ended: true }
}
