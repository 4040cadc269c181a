/**
 * What left the context of a logged session: for each compaction and clearing the blocks that the model was no longer
 * shown, what the summary does not mention, and which later call needed it. Texts are left out; `findRemovedBlockText` has
 * them.
 */
import {
  type ContextEntry,
  isProviderClearing,
  isVisibleToModel,
  toTracedBlocks,
  withProviderClearings,
} from '@tidemark/core/context/context-entry'
import { type ContextRewrite, emptyContextView, updateContextView } from '@tidemark/core/context/context-view'
import { type Block, isTextBlock, isToolResult } from '@tidemark/core/log/block'
import { AppendList } from '@tidemark/core/log/persistent-collections'
import { CLEARED_RESULT_TEXT, isKnownRecord } from '@tidemark/core/log/record'
import { appendRecordAsIs, emptySessionLog } from '@tidemark/core/log/session-log'
import { runStepsAtOnce } from '@tidemark/core/log/work-steps'
import { createReceipt, type Receipt } from '@tidemark/core/summary/receipt'
import { redact, redactStrings } from '@tidemark/core/text/redact'
import { readReportedContextTokens } from '@tidemark/core/tokens/usage'
import { findMainModel, listLogCalls, toResponseKey } from '../inspect/logged-calls.ts'
import type { LogContents } from '../logs/read-log.ts'
import { collectTextLines } from '../replay/replaced-lines.ts'
import { createLaterUseIndex, type IndexedResponse, type LaterUseIndex } from './later-uses.ts'
import type { ContextRemoval, LostFact, RemovedBlock, RemovedBlockMatch, ShownBlock } from './page-data.ts'
import { createBlockDescriber, readRedactedBlockText } from './request-detail.ts'

/** Lists, in order, the compactions and clearings that were in effect for at least one request. */
export function listContextRemovals(log: LogContents): readonly ContextRemoval[] {
  const uses = createLaterUseIndex(listModelCalls(log))
  const lines = new Map(log.records.map(({ record, line }) => [record.uuid, line]))
  return findRewrites(log).map((rewrite): ContextRemoval => {
    const { before, after, request, kind, uuid, gone } = rewrite
    const shownAfter = new Set(after.map(({ record }) => record.uuid))
    const stays = ({ record }: ContextEntry): boolean => shownAfter.has(record.uuid)
    const needs = findNeeds(rewrite, uses)
    const isCompaction = kind === 'compact'
    return redactStrings({
      id: uuid,
      kind: isCompaction ? 'compaction' : 'clearing',
      request,
      summary: isCompaction ? readSummary(rewrite) : null,
      kept: before.filter((entry) => isVisibleToModel(entry) && stays(entry)).length,
      receipt: isCompaction ? toLostFacts(makeReceipt(rewrite, stays), { lines, uses, request }) : null,
      gone: gone.map(({ shown, key }): RemovedBlock => {
        const need = needs.get(key)
        return { ...shown, key, neededAt: need?.request ?? null, how: need?.how ?? null }
      }),
    })
  })
}

/**
 * Returns the whole text of a block that left the context, with secrets removed, by the key of the block; null if there
 * is none.
 */
export function findRemovedBlockText(log: LogContents, key: string): string | null {
  for (const { gone } of findRewrites(log)) {
    const found = gone.find((block) => block.key === key)
    if (found !== undefined) return readRedactedBlockText(found.block)
  }
  return null
}

/** Returns the texts of all blocks that left the context, with secrets removed, by the keys of the blocks. */
export function listRemovedBlockTexts(log: LogContents): Readonly<Record<string, string>> {
  const blocks = findRewrites(log).flatMap(({ gone }) => gone)
  return Object.fromEntries(blocks.map(({ key, block }) => [key, readRedactedBlockText(block)]))
}

const EXCERPT_BEFORE = 60
const EXCERPT_AFTER = 140
const MAX_MATCHES = 200

/** Searches the texts that left the context, ignoring case. Each block gives at most one match, and at most 200 are returned. */
export function searchRemovedBlocks(log: LogContents, wanted: string): readonly RemovedBlockMatch[] {
  const sought = wanted.toLowerCase()
  const matches: RemovedBlockMatch[] = []
  for (const { uuid, gone } of findRewrites(log))
    for (const { key, block } of gone) {
      const text = readRedactedBlockText(block)
      const at = text.toLowerCase().indexOf(sought)
      if (at === -1) continue
      const excerpt = text.slice(Math.max(0, at - EXCERPT_BEFORE), at + wanted.length + EXCERPT_AFTER)
      matches.push({ id: uuid, key, excerpt: excerpt.replace(/\s+/g, ' ') })
      if (matches.length === MAX_MATCHES) return matches
    }
  return matches
}

