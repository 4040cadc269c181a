/**
 * A clean copy of a damaged log: whole batches, damaged lines left out, links mended, open calls answered. The
 * log itself is only read.
 */
import { type Damage, type Ids, isToolResult } from '@tidemark/core'
import type { FilePort } from '../files/file-port.ts'
import { nodeFiles } from '../files/node-files.ts'
import { systemIds } from '../system/system-ids.ts'
import { createLineCopier } from './copy-lines.ts'
import type { FeedOptions } from './line-feed.ts'
import { createNewFile, type NewFile } from './new-file.ts'
import { type LogEnd, type OpenLog, openLog } from './open-log.ts'
import type { LogRefusal } from './refusal.ts'
import { createRepairPlanner, type Mend, type RepairPlan } from './repair-plan.ts'

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
