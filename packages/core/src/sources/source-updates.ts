/**
 * Collects changes between compactions: items of context sources (todos, modes) that differ from what the context
 * shows. Unchanged items add nothing to the API request.
 */
import { formatAttachmentText } from '../context/attachment-text.ts'
import type { Attachment } from '../log/record.ts'
import {
  findEndedItems,
  listSourceFailures,
  renderSources,
  type SourceRendering,
  sortAttachmentsByKind,
} from './collect-sources.ts'
import {
  type CollectedSources,
  type CollectUpdatesInput,
  type ContextSource,
  isSameAttachmentText,
  type ShownAttachment,
  type SourceAttachment,
  type SourceContext,
} from './context-source.ts'

type SourceUpdates = Pick<CollectedSources, 'carried' | 'skipped' | 'failed'>

export async function collectSourceUpdates(
  carriers: readonly ContextSource[],
  question: CollectUpdatesInput,
): Promise<SourceUpdates> {
  const context: SourceContext = { ...question, kept: question.shown.entries, moment: 'change' }
  const updating = carriers.filter(({ tellsChanges }) => tellsChanges)
  const rendered = await renderSources(updating, context)
  return {
    carried: sortAttachmentsByKind(
      rendered.flatMap((one) => [...findChanged(one, context), ...findEnded(one, context)]),
    ),
    skipped: rendered.flatMap(({ skipped }) => skipped),
    failed: listSourceFailures(rendered),
  }
}

function findChanged(
  { renderings }: SourceRendering,
  { shown, measure }: SourceContext,
): readonly SourceAttachment[] {
  return renderings.flatMap(({ isDelta, ...rendering }) => {
    const last = isDelta ? undefined : shown.byKey.get(rendering.key)?.at(-1)
    if (last === undefined) return [rendering]
    if (isSameAttachmentText(last.attachment, rendering.attachment)) return []
    const attachment = { ...rendering.attachment, update: true }
    return [{ ...rendering, attachment, tokens: measure(formatAttachmentText(attachment)) }]
  })
}

function findEnded(one: SourceRendering, { shown, measure }: SourceContext): readonly SourceAttachment[] {
  const { name, kind } = one.carrier
  return findEndedItems(one, shown).flatMap(([key, attachments]) => {
    const last = attachments.at(-1)
    if (last === undefined || last.attachment.ended === true) return []
    const attachment = createEndNotice(last, key)
    const tokens = measure(formatAttachmentText(attachment))
    return [{ carrier: name, kind, key, attachment, tokens, source: last.uuid, sheddable: null }]
  })
}

/**
 * Creates an attachment that says an item of a context source has ended, with the fields that identify the item but
 * without its text.
 */
function createEndNotice({ attachment }: ShownAttachment, key: string): Attachment {
  const named = ['type', 'path', 'filename', 'planFilePath', 'name', 'taskId', 'status'] as const
  const fields = named.flatMap((field) =>
    typeof attachment[field] === 'string' ? [[field, attachment[field]]] : [],
  )
  return { ...Object.fromEntries(fields), key, ended: true }
}