/** A compaction or clearing with the context before it and at the next request. */
interface FoundRewrite extends Pick<ContextRewrite, 'kind' | 'uuid' | 'summaryUuid'> {
  readonly before: readonly ContextEntry[]
  readonly after: readonly ContextEntry[]
  /** Index of the next request; the number of requests if none followed. */
  readonly request: number
  readonly gone: readonly GoneBlock[]
}

/** The rewrites of each log, for as long as its contents are in memory: opening a block and searching need them again. */
const rewritesByLog = new WeakMap<LogContents, readonly FoundRewrite[]>()

function findRewrites(log: LogContents): readonly FoundRewrite[] {
  const known = rewritesByLog.get(log)
  if (known !== undefined) return known
  const describe = createBlockDescriber(log, findMainModel(listLogCalls(log, new Set())))
  const found = compareContexts(log).map((rewrite) => ({
    ...rewrite,
    gone: listGoneBlocks(rewrite, describe),
  }))
  rewritesByLog.set(log, found)
  return found
}

function compareContexts(log: LogContents): readonly Omit<FoundRewrite, 'gone'>[] {
  const waiting = listMeasuredKeys(log)
  const known = new Set<string>()
  const found: Omit<FoundRewrite, 'gone'>[] = []
  let session = emptySessionLog()
  let view = emptyContextView()
  let taken = view.rewrites
  let request = 0
  const take = (): void => {
    view = updateContextView(view, session)
    if (view.rewrites === taken) return
    taken = view.rewrites
    const fresh = view.rewrites.filter(({ uuid }) => !known.has(uuid))
    for (const [index, { kind, uuid, summaryUuid, replacedEntries }] of fresh.entries()) {
      known.add(uuid)
      // Of several rewrites before one request, each is compared with what the next one found.
      const after = listShown(fresh[index + 1]?.replacedEntries ?? view.entries)
      found.push({ kind, uuid, summaryUuid, before: listShown(replacedEntries), after, request })
    }
  }
  for (const { record, line } of log.records) {
    const key = toResponseKey(record)
    if (key !== null && waiting.delete(key)) {
      take()
      request += 1
    }
    session = appendRecordAsIs(session, record, line)
    if (!isKnownRecord(record) || !isProviderClearing(record)) continue
    // The entries stay as they are, because the messages are sent as before.
    view = updateContextView(view, session)
    const { uuid } = record
    const before = listShown(view.entries, uuid)
    found.push({ kind: 'clear', uuid, summaryUuid: null, before, after: listShown(view.entries), request })
  }
  take()
  return found
}

/** Whether the provider clears inputs with the results is a setting that the log does not have. */
const CLEARED_BY_PROVIDER = { inputs: false, writeTools: [] }

/** Returns the entries without what the provider has cleared on its side. `except`: a clearing that does not count. */
function listShown(entries: AppendList<ContextEntry>, except?: string): readonly ContextEntry[] {
  const counted =
    except === undefined
      ? entries
      : AppendList.of([...entries].filter(({ record }) => record.uuid !== except))
  return withProviderClearings(counted, CLEARED_BY_PROVIDER).toArray()
}

/** Returns the keys of the requests that the report lists. */
function listMeasuredKeys(log: LogContents): Set<string> {
  const calls = listLogCalls(log, new Set())
  return new Set(
    calls
      .filter(({ agent, usage }) => agent === null && readReportedContextTokens(usage) > 0)
      .map(({ key }) => key),
  )
}

interface GoneBlock {
  readonly key: string
  readonly block: Block
  readonly shown: Omit<ShownBlock, 'text'>
}

/** Lists the blocks that the model was shown before and not after, or only as a placeholder. */
function listGoneBlocks(
  { before, after, uuid }: Omit<FoundRewrite, 'gone'>,
  describe: ReturnType<typeof createBlockDescriber>,
): readonly GoneBlock[] {
  const shownAfter = new Map(after.map((entry) => [entry.record.uuid, entry]))
  return before.filter(isVisibleToModel).flatMap((entry) => {
    const now = shownAfter.get(entry.record.uuid)
    const rest =
      now === undefined || !isVisibleToModel(now) ? [] : toTracedBlocks(now).map(({ block }) => block)
    const role = entry.record.type === 'assistant' ? 'assistant' : 'user'
    return toTracedBlocks(entry).flatMap(({ block, origin }, place): GoneBlock[] =>
      rest.includes(block) || isPlaceholder(block) || rest.some((other) => isSameBlock(other, block))
        ? []
        : [{ key: `${uuid}.${origin}.${place}`, block, shown: describe(block, role, origin) }],
    )
  })
}

