/**
 * Between compactions: what changed about the carriers since the view last showed it, to be appended. What did not
 * change adds nothing, so that a turn in which nothing happened costs nothing.
 */

import { textOfAttachment } from '../context/message-parts.ts'
import type { Attachment } from '../log/record.ts'
import { endedIn, failuresOf, inOrder, type Rendered, renderAll } from './collect.ts'
import {
  type Carried,
  type Carrier,
  type CarryContext,
  type CarryOutcome,
  type ChangeQuestion,
  type Given,
  type ShownAttachment,
  sameRendering,
  simpleCarrier,
} from './context-source.ts'

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

// Lists that are announced piece by piece: late tools, agents that can be called, instructions of connected servers.
// Only what the view does not show as it is now is said: new, changed, gone.

export interface Announced {
  readonly name: string
  readonly text: string
}

export interface DeltaCarrier {
  readonly name: string
  readonly type: 'tool_delta' | 'agent_delta' | 'mcp_instructions'
  /** All there is now, in the host's order. */
  readonly read: () => Given<readonly Announced[]>
}

export function deltaCarrier({ name, type, read }: DeltaCarrier): Carrier {
  return simpleCarrier({
    name,
    kind: 'deltas',
    isWhole: false,
    read: async (context) => {
      const items = difference(await read(), told(name, context))
      if (items.length === 0) return []
      const attachment = { type, items: Object.fromEntries(items) }
      return [{ id: 'delta', attachment, source: 'host', sheddable: 'deltas' as const, isDelta: true }]
    },
  })
}

function told(name: string, { shown }: CarryContext): ReadonlyMap<string, string | null> {
  return shown.items.get(name) ?? new Map()
}

function difference(
  now: readonly Announced[],
  before: ReadonlyMap<string, string | null>,
): readonly (readonly [string, string | null])[] {
  const names = new Set(now.map(({ name }) => name))
  const fresh = now.filter(({ name, text }) => before.get(name) !== text)
  const gone = [...before].filter(([name, text]) => text !== null && !names.has(name))
  return [
    ...fresh.map(({ name, text }) => [name, text] as const),
    ...gone.map(([name]) => [name, null] as const),
  ]
}
