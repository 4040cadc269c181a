/**
 * A clean copy of a damaged log: whole batches, damaged lines left out, links mended, open calls answered. The
 * log itself is only read.
 */
import {
  type Damage,
  type Ids,
  isObject,
  isToolResult,
  type Member,
  memberOf,
  membersOf,
  newHeader,
  objectText,
  readJson,
  type UserRecord,
  withMember,
} from '@tidemark/core'
import { systemIds } from '../platform/node-ports.ts'
import { createNewFile, type NewFile } from '../storage/atomic-file.ts'
import { type FilePort, nodeFiles } from '../storage/file-system.ts'
import type { LogRefusal } from './found-log.ts'
import { type LogEnd, type OpenLog, openLog, type ReadLine } from './open-log.ts'
import type { FeedOptions } from './read-lines.ts'
import { createRepairPlanner, type LineChange, type Mend, type RepairPlan } from './repair-plan.ts'

export interface RepairOptions extends FeedOptions {
  readonly files?: FilePort
  readonly ids?: Ids
}

export type RepairOutcome = Repaired | RepairRefusal | LogRefusal

export interface Repaired {
  readonly ok: true
  readonly path: string
  readonly out: string
  /** Lines of the log, and records of the copy. */
  readonly lines: number
  readonly records: number
  /** What is not in the copy, and why. */
  readonly leftOut: readonly Damage[]
  /** What is in it in another form. */
  readonly mended: readonly Mend[]
  /** Tool calls that got an answer which says that there was none. */
  readonly completed: readonly string[]
}

export interface RepairRefusal {
  readonly ok: false
  readonly path: string
  readonly reason: 'taken' | 'not-repairable' | 'changed'
  readonly message: string
}

/** `out` must not be there yet. Its name comes last, so it is there whole or not at all. */
export async function repairLog(
  path: string,
  out: string,
  options: RepairOptions = {},
): Promise<RepairOutcome> {
  const { files = nodeFiles, ids = systemIds } = options
  if ((await files.facts(out)) !== null) return taken(out)
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
  const end = await log.read((records) => records.forEach(planner.take))
  return copied({ log, end, plan: planner.plan(), out }, files, options)
}

interface Repair {
  readonly log: OpenLog
  readonly end: LogEnd
  readonly plan: RepairPlan
  readonly out: string
}

async function copied(repair: Repair, files: FilePort, options: FeedOptions): Promise<RepairOutcome> {
  const { log, out } = repair
  const again = await openLog(log.path, options)
  if (!again.ok) return again
  if (again.sizeBytes !== log.sizeBytes || again.modifiedMs !== log.modifiedMs) {
    await again.close()
    return refuse(
      log.path,
      'changed',
      `${log.path} was written to while it was being read: try again when nobody writes to it.`,
    )
  }
  const file = await createNewFile(files, out)
  try {
    const records = await copyInto(file, again, repair.plan)
    return (await file.commit()) ? outcomeOf(repair, records) : taken(out)
  } finally {
    await file.discard()
  }
}

async function copyInto(file: NewFile, log: OpenLog, plan: RepairPlan): Promise<number> {
  const copier = createLineCopier(plan)
  for await (const lines of log.lines()) await file.write(copier.take(lines))
  return copier.records
}

function outcomeOf({ log, end, plan, out }: Repair, records: number): Repaired {
  const isThere = ({ line, kind }: Damage): boolean => plan.counted.has(line) && kind !== 'incomplete-batch'
  const replaced = end.damage.filter(isThere).map(({ line, why }) => ({ line, what: why }))
  const copies = plan.copies.map((line): Damage => ({ kind: 'duplicate-uuid', line, why: COPY }))
  return {
    ok: true,
    path: log.path,
    out,
    lines: end.lines,
    records,
    leftOut: [...end.damage.filter((damage) => !isThere(damage)), ...copies].sort(byLine),
    mended: [...plan.mended, ...replaced].sort(byLine),
    completed: [...plan.additions.values()].flat().flatMap(callsIn),
  }
}

