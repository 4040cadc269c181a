/**
 * Finds the coder's last step in the conversation, from its tool call ids and from phrases such as `Step 3 of 24` in
 * its texts. After a compaction there may be only a summary, which may lack the phrases.
 */
import { type Block, type MessageParam, readTextField, toBlocks } from '../protocol/messages-request.ts'

/**
 * Position of the next response: the number of the task (one per user prompt) and of the step within the task. If
 * `step` equals the number of turns, the response is the task's final text.
 */
export interface CoderPosition {
  readonly task: number
  readonly step: number
}

const START_POSITION: CoderPosition = { task: 0, step: 0 }

export interface FoundCoderPosition {
  readonly position: CoderPosition
  /** True if the position was found in a response of the coder; false if it was found in a summary or not at all. */
  readonly isCertain: boolean
  /** True if a summary follows the newest response of the coder, or if only a summary is left. */
  readonly isCompacted: boolean
}

/** Finds where the coder goes on: after its newest response, or after the latest step that a later summary names. */
export function findCoderPosition(messages: readonly MessageParam[], turns: number): FoundCoderPosition {
  const at = messages.findLastIndex((message) => findMessagePosition(message, turns) !== null)
  const newest = messages[at]
  const read = newest === undefined ? null : findMessagePosition(newest, turns)
  const summaries = messages.slice(at + 1).flatMap(findSummaryTexts)
  const quoted = summaries.flatMap(findMarkers)
  return {
    position: [...quoted, read ?? START_POSITION].reduce(pickLaterPosition),
    isCertain: read !== null,
    isCompacted: summaries.length > 0,
  }
}

export function pickLaterPosition(one: CoderPosition, other: CoderPosition): CoderPosition {
  const isLater = one.task === other.task ? one.step > other.step : one.task > other.task
  return isLater ? one : other
}

/** Returns the index of a step counted over all tasks; 0 for the first step of the first task. */
export function toStepIndex({ task, step }: CoderPosition, turns: number): number {
  return task === 0 ? step : task * turns + step
}

/** Formats a call id. The tag differs from request to request, so that no id is used twice. */
export function formatCallId({ index, number, repair, file }: CallIdParts, tag: string): string {
  const suffix = repair === null ? '' : `_${repair}${file}`
  return `toolu_coder_${index.toString(36)}_${number}_${tag}${suffix}`
}

/** The content of a call id: the step, the number of the call in the step and, for a repair, which part of the repair it is. */
export interface CallIdParts {
  readonly index: number
  readonly number: number
  readonly repair: 'look' | 'again' | null
  /** Index of the file of the call that a repair is for. */
  readonly file: number
}

/** Parses a call id; null if the coder did not create it. */
export function parseCallId(id: string): CallIdParts | null {
  const [, index, number, repair, file] =
    /^toolu_coder_([0-9a-z]+)_(\d+)_.*?(?:_(look|again)(\d+))?$/.exec(id) ?? []
  if (index === undefined) return null
  return {
    index: Number.parseInt(index, 36),
    number: Number(number),
    repair: repair === 'look' || repair === 'again' ? repair : null,
    file: Number(file ?? 0),
  }
}

/**
 * Returns the words with which a response of the coder begins, such as `Step 3 of 24` or `Task 1 done after 24
 * steps`.
 */
export function formatStepMarker({ task, step }: CoderPosition, turns: number): string {
  if (step >= turns) return `Task ${task + 1} done after ${turns} steps`
  const of = Number.isFinite(turns) ? ` of ${turns}` : ''
  return task === 0 ? `Step ${step + 1}${of}` : `Task ${task + 1}, step ${step + 1}${of}`
}

function findMessagePosition(message: MessageParam, turns: number): CoderPosition | null {
  if (message.role !== 'assistant') return null
  const found = toBlocks(message.content).flatMap((block) => findBlockPositions(block, turns))
  return found.length === 0 ? null : found.reduce(pickLaterPosition)
}

function findBlockPositions(block: Block, turns: number): readonly CoderPosition[] {
  if (block.type === 'text') return findMarkers(readTextField(block, 'text'))
  const index = block.type === 'tool_use' ? parseCallId(readTextField(block, 'id'))?.index : undefined
  return index === undefined ? [] : [{ task: Math.floor(index / turns), step: (index % turns) + 1 }]
}

const MARKER_PATTERN = /\bTask (\d+) done after \d+ steps\b|\b(?:Task (\d+), step|Step) (\d+)\b(?! steps)/g

/**
 * Finds phrases such as `Step 3 of 24` in a text. Returns for each phrase the position of the response that comes
 * next.
 */
function findMarkers(text: string): readonly CoderPosition[] {
  return [...text.matchAll(MARKER_PATTERN)].map(([, done, task, step]) =>
    done === undefined
      ? { task: task === undefined ? 0 : Number(task) - 1, step: Number(step) }
      : { task: Number(done), step: 0 },
  )
}

const SUMMARY_PATTERN = /\bsummar(?:y|i[sz]ed)\b/i
const SESSION_PATTERN = /\b(?:conversation|session|continu\w+)\b/i

/**
 * Returns the texts of summaries in a message: compaction blocks, and user texts that mention a summary of the
 * conversation.
 */
function findSummaryTexts(message: MessageParam): readonly string[] {
  return toBlocks(message.content).flatMap((block) => {
    if (block.type === 'compaction') return [readTextField(block, 'content')]
    const text = block.type === 'text' && message.role === 'user' ? readTextField(block, 'text') : ''
    return SUMMARY_PATTERN.test(text) && SESSION_PATTERN.test(text) ? [text] : []
  })
}
