/**
 * What left the context of a logged session: for each compaction and clearing the blocks that the model was no longer shown,
 * what the summary does not mention, and where a later call needed it. Texts are left out; `findDepartedText` has them.
 */
import { type ContextEntry, isVisibleToModel, toMessageParts } from '@tidemark/core/context/context-entry'
import { type ContextRewrite, emptyContextView, updateContextView } from '@tidemark/core/context/context-view'
import { describeToolCall } from '@tidemark/core/facts/tool-calls'
import { type Block, isTextBlock, isToolResult, isToolUse, toBlocks } from '@tidemark/core/log/block'
import { isKnownRecord, type KnownRecord } from '@tidemark/core/log/record'
import { appendRecordAsIs, emptySessionLog } from '@tidemark/core/log/session-log'
import { runAtOnce } from '@tidemark/core/log/work-steps'
import { createReceipt, type Receipt } from '@tidemark/core/summary/receipt'
import { redact, redactStrings } from '@tidemark/core/text/redact'
import { countContextTokens } from '@tidemark/core/tokens/usage'
import { findMainModel, listLogCalls, toResponseKey } from '../inspect/logged-calls.ts'
import type { LogContents } from '../logs/read-log.ts'
import { listEditAnchors, listLines } from '../replay/edit-anchors.ts'
import type { DepartedBlock, DepartedMatch, Departure, LostFact, ShownBlock } from './page-data.ts'
import { createBlockDescriber, readBlockText } from './request-detail.ts'

/** Lists the compactions and clearings that were in effect for at least one request, in order. */
export function listDepartures(log: LogContents): readonly Departure[] {
  const calls = listLaterCalls(log)
  const uses = listCallTexts(calls)
  return findRewrites(log).map((rewrite): Departure => {
    const { before, after, request, kind, uuid } = rewrite
    const gone = listGoneBlocks(log, rewrite)
    const later = calls.filter((call) => call.request >= request)
    const texts = uses.filter((use) => use.request >= request)
    const needs = findNeeds(gone, rewrite, later)
    return redactStrings({
      id: uuid,
      kind: kind === 'compact' ? 'compaction' : 'clearing',
      request,
      summary: kind === 'compact' ? readSummary(rewrite) : null,
      kept: before.filter((entry) => isVisibleToModel(entry) && hasEntry(after, entry)).length,
      receipt: kind === 'compact' ? toLostFacts(makeReceipt(rewrite), log, texts) : null,
      gone: gone.map(({ shown, key }): DepartedBlock => {
        const need = needs.get(key)
        return { ...shown, key, neededAt: need?.request ?? null, how: need?.how ?? null }
      }),
    })
  })
}

/** Returns the whole text of a block that left, by its key; null if there is none. */
export function findDepartedText(log: LogContents, key: string): string | null {
  for (const rewrite of findRewrites(log))
    for (const block of listGoneBlocks(log, rewrite)) if (block.key === key) return readBlockText(block.block)
  return null
}

/** Returns the texts of everything that left, by the keys of the blocks. */
export function listDepartedTexts(log: LogContents): Readonly<Record<string, string>> {
  const blocks = findRewrites(log).flatMap((rewrite) => listGoneBlocks(log, rewrite))
  return Object.fromEntries(blocks.map(({ key, block }) => [key, readBlockText(block)]))
}

const EXCERPT_BEFORE = 60
const EXCERPT_AFTER = 140
const MAX_MATCHES = 200

/** Searches what left the context, ignoring case. A block gives one match. */
export function searchDepartures(log: LogContents, wanted: string): readonly DepartedMatch[] {
  const sought = wanted.toLowerCase()
  const matches: DepartedMatch[] = []
  for (const rewrite of findRewrites(log))
    for (const { key, block } of listGoneBlocks(log, rewrite)) {
      const text = readBlockText(block)
      const at = text.toLowerCase().indexOf(sought)
      if (at === -1 || matches.length >= MAX_MATCHES) continue
      const excerpt = text.slice(Math.max(0, at - EXCERPT_BEFORE), at + wanted.length + EXCERPT_AFTER)
      matches.push({ id: rewrite.uuid, key, excerpt: excerpt.replace(/\s+/g, ' ') })
    }
  return matches
}

