/**
 * Creates the notes of a recorded session from its log, without a model: once, or again whenever a live log grows.
 * Nothing is written.
 */
import { Buffer } from 'node:buffer'
import { type FileHandle, open } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import { createFactsKeeper } from '@tidemark/core/facts/session-facts'
import type { Damage } from '@tidemark/core/log/decode-log'
import { isKnownRecord, isSyntheticError, type SessionRecord } from '@tidemark/core/log/record'
import { appendRecordAsIs, emptySessionLog, requireRecordAt } from '@tidemark/core/log/session-log'
import { runStepsAtOnce } from '@tidemark/core/log/work-steps'
import {
  NOTES_SECTION_NAMES,
  NOTES_SECTION_TEMPLATES,
  type NotesSectionName,
  parseNotes,
} from '@tidemark/core/notes/notes-file'
import { renderNotes } from '@tidemark/core/notes/render-notes'
import { DEFAULT_POLICY } from '@tidemark/core/policy/create-policy'
import { createEstimator } from '@tidemark/core/tokens/estimator'
import { lookUpModel, modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import { createEstimatorWeights } from '@tidemark/wire/catalogue/estimator-weights'
import { createLogReader, detectLineFormat } from '@tidemark/wire/readers/log-format'
import type { LogReader } from '@tidemark/wire/readers/log-reader'
import { createLineSplitter } from '../storage/split-lines.ts'
import { type OpenLog, openLog } from './open-log.ts'
import { type LogRefusal, refuseForReadError, refuseLog } from './read-lines.ts'

export interface NotesFromLog {
  readonly ok: true
  /** The notes as Markdown. */
  readonly notes: string
  /** The text of each section, without its heading and hint. */
  readonly sections: Readonly<Record<NotesSectionName, string>>
  readonly tokens: number
  /** uuid of the last record that the notes cover; null if the log has no message. */
  readonly coveredUuid: string | null
  /** Places of the log that could not be read, whose content the notes lack. Always empty while a log is followed. */
  readonly damage: readonly Damage[]
}

/**
 * Returns the notes of the session in a log; a refusal if the log cannot be read. Subagents are left out, except in the
 * log of a subagent.
 */
export async function createLogNotes(
  path: string,
  options: { readonly signal?: AbortSignal } = {},
): Promise<NotesFromLog | LogRefusal> {
  const log = await openLog(path, { ...options, keepsRawBlocks: false })
  if (!log.ok) return log
  const taker = createNoteTaker()
  const { damage } = await log.read((records) => taker.add(records.map(({ record }) => record)))
  return { ...taker.write(), damage }
}

interface FollowNotesOptions {
  /** Ends following. */
  readonly signal: AbortSignal
  /** Called with the first notes once the log has a conversation, and after each change. */
  readonly onNotes: (notes: NotesFromLog) => void
  /** Time between two checks of the file, in milliseconds. Default: 500. */
  readonly pollMs?: number
}

/**
 * Passes the notes of a log to `onNotes`, and again whenever they change as the log grows. Returns null after the
 * signal is aborted. A truncated or replaced log is read again from its start; while it is missing, nothing happens.
 */
export async function followLogNotes(path: string, options: FollowNotesOptions): Promise<LogRefusal | null> {
  const log = await openLog(path, { keepsRawBlocks: false })
  const refusal = log.ok ? await refusePacked(log) : log
  // The log of a session that just begins is empty, and is followed.
  if (refusal !== null && refusal.reason !== 'empty') return refusal
  const { signal, onNotes, pollMs = 500 } = options
  let tail = createLogTail()
  let shown: string | null = null
  while (!signal.aborted) {
    const { position: before, taker } = tail
    tail = await readNewLines(path, tail)
    const hasChanged = tail.position !== before || tail.taker !== taker
    const notes = hasChanged ? tail.taker.write() : null
    if (notes !== null && notes.coveredUuid !== null && notes.notes !== shown) {
      onNotes(notes)
      shown = notes.notes
    }
    await setTimeout(pollMs, undefined, { signal }).catch(() => undefined)
  }
  return null
}

async function refusePacked(log: OpenLog): Promise<LogRefusal | null> {
  await log.close()
  if (log.packing === 'none') return null
  return refuseLog(log.path, 'unreadable', 'is compressed, so it does not grow: follow the log itself')
}

// Keeps notes for the current branch of a log. After a rewind, it starts anew with all records of the new branch.

interface NoteTaker {
  add(records: readonly SessionRecord[]): void
  write(): NotesFromLog
}

function createNoteTaker(): NoteTaker {
  let session = emptySessionLog()
  let keeper = createFactsKeeper()
  let coveredUuid: string | null = null
  let fed = session.branch
  let fedCount = 0
  let model = ''
  const titles = createGivenTitles()
  /** True if the log is that of a subagent; null before the first message. */
  let isAgentLog: boolean | null = null

  function feedBranch(): void {
    const { branch } = session
    if (!branch.extends(fed)) {
      keeper = createFactsKeeper()
      coveredUuid = null
      fedCount = 0
    }
    fed = branch
    for (; fedCount < branch.length; fedCount += 1) {
      const record = requireRecordAt(session, branch.at(fedCount) ?? -1)
      if (!isKnownRecord(record)) continue
      coveredUuid = record.uuid
      if (record.type === 'assistant' && !isSyntheticError(record)) model = record.message.model
      keeper.add(record)
    }
  }

  return {
    add(records) {
      for (const record of records) {
        const isMessage = record.type === 'user' || record.type === 'assistant'
        if (isMessage) isAgentLog ??= record.isSidechain === true
        titles.add(record)
        session = appendRecordAsIs(session, isAgentLog === true ? { ...record, isSidechain: false } : record)
      }
      feedBranch()
    },
    write() {
      const { sectionTokens, decisionTokens, totalTokens } = DEFAULT_POLICY.notes
      const found = lookUpModel(modelCatalogue, model)
      const weights = createEstimatorWeights(
        found.found ? found.model.tokenizer : null,
        DEFAULT_POLICY.estimate,
      )
      const { text: countTokens } = createEstimator(weights)
      const limits = { sectionTokens, decisionTokens, totalTokens, countTokens }
      const text = runStepsAtOnce(renderNotes(keeper.read(), { ...limits, title: titles.read() }))
      const tokens = Math.ceil(countTokens(text))
      return {
        ok: true,
        notes: text,
        sections: listSections(text),
        tokens,
        coveredUuid: isAgentLog === null ? null : coveredUuid,
        damage: [],
      }
    },
  }
}

/** Reads the titles that Claude Code logs. A title that the user gave is preferred to one that a model made. */
function createGivenTitles(): { add(record: SessionRecord): void; read(): string } {
  const titles = { customTitle: '', aiTitle: '' }
  return {
    add(record) {
      const { customTitle, aiTitle } = record as {
        readonly customTitle?: unknown
        readonly aiTitle?: unknown
      }
      if (record.type === 'custom-title' && typeof customTitle === 'string') titles.customTitle = customTitle
      if (record.type === 'ai-title' && typeof aiTitle === 'string') titles.aiTitle = aiTitle
    },
    read: () => titles.customTitle || titles.aiTitle,
  }
}

function listSections(text: string): NotesFromLog['sections'] {
  const bodies = new Map(parseNotes(text).map(({ heading, body }) => [heading, body]))
  return Object.fromEntries(
    NOTES_SECTION_NAMES.map((name) => [name, bodies.get(NOTES_SECTION_TEMPLATES[name].heading) ?? '']),
  ) as NotesFromLog['sections']
}

// The state of reading a live log: what was read so far, and where the next read starts.

interface LogTail {
  readonly taker: NoteTaker
  readonly splitter: ReturnType<typeof createLineSplitter>
  reader: LogReader | null
  /** Lines before the first one that tells the format. */
  waiting: string[]
  /** Device and inode of the file; null before it was read. */
  identity: string | null
  position: number
  /** The last bytes that were read. If the file has others in that place, it was rewritten. */
  last: Buffer
}

const CHUNK_BYTES = 1 << 20
const LAST_BYTES = 64

function createLogTail(): LogTail {
  return {
    taker: createNoteTaker(),
    splitter: createLineSplitter(),
    reader: null,
    waiting: [],
    identity: null,
    position: 0,
    last: Buffer.alloc(0),
  }
}

/** Reads what was appended to the file. Returns a new tail if the file was truncated or replaced, and reads all of it. */
async function readNewLines(path: string, tail: LogTail): Promise<LogTail> {
  const file = await open(path, 'r').catch((error: unknown) => {
    if (refuseForReadError(path, error).reason === 'missing') return null
    throw error
  })
  if (file === null) return tail
  try {
    const current = (await isContinued(file, tail)) ? tail : createLogTail()
    const { dev, ino } = await file.stat()
    current.identity = `${dev}-${ino}`
    const chunk = Buffer.alloc(CHUNK_BYTES)
    for (;;) {
      const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES, current.position)
      if (bytesRead === 0) return current
      const bytes = chunk.subarray(0, bytesRead)
      current.position += bytesRead
      current.last = Buffer.concat([current.last, bytes.subarray(-LAST_BYTES)]).subarray(-LAST_BYTES)
      takeLines(
        current,
        current.splitter.push(bytes).map(({ text }) => text),
      )
    }
  } finally {
    await file.close()
  }
}

async function isContinued(file: FileHandle, { identity, position, last }: LogTail): Promise<boolean> {
  const { dev, ino, size } = await file.stat()
  if (identity === null) return true
  if (identity !== `${dev}-${ino}` || size < position) return false
  const before = Buffer.alloc(last.length)
  await file.read(before, 0, last.length, position - last.length)
  return before.equals(last)
}

function takeLines(tail: LogTail, lines: readonly string[]): void {
  const unread = tail.reader === null ? [...tail.waiting, ...lines] : lines
  if (tail.reader === null) {
    const format = lines.map(detectLineFormat).find((found) => found !== null)
    if (format !== undefined && format !== null)
      tail.reader = createLogReader(format, { keepsRawBlocks: false })
  }
  const { reader } = tail
  tail.waiting = reader === null ? [...unread] : []
  if (reader !== null)
    tail.taker.add(unread.flatMap((line) => reader.readLine(line)).map(({ record }) => record))
}