const COPY = 'the line says again what stood before under the same uuid'

function callsIn({ message }: { readonly message: { readonly content: unknown } }): readonly string[] {
  const blocks = Array.isArray(message.content) ? message.content : []
  return blocks.filter(isToolResult).map((block) => block.tool_use_id)
}

function byLine(one: { readonly line: number }, other: { readonly line: number }): number {
  return one.line - other.line
}

function taken(out: string): RepairRefusal {
  return refuse(
    out,
    'taken',
    `${out} is there already, and nothing is ever overwritten: choose another name.`,
  )
}

function refuse(path: string, reason: RepairRefusal['reason'], message: string): RepairRefusal {
  return { ok: false, path, reason, message }
}

// The lines of a log as its clean copy has them: as they stand, but for what the plan changes and positions anew.

export interface LineCopier {
  /** What the copy has in the place of these lines. */
  take(lines: readonly ReadLine[]): string
  /** Records written so far. */
  readonly records: number
}

interface Copying {
  readonly plan: RepairPlan
  records: number
  /** Does the newest record have a position, as ours do and other programs' do not? */
  isOurs: boolean
  hasHeader: boolean
}

export function createLineCopier(plan: RepairPlan): LineCopier {
  const copying: Copying = { plan, records: 0, isOurs: false, hasHeader: false }
  return {
    take: (lines) => lines.map((line) => copyOf(copying, line)).join(''),
    get records() {
      return copying.records
    },
  }
}

function copyOf(copying: Copying, { line, text }: ReadLine): string {
  const { counted, changes, additions } = copying.plan
  const own = counted.has(line)
    ? recordText(copying, text.trim(), changes.get(line) ?? {})
    : headerText(copying, text)
  return own + (additions.get(line) ?? []).map((record) => additionText(copying, record)).join('')
}

function headerText(copying: Copying, text: string): string {
  if (!text.includes('"tidemark-session"')) return ''
  const value = readJson(text)
  if (!isObject(value) || value.type !== 'tidemark') return ''
  copying.hasHeader = true
  return `${text.trim()}\n`
}

function recordText(copying: Copying, text: string, change: LineChange): string {
  const seq = positionIn(text)
  copying.records += 1
  copying.isOurs = seq !== null
  const position = seq === null || seq === copying.records ? undefined : copying.records
  const fields = Object.entries({ seq: position, ...change }).filter(([, value]) => value !== undefined)
  const changed = fields.length === 0 ? text : withFields(text, fields)
  return `${missingHeader(copying, text)}${changed}\n`
}

/** Our writer puts it first. */
const POSITION = /^\{"seq":(\d+)[,}]/

function positionIn(text: string): number | null {
  const found = POSITION.exec(text)?.[1] ?? memberOf(text, 'seq')
  return found === undefined || found === 'null' ? null : Number(found)
}

/** The members that do not change keep their exact text. */
function withFields(text: string, fields: readonly (readonly [string, unknown])[]): string {
  let members: readonly Member[] = membersOf(text)
  for (const [field, value] of fields) members = withMember(members, field, JSON.stringify(value))
  return objectText(members)
}

/** A log of ours begins with a header; where it was among the damaged lines the copy gets a new one. */
function missingHeader(copying: Copying, text: string): string {
  if (!copying.isOurs || copying.hasHeader) return ''
  copying.hasHeader = true
  const value = readJson(text)
  const { sessionId, timestamp } = isObject(value) ? value : {}
  return `${JSON.stringify(newHeader(String(sessionId ?? ''), String(timestamp ?? '')))}\n`
}

function additionText(copying: Copying, record: UserRecord): string {
  copying.records += 1
  const seq = copying.isOurs ? { seq: copying.records } : {}
  return `${JSON.stringify({ ...seq, ...record })}\n`
}
