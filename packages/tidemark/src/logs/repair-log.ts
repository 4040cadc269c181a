/**
 * Writes a clean copy of a damaged log: without damaged lines and incomplete batches, with repaired links, and with a
 * result for every tool call. The damaged log is not changed.
 */
import type { IdGenerator } from '@tidemark/core/engine/ports'
import { isToolResult } from '@tidemark/core/log/block'
import type { Damage } from '@tidemark/core/log/decode-log'
import { createLogHeader } from '@tidemark/core/log/decode-log'
import {
  findJsonMember,
  formatJsonObject,
  isObject,
  type JsonMember,
  parseJson,
  splitJsonObject,
  withJsonMember,
} from '@tidemark/core/log/json'
import type { UserRecord } from '@tidemark/core/log/record'
import type { RecordWithLine } from '@tidemark/wire/readers/log-reader'
import { systemIds } from '../platform/node-ports.ts'
import { createDraftFile } from '../storage/atomic-file.ts'
import { type FileSystem, nodeFileSystem } from '../storage/file-system.ts'
import { type BlobCopyReport, copyLogBlobs, listBlobIds } from './log-blobs.ts'
import { type LogReadResult, type OpenLog, openLog, type ParsedLine } from './open-log.ts'
import { formatFileExists, type LineReadOptions, type LogRefusal } from './read-lines.ts'
import { createRepairPlanner, type LineRepair, type RecordIdChange, type RepairPlan } from './repair-plan.ts'

export interface RepairOptions extends LineReadOptions {
  readonly files?: FileSystem
  readonly ids?: IdGenerator
  /** The Tidemark home that is searched for blobs after the folder beside the log. Default: the current home. */
  readonly home?: string
}

type RepairOutcome = RepairReport | RepairRefusal | LogRefusal

export interface RepairReport {
  readonly ok: true
  readonly path: string
  readonly out: string
  /** Number of lines in the damaged log. */
  readonly lines: number
  /** Number of records in the copy. */
  readonly records: number
  /** The lines of the damaged log that are missing from the copy, each with the reason. */
  readonly leftOut: readonly Damage[]
  /** The lines of the damaged log that were changed in the copy, each with a description of the change. */
  readonly repaired: readonly LineRepair[]
  /**
   * Ids of the tool calls without a result. The copy has an error result for each of them, which says that the result
   * is missing.
   */
  readonly completed: readonly string[]
  /** What happened to the blobs (large tool results) that the copy refers to. */
  readonly blobs: BlobCopyReport
}

interface RepairRefusal {
  readonly ok: false
  readonly path: string
  readonly reason: 'taken' | 'not-repairable' | 'changed'
  readonly message: string
}

/**
 * Writes a repaired copy of a log to `out`. Refused if `out` exists, if the log is of Codex or has nothing to keep, or
 * if it is written to meanwhile. The file is written completely or not at all.
 */
export async function repairLog(
  path: string,
  out: string,
  options: RepairOptions = {},
): Promise<RepairOutcome> {
  const { files = nodeFileSystem, ids = systemIds } = options
  if ((await files.facts(out)) !== null) return refuse(out, 'taken', formatFileExists(out))
  const log = await openLog(path, options)
  if (!log.ok) return log
  if (log.format === 'codex') {
    await log.close()
    return refuse(
      path,
      'not-repairable',
      `${path} is a Codex rollout: only sessions of Tidemark and of Claude Code can be repaired.`,
    )
  }
  const planner = createRepairPlanner(ids)
  const spilled: RecordWithLine[] = []
  const end = await log.read((records) => {
    for (const read of records) {
      planner.take(read)
      if (read.record.spilled !== undefined) spilled.push(read)
    }
  })
  const plan = planner.plan()
  const blobIds = listBlobIds(
    spilled.flatMap(({ record, line }) => (plan.copiedLines.has(line) ? [record] : [])),
  )
  return writeCopy({ log, end, plan, out, blobIds }, files, options)
}

interface Repair {
  readonly log: OpenLog
  readonly end: LogReadResult
  readonly plan: RepairPlan
  readonly out: string
  /** Ids of the blobs that the copied records refer to. */
  readonly blobIds: readonly string[]
}

/** Writes the repaired copy. Reads the damaged log a second time instead of keeping it in memory. */
async function writeCopy(repair: Repair, files: FileSystem, options: RepairOptions): Promise<RepairOutcome> {
  const { log, out } = repair
  const file = await createDraftFile(files, out)
  try {
    const again = await openLog(log.path, options)
    if (!again.ok) return again
    if (again.sizeBytes !== log.sizeBytes || again.modifiedMs !== log.modifiedMs) {
      await again.close()
      return refuse(
        log.path,
        'changed',
        `${log.path} was written to while it was being read: try again when no program is writing to it.`,
      )
    }
    const copier = createLineCopier(repair.plan)
    for await (const lines of again.lines()) await file.write(copier.take(lines))
    if (copier.records === 0)
      return refuse(log.path, 'not-repairable', formatNothingLeft(log.path, repair.end))
    // The blobs are copied before the log appears, so that a log never lacks blobs that it could have.
    const blobs = await copyLogBlobs(log.path, out, repair.blobIds, { home: options.home, files })
    if (!(await file.commit())) return refuse(out, 'taken', formatFileExists(out))
    return { ...toRepaired(repair, copier.records), blobs }
  } finally {
    await file.discard()
  }
}

