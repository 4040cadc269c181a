/** The lines of a log as its clean copy has them: as they stand, but for what the plan changes and positions anew. */
import {
  isObject,
  type Member,
  memberOf,
  membersOf,
  newHeader,
  objectText,
  readJson,
  type UserRecord,
  withMember,
} from '@tidemark/core'
import type { ReadLine } from './open-log.ts'
import type { LineChange, RepairPlan } from './repair-plan.ts'

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