/** True for the placeholder of a result, which left the context when an earlier clearing replaced it. */
function isPlaceholder(block: Block): boolean {
  return isToolResult(block) && String(block.content).startsWith(CLEARED_RESULT_TEXT)
}

/** An attachment is made into a block each time it is shown; other blocks are the same objects. */
function isSameBlock(one: Block, other: Block): boolean {
  return isTextBlock(one) && isTextBlock(other) && one.text === other.text
}

function readSummary({ after, summaryUuid }: FoundRewrite): string | null {
  const summary = after.find(({ record }) => record.uuid === summaryUuid)
  if (summary === undefined) return null
  const texts = toTracedBlocks(summary).flatMap(({ block }) => (isTextBlock(block) ? [block.text] : []))
  return texts.length === 0 ? null : redact(texts.join('\n'))
}

function makeReceipt({ before, after }: FoundRewrite, stays: (entry: ContextEntry) => boolean): Receipt {
  const summarised = before.filter((entry) => isVisibleToModel(entry) && !stays(entry))
  const shownBefore = new Set(before.map(({ record }) => record.uuid))
  const carried = after.flatMap(({ record }) => {
    if (record.type !== 'attachment' || shownBefore.has(record.uuid)) return []
    const { type = 'attachment', key } = record.attachment
    return [{ kind: type, key: typeof key === 'string' ? key : type }]
  })
  return runStepsAtOnce(createReceipt({ before, after, summarised, carried }))
}

function listModelCalls(log: LogContents): readonly IndexedResponse[] {
  const waiting = listMeasuredKeys(log)
  const calls: IndexedResponse[] = []
  let request = -1
  for (const { record } of log.records) {
    const key = toResponseKey(record)
    if (key !== null && waiting.delete(key)) request += 1
    if (isKnownRecord(record) && record.type === 'assistant' && request >= 0) calls.push({ request, record })
  }
  return calls
}

interface LostFactsInput {
  readonly lines: ReadonlyMap<unknown, number>
  readonly uses: LaterUseIndex
  readonly request: number
}

function toLostFacts(
  { lost, carried, unfit }: Receipt,
  { lines, uses, request }: LostFactsInput,
): NonNullable<ContextRemoval['receipt']> {
  const toFact = ({ text, uuid }: { readonly text: string; readonly uuid: string }): LostFact => ({
    text,
    line: lines.get(uuid) ?? null,
    neededAt: null,
  })
  const toName = (item: { readonly text: string; readonly uuid: string }): LostFact => ({
    ...toFact(item),
    neededAt: uses.findNamed(item.text, request),
  })
  return {
    files: lost.files.map(toName),
    userMessages: lost.userMessages.map(toFact),
    errors: lost.errors.map(toFact),
    identifiers: lost.identifiers.map(toName),
    moreIdentifiers: lost.moreIdentifiers,
    carried: carried.map(({ kind, key }) => (kind === key ? kind : `${kind}: ${key}`)),
    unfit: unfit.length,
  }
}

interface Need {
  readonly request: number
  readonly how: 'read again' | 'edited'
}

/** Shorter lines, in characters, are ignored: they occur in so many blocks that they do not show which one an edit needed. */
const MIN_LINE_CHARACTERS = 16

/**
 * Finds the first later call that needed each block: one that read the same file again, or one that edited lines that only
 * the block had shown. If several blocks have a line, its edit is attributed to the newest.
 */
function findNeeds({ gone, after, request }: FoundRewrite, uses: LaterUseIndex): ReadonlyMap<string, Need> {
  const needs = new Map<string, Need>()
  const add = (key: string, need: Need): void => {
    if (need.request < (needs.get(key)?.request ?? Number.POSITIVE_INFINITY)) needs.set(key, need)
  }
  const edited = new Map<string, { readonly key: string; readonly at: number }>()
  for (const { block, key, shown } of gone) {
    if (!isToolResult(block)) continue
    const source = shown.kind === 'result' ? shown.what : ''
    const readAt = uses.findRead(source, request)
    if (readAt !== null) add(key, { request: readAt, how: 'read again' })
    for (const line of collectTextLines(block)) {
      const at = line.length < MIN_LINE_CHARACTERS ? null : uses.findEdited(line, request, source)
      if (at !== null) edited.set(line, { key, at })
    }
  }
  if (edited.size === 0) return needs
  const inView = after.filter(isVisibleToModel).flatMap((entry) => toTracedBlocks(entry))
  for (const [line, { key, at }] of edited)
    if (!inView.some(({ block }) => collectTextLines(block).has(line)))
      add(key, { request: at, how: 'edited' })
  return needs
}
