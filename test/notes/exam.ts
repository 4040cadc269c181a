/**
 * The open-book exam of docs/notes-exam.md: at every 50th tool call of a log the note keeper makes its notes of the log
 * so far, and the examiner judges them.
 */

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULT_POLICY } from '@tidemark/core/policy/create-policy'
import { createLogNotes } from 'tidemark/internal'
import { findCallLines } from './exam-log.ts'
import { type ExamReport, examine, type Judgement, QUESTIONS, type Question } from './examiner.ts'

export const CALLS_BETWEEN_EXAMS = 50
/** The notes have at most what the policy gives them by default. */
const MAXIMUM_NOTES_TOKENS = DEFAULT_POLICY.notes.totalTokens
export const PASSING_SHARE = 0.95

export interface ExamPoint {
  /** How many tool calls the log has up to here. */
  readonly calls: number
  readonly report: ExamReport
  readonly notes: string
  readonly tokens: number
}

/** Examines the local notes of a log at every 50th tool call. A log with fewer calls has no points. */
export async function examineLog(
  lines: readonly string[],
  every: number = CALLS_BETWEEN_EXAMS,
): Promise<readonly ExamPoint[]> {
  const points: ExamPoint[] = []
  for (const [place, position] of findCallLines(lines).entries()) {
    const calls = place + 1
    if (calls % every !== 0) continue
    const before = lines.slice(0, position + 1)
    const { notes, tokens } = await writeNotes(before)
    points.push({ calls, report: examine(before, notes), notes, tokens })
  }
  return points
}

/** The notes that `tidemark notes` prints of the lines of a log. */
async function writeNotes(
  lines: readonly string[],
): Promise<{ readonly notes: string; readonly tokens: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-exam-'))
  try {
    const path = join(folder, 'session.jsonl')
    await writeFile(path, `${lines.join('\n')}\n`)
    const written = await createLogNotes(path)
    if (!written.ok) throw new Error(written.message)
    return written
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The number of items of a judgement over all points, of one question or of all. */
export function countItems(
  points: readonly ExamPoint[],
  judgement: Judgement,
  questions: readonly Question[] = QUESTIONS,
): number {
  const counts = points.flatMap(({ report }) =>
    questions.map((question) => report[question][judgement].length),
  )
  return counts.reduce((total, count) => total + count, 0)
}

/** The share of items that are right; null if nothing was asked. */
export function computeScore(points: readonly ExamPoint[]): number | null {
  const right = countItems(points, 'right')
  const asked = right + countItems(points, 'missing') + countItems(points, 'contradicted')
  return asked === 0 ? null : right / asked
}

/** Returns true if the notes pass. Without anything that was asked and decided, they do not. */
export function isPassed(points: readonly ExamPoint[]): boolean {
  const hasRoom = points.every(({ tokens }) => tokens <= MAXIMUM_NOTES_TOKENS)
  const score = computeScore(points) ?? 0
  return hasRoom && score >= PASSING_SHARE && countItems(points, 'contradicted') === 0
}