function formatNothingLeft(path: string, { damage }: LogReadResult): string {
  const [first] = damage
  const why = first === undefined ? '' : ` (line ${first.line}: ${first.why})`
  return `${path} has no record that can be kept${why}; nothing was written.`
}

function toRepaired({ log, end, plan, out }: Repair, records: number): Omit<RepairReport, 'blobs'> {
  const isCopied = ({ line, kind }: Damage): boolean =>
    plan.copiedLines.has(line) && kind !== 'incomplete-batch'
  const replaced = end.damage.filter(isCopied).map(({ line, why }) => ({ line, what: why }))
  const copies = plan.duplicateLines.map((line): Damage => ({ kind: 'duplicate-uuid', line, why: DUPLICATE }))
  return {
    ok: true,
    path: log.path,
    out,
    lines: end.lines,
    records,
    leftOut: joinSameLines([...end.damage.filter((damage) => !isCopied(damage)), ...copies].sort(byLine)),
    repaired: [...plan.repairs, ...replaced].sort(byLine),
    completed: [...plan.additions.values()].flat().flatMap(listCallIds),
  }
}

/** Joins the reasons for which one line was left out, so that the line is listed once. */
function joinSameLines(leftOut: readonly Damage[]): readonly Damage[] {
  const joined: Damage[] = []
  for (const damage of leftOut) {
    const last = joined.at(-1)
    if (last?.line === damage.line) joined[joined.length - 1] = { ...last, why: `${last.why}; ${damage.why}` }
    else joined.push(damage)
  }
  return joined
}

const DUPLICATE = 'the line repeats an earlier record with the same uuid'

function listCallIds({ message }: { readonly message: { readonly content: unknown } }): readonly string[] {
  const blocks = Array.isArray(message.content) ? message.content : []
  return blocks.filter(isToolResult).map((block) => block.tool_use_id)
}

function byLine(one: { readonly line: number }, other: { readonly line: number }): number {
  return one.line - other.line
}

function refuse(path: string, reason: RepairRefusal['reason'], message: string): RepairRefusal {
  return { ok: false, path, reason, message }
}

/**
 * Converts the lines of a damaged log to the lines of its repaired copy. A line changes only if the repair plan says so
 * or its sequence number is wrong.
 */
interface LineCopier {
  /** Returns the text in the repaired copy for these lines of the damaged log. */
  take(lines: readonly ParsedLine[]): string
  /** Number of records written to the repaired copy so far. */
  readonly records: number
}

interface CopyState {
  readonly plan: RepairPlan
  records: number
  /** True if the last copied record has a sequence number, which only Tidemark writes. */
  isOurs: boolean
  hasHeader: boolean
}

function createLineCopier(plan: RepairPlan): LineCopier {
  const state: CopyState = { plan, records: 0, isOurs: false, hasHeader: false }
  return {
    take: (lines) => lines.map((line) => copyLine(state, line)).join(''),
    get records() {
      return state.records
    },
  }
}

function copyLine(state: CopyState, { line, text }: ParsedLine): string {
  const { copiedLines, changes, additions } = state.plan
  const own = copiedLines.has(line)
    ? recordText(state, text.trim(), changes.get(line) ?? {})
    : headerText(state, text)
  return own + (additions.get(line) ?? []).map((record) => additionText(state, record)).join('')
}

function headerText(state: CopyState, text: string): string {
  if (!text.includes('"tidemark-session"')) return ''
  const value = parseJson(text)
  if (!isObject(value) || value.type !== 'tidemark') return ''
  state.hasHeader = true
  return `${text.trim()}\n`
}

function recordText(state: CopyState, text: string, change: RecordIdChange): string {
  const seq = readPosition(text)
  state.records += 1
  state.isOurs = seq !== null
  const position = seq === null || seq === state.records ? undefined : state.records
  const fields = Object.entries({ seq: position, ...change }).filter(([, value]) => value !== undefined)
  const changed = fields.length === 0 ? text : withFields(text, fields)
  return `${missingHeader(state, text)}${changed}\n`
}

/** Matches a log line whose first field is the sequence number, as in logs that Tidemark writes. */
const POSITION = /^\{"seq":(\d+)[,}]/

function readPosition(text: string): number | null {
  const found = POSITION.exec(text)?.[1] ?? findJsonMember(text, 'seq')
  return found === undefined || found === 'null' ? null : Number(found)
}

/** Sets fields in the text of a JSON object. All other fields keep their exact text. */
function withFields(text: string, fields: readonly (readonly [string, unknown])[]): string {
  let members: readonly JsonMember[] = splitJsonObject(text)
  for (const [field, value] of fields) members = withJsonMember(members, field, JSON.stringify(value))
  return formatJsonObject(members)
}

/** Returns a new header line if a Tidemark log has lost its header; otherwise an empty string. */
function missingHeader(state: CopyState, text: string): string {
  if (!state.isOurs || state.hasHeader) return ''
  state.hasHeader = true
  const value = parseJson(text)
  const { sessionId, timestamp } = isObject(value) ? value : {}
  return `${JSON.stringify(createLogHeader(String(sessionId ?? ''), String(timestamp ?? '')))}\n`
}

function additionText(state: CopyState, record: UserRecord): string {
  state.records += 1
  const seq = state.isOurs ? { seq: state.records } : {}
  return `${JSON.stringify({ ...seq, ...record })}\n`
}
