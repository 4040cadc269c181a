/**
 * Collects the attachments to append after a compaction: the current items of every context source (todos, plan,
 * files), within its budget, in a fixed order, each once. Items that kept messages already show are left out; outdated
 * attachments are reported. Between compactions, collects only what changed.
 */

import { formatAttachmentText } from '../context/context-entry.ts'
import type { ContextView } from '../context/context-view.ts'
import { describeThrown, TidemarkError } from '../errors.ts'
import { findNonJsonPath } from '../log/json.ts'
import type { Attachment } from '../log/record.ts'
import type { CompactTargetPolicy } from '../policy/compact-policy.ts'
import type { Policy } from '../policy/policy.ts'
import { type TokenCounter, takeHeadWithinTokens } from '../text/truncate-text.ts'
import {
  type CollectedSources,
  type CollectSourcesInput,
  type CollectUpdatesInput,
  type ContextSource,
  createAttachmentKey,
  indexShownAttachments,
  isRenderedItem,
  isSameAttachmentText,
  type RenderedItem,
  readAttachmentKey,
  readSourceNameFromKey,
  type ShownAttachment,
  type ShownAttachmentIndex,
  type SkippedAttachment,
  SOURCE_KINDS,
  type SourceAttachment,
  type SourceContext,
  type SourceItem,
  type SourceKind,
  type SourceLimit,
} from './context-source.ts'

const NO_LIMIT: SourceLimit = {
  each: Number.POSITIVE_INFINITY,
  total: Number.POSITIVE_INFINITY,
  count: Number.POSITIVE_INFINITY,
}

/**
 * Collects the attachments of all context sources for a compaction. `pause` is called before each source is read. A source
 * that fails is reported, not thrown; a source with an invalid name throws.
 */
export async function collectSourceAttachments(
  carriers: readonly ContextSource[],
  question: CollectSourcesInput,
  pause?: () => Promise<unknown>,
): Promise<CollectedSources> {
  const shown = indexShownAttachments(question.kept)
  const rendered = await renderSources(carriers, { ...question, shown, moment: 'compaction' }, pause)
  const sorted = rendered.map((one) => compareWithShown(one, shown))
  return {
    carried: sortAttachmentsByKind(sorted.flatMap(({ carried }) => carried)),
    superseded: sorted.flatMap(({ superseded }) => superseded),
    skipped: rendered.flatMap(({ skipped }) => skipped),
    failed: listSourceFailures(rendered),
  }
}

function listSourceFailures(rendered: readonly SourceRendering[]): CollectedSources['failed'] {
  return rendered.flatMap(({ carrier, failed }) =>
    failed === null ? [] : [{ carrier: carrier.name, why: failed }],
  )
}

/** Sorts attachments by kind, then by the order of the sources and their items, so that the same state gives the same order. */
function sortAttachmentsByKind(carried: readonly SourceAttachment[]): readonly SourceAttachment[] {
  return SOURCE_KINDS.flatMap((kind) => carried.filter((one) => one.kind === kind))
}

/** Returns which items of a source must be attached, and which attachments that stay in the context are out of date. */
function compareWithShown(
  one: SourceRendering,
  shown: ShownAttachmentIndex,
): Pick<CollectedSources, 'carried' | 'superseded'> {
  const carried: SourceAttachment[] = []
  const superseded: string[] = findEndedItems(one, shown).flatMap(([, attachments]) =>
    attachments.map(({ uuid }) => uuid),
  )
  for (const { isDelta, ...rendering } of one.renderings) {
    const before = isDelta ? [] : (shown.byKey.get(rendering.key) ?? [])
    const last = before.at(-1)
    const isSame = last !== undefined && isSameAttachmentText(last.attachment, rendering.attachment)
    if (!isSame) carried.push(rendering)
    superseded.push(...before.slice(0, isSame ? -1 : undefined).map(({ uuid }) => uuid))
  }
  return { carried, superseded }
}

/**
 * Finds items that the context shows but the source no longer has. Returns none if the source failed, or if it does not
 * list all its items each time.
 */
function findEndedItems(
  { carrier, renderings, skipped, failed }: SourceRendering,
  { byKey }: ShownAttachmentIndex,
): readonly (readonly [string, readonly ShownAttachment[]])[] {
  if (!carrier.isWhole || failed !== null) return []
  const present = new Set([...renderings, ...skipped].map(({ key }) => key))
  return [...byKey].filter(([key]) => readSourceNameFromKey(key) === carrier.name && !present.has(key))
}

// Reads the items of context sources within their limits. A source that fails is reported and does not affect other
// sources.