/** A compaction or clearing with the context before it and at the next request. */
interface FoundRewrite extends Pick<ContextRewrite, 'kind' | 'uuid' | 'summaryUuid'> {
  readonly before: readonly ContextEntry[]
  readonly after: readonly ContextEntry[]
  /** Index of the next request; the number of requests if none followed. */
  readonly request: number
}

function findRewrites(log: LogContents): readonly FoundRewrite[] {
  const waiting = listMeasuredKeys(log)
  const known = new Set<string>()
  const found: FoundRewrite[] = []
  let session = emptySessionLog()
  let view = emptyContextView()
  let request = 0
  const take = (): void => {
    view = updateContextView(view, session)
    const fresh = view.rewrites.filter(({ uuid }) => !known.has(uuid))
    for (const [index, { kind, uuid, summaryUuid, replacedEntries }] of fresh.entries()) {
      known.add(uuid)
      // Of several rewrites before one request, each is compared with what the next one found.
      const after = (fresh[index + 1]?.replacedEntries ?? view.entries).toArray()
      found.push({ kind, uuid, summaryUuid, before: replacedEntries.toArray(), after, request })
    }
  }
  for (const { record, line } of log.records) {
    const key = toResponseKey(record)
    if (key !== null && waiting.delete(key)) {
      take()
      request += 1
    }
    session = appendRecordAsIs(session, record, line)
  }
  take()
  return found
}

/** Returns the keys of the requests that the report lists. */
function listMeasuredKeys(log: LogContents): Set<string> {
  const calls = listLogCalls(log, new Set())
  return new Set(
    calls.filter(({ agent, usage }) => agent === null && countContextTokens(usage) > 0).map(({ key }) => key),
  )
}

interface GoneBlock {
  readonly key: string
  readonly block: Block
  readonly shown: Omit<ShownBlock, 'text'>
}

/** Lists the blocks that the model was shown before and not after, or only as a placeholder. */
function listGoneBlocks(log: LogContents, { before, after, uuid }: FoundRewrite): readonly GoneBlock[] {
  const describe = createBlockDescriber(log, findMainModel(listLogCalls(log, new Set())))
  const shownAfter = new Map(after.map((entry) => [entry.record.uuid, entry]))
  return before.filter(isVisibleToModel).flatMap((entry) => {
    const now = shownAfter.get(entry.record.uuid)
    const rest =
      now === undefined || !isVisibleToModel(now) ? [] : toMessageParts(now).map(({ block }) => block)
    const role = entry.record.type === 'assistant' ? 'assistant' : 'user'
    return toMessageParts(entry).flatMap(({ block, origin }, place): GoneBlock[] =>
      rest.includes(block) || rest.some((other) => isSameBlock(other, block))
        ? []
        : [{ key: `${uuid}.${origin}.${place}`, block, shown: describe(block, role, origin) }],
    )
  })
}

/** An attachment is made into a block each time it is shown; other blocks are the same objects. */
function isSameBlock(one: Block, other: Block): boolean {
  return isTextBlock(one) && isTextBlock(other) && one.text === other.text
}

function hasEntry(entries: readonly ContextEntry[], { record }: ContextEntry): boolean {
  return entries.some((entry) => entry.record.uuid === record.uuid)
}

function readSummary({ after, summaryUuid }: FoundRewrite): string | null {
  const summary = after.find(({ record }) => record.uuid === summaryUuid)
  if (summary === undefined) return null
  const texts = toMessageParts(summary).flatMap(({ block }) => (isTextBlock(block) ? [block.text] : []))
  return texts.length === 0 ? null : redact(texts.join('\n'))
}

function makeReceipt({ before, after }: FoundRewrite): Receipt {
  const summarised = before.filter((entry) => isVisibleToModel(entry) && !hasEntry(after, entry))
  const carried = after.flatMap(({ record }) => {
    if (record.type !== 'attachment' || before.some((entry) => entry.record.uuid === record.uuid)) return []
    const { type = 'attachment', key } = record.attachment
    return [{ kind: type, key: typeof key === 'string' ? key : type }]
  })
  return runAtOnce(createReceipt({ before, after, summarised, carried }))
}

