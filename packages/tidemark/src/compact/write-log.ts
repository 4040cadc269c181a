/**
 * Writes a compacted session as a Tidemark log, completely or not at all. `findOutputProblem` refuses the log that was
 * read as the output; callers ask it first.
 */
import { randomUUID } from 'node:crypto'
import { realpath } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { createLogHeader } from '@tidemark/core/log/decode-log'
import type { SessionRecord } from '@tidemark/core/log/record'
import type { TokenUsage } from '@tidemark/core/log/reply-report'
import { modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import { createCopyOrigin } from '@tidemark/wire/readers/log-reader'
import { toStoredRecord } from '@tidemark/wire/readers/stored-records'
import { createModelEstimators } from '../inspect/context-contents.ts'
import { isAnsweredCall, listConversationCalls, toResponseKey } from '../inspect/logged-calls.ts'
import { priceLogCall } from '../inspect/spending.ts'
import { type BlobCopyReport, copyLogBlobs, listBlobIds } from '../logs/log-blobs.ts'
import type { LogContents } from '../logs/read-log.ts'
import { createDraftFile, type DraftFile } from '../storage/atomic-file.ts'
import { type FileSystem, nodeFileSystem } from '../storage/file-system.ts'
import type { LogCopy } from './compact-report.ts'

interface WriteSessionOptions {
  /** Replaces the output file if it exists. */
  readonly force?: boolean
  /** The creation time in the header of the written log. Default: now. */
  readonly at?: Date
  readonly files?: FileSystem
  /** The Tidemark home that is searched for blobs after the folder beside the log. Default: the current home. */
  readonly home?: string
}

/**
 * Returns why the output file `out` cannot be written, as a sentence; null if it can. Asked before the compaction,
 * which may cost money. `log`: path of the log that was read.
 */
export async function findOutputProblem(
  out: string,
  log: string,
  { force = false, files = nodeFileSystem }: WriteSessionOptions = {},
): Promise<string | null> {
  const packed = /\.(?:gz|zst)$/i.exec(out)?.[0]
  if (packed !== undefined) return `${out}: a session that goes on is a plain file; leave off ${packed}`
  const facts = await files.facts(out)
  if (facts === null) {
    const folder = await files.facts(dirname(resolve(out)))
    return folder === null ? `${out}: there is no folder ${dirname(out)}` : null
  }
  if (facts.kind !== 'file') return `${out} is no file`
  if (await isSameFile(out, log)) return `${out} is the log itself, which is only read; choose another name`
  return force ? null : `${out} is there already; choose another name, or --force to replace it`
}

async function isSameFile(one: string, other: string): Promise<boolean> {
  return (await realpath(one)) === (await realpath(other).catch(() => null))
}

type WriteSessionResult =
  | { readonly ok: true; readonly blobs: BlobCopyReport }
  | { readonly ok: false; readonly message: string }

/** Writes a session to `out`, and the blobs that it refers to beside it. Not ok if `out` exists and `force` is not given. */
export async function writeLogAndBlobs(
  out: string,
  log: LogCopy,
  { force = false, at = new Date(), files = nodeFileSystem, home }: WriteSessionOptions = {},
): Promise<WriteSessionResult> {
  // The blobs are copied before the log appears, so that a log never lacks blobs that it could have.
  const blobs = await copyLogBlobs(log.path, out, listBlobIds(log.records), { home, files })
  const aside = force ? `${out}.${randomUUID()}` : out
  const file = await createDraftFile(files, aside)
  try {
    await writeLines(file, log, at)
    if (!(await file.commit())) return { ok: false, message: `${out} is there already.` }
  } finally {
    await file.discard()
  }
  if (force) await files.rename(aside, out)
  return { ok: true, blobs }
}

/**
 * Returns a log with these records of `log` and the lines in `added`. Its readers know what the original log tells
 * them: the program that wrote the records, the metadata of the session, and the usage that was billed.
 */
export function createLogCopy(
  log: LogContents,
  sessionId: string,
  records: readonly SessionRecord[],
  added: string,
): LogCopy {
  const copiedFrom = createCopyOrigin(log.format, log.meta)
  return { path: log.path, sessionId, records: withBilledUsage(log, records), added, copiedFrom }
}

/**
 * Adds `billed` to responses of other programs whose logged usage is not what was billed. Their readers know the
 * rules of those programs; a resumed session reads only this field. The last record of a response gets it.
 */
function withBilledUsage(
  { format, meta }: LogContents,
  records: readonly SessionRecord[],
): readonly SessionRecord[] {
  const origin = meta.copiedFrom?.format
  const { countResponse: estimate } = createModelEstimators(modelCatalogue)
  const billed = new Map<string, TokenUsage>()
  for (const call of listConversationCalls(records, { elsewhere: new Set(), origin })) {
    const { isOutputEstimated, tokens } = priceLogCall(call, { catalogue: modelCatalogue, format, estimate })
    if (!isAnsweredCall(call, format)) billed.set(call.key, NO_TOKENS)
    else if (isOutputEstimated && call.usage !== null)
      billed.set(call.key, { ...call.usage, output: tokens.output })
  }
  const lastRecords = new Map(records.map((record) => [toResponseKey(record), record]))
  return records.map((record) => {
    const key = toResponseKey(record)
    const tokens = key === null || lastRecords.get(key) !== record ? undefined : billed.get(key)
    return tokens === undefined ? record : { ...record, billed: tokens }
  })
}

const NO_TOKENS: TokenUsage = { input: 0, read: 0, writes: { short: 0, long: 0 }, output: 0 }

/** Number of characters that are buffered before each write to the file. */
const CHARACTERS_PER_WRITE = 4_000_000

async function writeLines(
  file: DraftFile,
  { sessionId, records, added, copiedFrom }: LogCopy,
  at: Date,
): Promise<void> {
  let text = `${JSON.stringify({ ...createLogHeader(sessionId, at.toISOString()), copiedFrom })}\n`
  for (const record of records) {
    text += `${JSON.stringify(toStoredRecord(record))}\n`
    if (text.length < CHARACTERS_PER_WRITE) continue
    await file.write(text)
    text = ''
  }
  await file.write(text + added)
}