interface SourceRendering {
  readonly carrier: ContextSource
  readonly renderings: readonly (SourceAttachment & { readonly isDelta: boolean })[]
  readonly skipped: readonly SkippedAttachment[]
  readonly failed: string | null
}

/**
 * Reads the items of all enabled context sources concurrently and returns the results in the order of the sources. `pause` is
 * called before each begins, since several read the whole log. Throws if the name of a source is invalid or not unique.
 */
async function renderSources(
  carriers: readonly ContextSource[],
  context: SourceContext,
  pause?: () => Promise<unknown>,
): Promise<readonly SourceRendering[]> {
  checkSourceNames(carriers)
  const started: Promise<SourceRendering>[] = []
  for (const carrier of carriers.filter(({ kind }) => isSourceEnabled(kind, context.policy))) {
    if (pause !== undefined) await pause()
    started.push(renderSource(carrier, context))
  }
  return Promise.all(started)
}

function checkSourceNames(carriers: readonly ContextSource[]): void {
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

function isSourceEnabled(kind: SourceKind, { rehydrate }: Policy): boolean {
  const switches: Partial<Record<SourceKind, boolean>> = {
    todos: rehydrate.todos,
    plan: rehydrate.plan,
    'plan-mode': rehydrate.planMode,
    agents: rehydrate.agents,
  }
  return switches[kind] ?? true
}

/** Reads one source until a limit is reached. Items that do not fit are listed as skipped, with the reason. */
async function renderSource(carrier: ContextSource, context: SourceContext): Promise<SourceRendering> {
  const renderings: SourceRendering['renderings'][number][] = []
  const skipped: SkippedAttachment[] = []
  try {
    const limit = carrier.limit(context) ?? NO_LIMIT
    let { total } = limit
    if (limit.count <= 0) return { carrier, renderings, skipped, failed: null }
    for await (const offer of carrier.render(context)) {
      checkItem(offer)
      const key = createAttachmentKey(carrier.name, offer.id)
      const isTwice = isRenderedItem(offer) && renderings.some((rendering) => rendering.key === key)
      const limits = { ...limit, total }
      const placed = isTwice ? 'was rendered twice' : fitSourceItem(carrier, offer, limits, context.measure)
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
    return { carrier, renderings, skipped, failed: describeThrown(thrown) }
  }
}

/** Throws if the attachment of an item could not be written to the log, such as one whose text is undefined. */
function checkItem(offer: SourceItem): void {
  const wrong = isRenderedItem(offer) ? findNonJsonPath(offer.attachment) : null
  if (wrong !== null) throw new TypeError(`The item "${offer.id}" has no JSON value at ${wrong}.`)
}

/** Returns the item, cut to its limit if necessary, or the reason why it is not attached. */
function fitSourceItem(
  { name, kind }: ContextSource,
  offer: SourceItem,
  limit: SourceLimit,
  measure: TokenCounter,
): SourceRendering['renderings'][number] | string {
  if (!isRenderedItem(offer)) return offer.why
  const key = createAttachmentKey(name, offer.id)
  const fitted = fitRenderedItem({ ...offer, attachment: { ...offer.attachment, key } }, limit, measure)
  if (typeof fitted === 'string') return fitted
  const { source, sheddable = null, isDelta = false } = offer
  const { attachment, tokens } = fitted
  return { carrier: name, kind, key, attachment, source, sheddable, isDelta, tokens }
}

interface FittedItem {
  readonly attachment: Attachment
  readonly tokens: number
}

/** Returns the attachment of an item, cut to `each` tokens if the item allows it, or the reason why it does not fit. */
function fitRenderedItem(
  rendering: RenderedItem,
  { each, total }: SourceLimit,
  measure: TokenCounter,
): FittedItem | string {
  const { attachment } = rendering
  const tokens = measure(formatAttachmentText(attachment))
  const fitted = tokens <= each ? { attachment, tokens } : cutItem(rendering, each, measure)
  if (fitted === null) return `takes ${tokens} tokens, and one may take ${each}`
  return fitted.tokens <= total ? fitted : `takes ${fitted.tokens} tokens, and ${total} are left`
}

/** Cuts the text of an item to `each` tokens, its note included; null if the item must not be cut, or nothing would be left. */
function cutItem(
  { attachment, cutNote }: RenderedItem,
  each: number,
  measure: TokenCounter,
): FittedItem | null {
  const { content } = attachment
  if (cutNote === undefined || typeof content !== 'string') return null
  const withHead = (head: string): Attachment => ({
    ...attachment,
    content: `${head.endsWith('\n') ? head : `${head}\n`}${cutNote(head, content)}`,
    truncated: true,
  })
  const measureCut = (head: string): number => measure(formatAttachmentText(withHead(head)))
  const head = takeHeadWithinTokens(content, each, measureCut)
  const tokens = measureCut(head)
  return head === '' || tokens > each ? null : { attachment: withHead(head), tokens }
}

// Dropping of optional attachments if the compacted context is above its target. Most attachments are never dropped.

/**
 * Returns the attachments that are left after dropping some kind by kind, in the order that policy gives, until at least
 * `overBy` tokens are freed. Within a kind, the oldest are dropped first.
 */
export function dropOptionalAttachments(
  carried: readonly SourceAttachment[],
  overBy: number,
  policy: CompactTargetPolicy,
): readonly SourceAttachment[] {
  const gone = new Set<SourceAttachment>()
  let freedTokens = 0
  for (const next of policy.shed.flatMap((kind) => listDroppable(carried, kind, policy))) {
    if (freedTokens >= overBy) break
    gone.add(next)
    freedTokens += next.tokens
  }
  return carried.filter((one) => !gone.has(one))
}

/** Lists the attachments of one kind that may be dropped, oldest first. The newest `keptSkills` skills are not listed. */
function listDroppable(
  carried: readonly SourceAttachment[],
  kind: CompactTargetPolicy['shed'][number],
  { keptSkills }: CompactTargetPolicy,
): readonly SourceAttachment[] {
  const ofKind = carried.filter((one) => one.sheddable === kind)
  return ofKind.slice(kind === 'skills' ? keptSkills : 0).reverse()
}

// Attachments that are unchanged since the last compaction are placed before the summary. There they stay part of the
// cached prefix, so they are read from the cache again.

/** The attachments of the last compaction, in order. */
interface PreviousAttachments {
  /** Attachments before the summary of the last compaction. */
  readonly front: readonly Attachment[]
  /** Attachments after the summary of the last compaction. */
  readonly behind: readonly Attachment[]
}

interface AttachmentOrder {
  /** Attachments to place before the summary, in this order. */
  readonly front: readonly SourceAttachment[]
  /** Attachments to place after the summary and the kept messages. */
  readonly behind: readonly SourceAttachment[]
}

/** Returns the attachments of the newest compaction in effect. */
export function findLastCompactionAttachments({ rewrites, entries }: ContextView): PreviousAttachments {
  const act = rewrites.findLast(({ kind }) => kind === 'compact')
  if (act === undefined || act.batchId === null) return { front: [], behind: [] }
  const records = [...entries].map(({ record }) => record)
  const summary = records.findIndex(({ uuid }) => uuid === act.summaryUuid)
  const own = (from: number, to?: number): readonly Attachment[] =>
    records
      .slice(from, to)
      .flatMap((record) =>
        record.type === 'attachment' && record.batch?.id === act.batchId ? [record.attachment] : [],
      )
  return { front: own(0, summary), behind: own(summary + 1) }
}

/**
 * Decides which attachments go before the summary: the reminder in front of the conversation, then unchanged ones that were
 * before the summary of the last compaction, in their old order, then unchanged ones that were after it. All others go
 * after the summary.
 */
export function arrangeAttachmentsAroundSummary(
  carried: readonly SourceAttachment[],
  former: PreviousAttachments,
): AttachmentOrder {
  const stayed = former.front.map((attachment) => carried.find((one) => isSameAttachment(one, attachment)))
  const before = [
    ...new Set([...carried.filter(isOpeningReminder), ...stayed.filter((one) => one !== undefined)]),
  ]
  const joining = carried.filter(
    (one) => !before.includes(one) && former.behind.some((attachment) => isSameAttachment(one, attachment)),
  )
  const front = [...before, ...joining]
  return { front, behind: carried.filter((one) => !front.includes(one)) }
}

/** Returns true for the reminder in front of the conversation, and false for a change of it that is appended. */
export function isOpeningReminder({ kind, attachment }: SourceAttachment): boolean {
  return kind === 'ambient' && attachment.update !== true
}

function isSameAttachment({ key, attachment }: SourceAttachment, other: Attachment): boolean {
  return readAttachmentKey(other) === key && isSameAttachmentText(other, attachment)
}

// Collects changes between compactions: items of context sources (todos, modes) that differ from what the context
// shows. Unchanged items add nothing to the API request.

type SourceUpdates = Pick<CollectedSources, 'carried' | 'skipped' | 'failed'>

/** Collects what changed in the sources that tell their changes: new items, changed ones, and notices of those that ended. */
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

/** Returns the items that the context does not show, or shows with another text. */
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

/** Returns a notice for each item that has ended since the context showed it. */
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