/** A call of the model, with the index of its request. */
interface LaterCall {
  readonly request: number
  readonly record: KnownRecord & { readonly type: 'assistant' }
}

function listLaterCalls(log: LogContents): readonly LaterCall[] {
  const waiting = listMeasuredKeys(log)
  const calls: LaterCall[] = []
  let request = -1
  for (const { record } of log.records) {
    const key = toResponseKey(record)
    if (key !== null && waiting.delete(key)) request += 1
    if (isKnownRecord(record) && record.type === 'assistant' && request >= 0) calls.push({ request, record })
  }
  return calls
}

interface CallText {
  readonly request: number
  readonly text: string
}

/** The texts and tool inputs of each call: what the model wrote. */
function listCallTexts(calls: readonly LaterCall[]): readonly CallText[] {
  return calls.map(({ request, record }) => ({
    request,
    text: toBlocks(record.message.content)
      .map((block) => (isTextBlock(block) ? block.text : isToolUse(block) ? JSON.stringify(block.input) : ''))
      .join('\n'),
  }))
}

function toLostFacts(
  { lost, carried, unfit }: Receipt,
  { records }: LogContents,
  texts: readonly CallText[],
): NonNullable<Departure['receipt']> {
  const lines = new Map(records.map(({ record, line }) => [record.uuid, line]))
  const toFact = (text: string, uuid: string, sought: string | null = text): LostFact => ({
    text,
    line: lines.get(uuid) ?? null,
    neededAt: sought === null ? null : (texts.find((use) => use.text.includes(sought))?.request ?? null),
  })
  return {
    files: lost.files.map(({ text, uuid }) => toFact(text, uuid)),
    userMessages: lost.userMessages.map(({ text, uuid }) => toFact(text, uuid, null)),
    errors: lost.errors.map(({ text, uuid }) => toFact(text, uuid, null)),
    identifiers: lost.identifiers.map(({ text, uuid }) => toFact(text, uuid)),
    moreIdentifiers: lost.moreIdentifiers,
    carried: carried.map(({ kind, key }) => (kind === key ? kind : `${kind}: ${key}`)),
    unfit: unfit.length,
  }
}

interface Need {
  readonly request: number
  readonly how: 'read again' | 'edited'
}

/** Lines of an edit that are shorter are in too many texts to say which of them was needed. */
const MIN_LINE = 16

/**
 * Finds the first later call that needed each block: one that read the same file again, or one that edited lines that only
 * the block had shown.
 */
function findNeeds(
  gone: readonly GoneBlock[],
  { after }: FoundRewrite,
  later: readonly LaterCall[],
): ReadonlyMap<string, Need> {
  const results = gone.filter(({ block }) => isToolResult(block))
  const byPath = Map.groupBy(results, ({ shown }) => (shown.kind === 'result' ? shown.what : ''))
  const inView = new Set(
    after.flatMap((entry) => (isVisibleToModel(entry) ? [...listEntryLines(entry)] : [])),
  )
  const byLine = new Map<string, string>()
  for (const { block, key } of results)
    for (const line of listLines(block))
      if (line.length >= MIN_LINE && !inView.has(line)) byLine.set(line, key)
  const needs = new Map<string, Need>()
  const add = (key: string, need: Need): void => {
    if (!needs.has(key)) needs.set(key, need)
  }
  for (const { request, record } of later) {
    const blocks = toBlocks(record.message.content)
    for (const block of blocks) {
      if (!isToolUse(block)) continue
      const { kind, path } = describeToolCall(block.name, block.input)
      if (kind === 'read' && path !== null)
        for (const { key } of byPath.get(path) ?? []) add(key, { request, how: 'read again' })
    }
    for (const { lines } of listEditAnchors(blocks))
      for (const line of lines) {
        const key = byLine.get(line)
        if (key !== undefined) add(key, { request, how: 'edited' })
      }
  }
  return needs
}

function listEntryLines(entry: ContextEntry): Iterable<string> {
  return toMessageParts(entry).flatMap(({ block }) => [...listLines(block)])
}
