/**
 * How far the coder has come, read off the conversation: every call says it in its id, every text in its first
 * words. After a compaction there may be nothing left but a summary, which may or may not quote them.
 */
import { type Block, blocksOf, type MessageParam, textField } from '../../api.ts'

/** The next response: a step of a task, or its last word where `step` is the number of turns. */
export interface Position {
  readonly task: number
  readonly step: number
}

export const START: Position = { task: 0, step: 0 }

export interface Found {
  readonly position: Position
  /** The newest response of the coder that is still there says so. */
  readonly isCertain: boolean
  /** A summary stands behind that response, or in its place. */
  readonly isCompacted: boolean
}

export function findPosition(messages: readonly MessageParam[], turns: number): Found {
  const at = messages.findLastIndex((message) => positionIn(message, turns) !== null)
  const newest = messages[at]
  const read = newest === undefined ? null : positionIn(newest, turns)
  const said = messages.slice(at + 1).flatMap(summaryTexts)
  const quoted = said.flatMap((text) => markersIn(text))
  return {
    position: [...quoted, read ?? START].reduce(later),
    isCertain: read !== null,
    isCompacted: said.length > 0,
  }
}

export function later(one: Position, other: Position): Position {
  const isLater = one.task === other.task ? one.step > other.step : one.task > other.task
  return isLater ? one : other
}

/** Of all steps, whatever the task. */
export function stepIndex({ task, step }: Position, turns: number): number {
  return task === 0 ? step : task * turns + step
}

export function callId({ index, call, tag }: { index: number; call: number; tag: string }): string {
  return `toolu_coder_${index.toString(36)}_${call}_${tag}`
}

/** The step that a call belongs to; null where it is not one of the coder's. */
export function stepOfCall(id: string): number | null {
  const [, index] = /^toolu_coder_([0-9a-z]+)_\d+_/.exec(id) ?? []
  return index === undefined ? null : Number.parseInt(index, 36)
}

/** The first words of a step, and of the last word on a task. */
export function marker({ task, step }: Position, turns: number): string {
  if (step >= turns) return `Task ${task + 1} done after ${turns} steps`
  const of = Number.isFinite(turns) ? ` of ${turns}` : ''
  return task === 0 ? `Step ${step + 1}${of}` : `Task ${task + 1}, step ${step + 1}${of}`
}

function positionIn(message: MessageParam, turns: number): Position | null {
  if (message.role !== 'assistant') return null
  const found = blocksOf(message.content).flatMap((block) => positionsIn(block, turns))
  return found.length === 0 ? null : found.reduce(later)
}

function positionsIn(block: Block, turns: number): readonly Position[] {
  if (block.type === 'text') return markersIn(textField(block, 'text'))
  const index = block.type === 'tool_use' ? stepOfCall(textField(block, 'id')) : null
  return index === null ? [] : [{ task: Math.floor(index / turns), step: (index % turns) + 1 }]
}

const MARKER = /\bTask (\d+) done after \d+ steps\b|\b(?:Task (\d+), step|Step) (\d+)\b(?! steps)/g

/** The position after each marker in the text. */
function markersIn(text: string): readonly Position[] {
  return [...text.matchAll(MARKER)].map(([, done, task, step]) =>
    done === undefined
      ? { task: task === undefined ? 0 : Number(task) - 1, step: Number(step) }
      : { task: Number(done), step: 0 },
  )
}

const SUMMARY = /\bsummar(?:y|i[sz]ed)\b/i
const OF_A_SESSION = /\b(?:conversation|session|continu\w+)\b/i

/** What stands for a conversation that went before: a provider's block, or text that says it is a summary. */
function summaryTexts(message: MessageParam): readonly string[] {
  return blocksOf(message.content).flatMap((block) => {
    if (block.type === 'compaction') return [textField(block, 'content')]
    const text = block.type === 'text' && message.role === 'user' ? textField(block, 'text') : ''
    return SUMMARY.test(text) && OF_A_SESSION.test(text) ? [text] : []
  })
}
