/**
 * Updates between compactions: what changed in the context sources since the context last showed it, to be appended.
 * Unchanged state adds nothing to the request.
 */

import { textOfAttachment } from '../context/entry.ts'
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
  const updating = carriers.filter(({ tellsChanges }) => tellsChanges)
  const rendered = await renderAll(updating, context)
  return {
    carried: inOrder(rendered.flatMap((one) => [...findChanged(one, context), ...findEnded(one, context)])),
    skipped: rendered.flatMap(({ skipped }) => skipped),
    failed: failuresOf(rendered),
  }
}

function findChanged({ renderings }: Rendered, { shown, measure }: CarryContext): readonly Carried[] {
  return renderings.flatMap(({ isDelta, ...rendering }) => {
    const last = isDelta ? undefined : shown.byKey.get(rendering.key)?.at(-1)
    if (last === undefined) return [rendering]
    if (sameRendering(last.attachment, rendering.attachment)) return []
    const attachment = { ...rendering.attachment, update: true }
    return [{ ...rendering, attachment, tokens: measure(textOfAttachment(attachment)) }]
  })
}

function findEnded(one: Rendered, { shown, measure }: CarryContext): readonly Carried[] {
  const { name, kind } = one.carrier
  return endedIn(one, shown).flatMap(([key, attachments]) => {
    const last = attachments.at(-1)
    if (last === undefined || last.attachment.ended === true) return []
    const attachment = endNotice(last, key)
    const tokens = measure(textOfAttachment(attachment))
    return [{ carrier: name, kind, key, attachment, tokens, source: last.uuid, sheddable: null }]
  })
}

/** Identifies what has ended, without repeating its text. */
function endNotice({ attachment }: ShownAttachment, key: string): Attachment {
  const named = ['type', 'path', 'filename', 'planFilePath', 'name', 'taskId', 'status'] as const
  const fields = named.flatMap((field) =>
    typeof attachment[field] === 'string' ? [[field, attachment[field]]] : [],
  )
  return { ...Object.fromEntries(fields), key, ended: true }
}

// Lists announced item by item: deferred tools, available agents, instructions of MCP servers. Only new, changed and
// removed items are appended.

export interface Announced {
  readonly name: string
  readonly text: string
}

export interface DeltaCarrier {
  readonly name: string
  readonly type: 'tool_delta' | 'agent_delta' | 'mcp_instructions'
  /** All current items, in the host's order. */
  readonly read: () => Given<readonly Announced[]>
}

export function deltaCarrier({ name, type, read }: DeltaCarrier): Carrier {
  return simpleCarrier({
    name,
    kind: 'deltas',
    isWhole: false,
    read: async (context) => {
      const items = diffItems(await read(), context.shown.items.get(name) ?? new Map())
      if (items.length === 0) return []
      const attachment = { type, items: Object.fromEntries(items) }
      return [{ id: 'delta', attachment, source: 'host', sheddable: 'deltas' as const, isDelta: true }]
    },
  })
}

function diffItems(
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
