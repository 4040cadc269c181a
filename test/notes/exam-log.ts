/**
 * The log as the examiner of the notes sees it: tool calls with their results, and what the user typed, in order. It
 * reads the raw JSONL of Claude Code, Tidemark and Codex by itself, so that a fault of the engine's readers shows.
 */

import { readCodexLog } from './exam-log-codex.ts'
import {
  type ExamLog,
  type ExamResult,
  type Fields,
  isNotice,
  type TypedText,
  toContentText,
  toFields,
  toText,
} from './exam-records.ts'

/** Reads the branch that ends at the last record. Lines that are no JSON objects are left out. */
export function readExamLog(lines: readonly string[]): ExamLog {
  const records = lines.map(toRecord).filter((record) => record !== null)
  return isCodex(records) ? readCodexLog(records) : readBranch(selectBranch(records))
}

/** Positions of the lines with tool calls, one entry per call; subagents' calls left out. */
export function findCallLines(lines: readonly string[]): readonly number[] {
  return lines.flatMap((line, position) => {
    const record = toRecord(line)
    if (record === null || record.isSidechain === true) return []
    const payload = toFields(record.payload)
    if (record.type === 'response_item')
      return /_call$/.test(toText(payload.type)) && 'call_id' in payload ? [position] : []
    if (record.type !== 'assistant') return []
    return toBlocks(record).flatMap((block) => (block.type === 'tool_use' ? [position] : []))
  })
}

function toRecord(line: string): Fields | null {
  if (line.trim() === '') return null
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null
  } catch {
    return null
  }
}

function isCodex(records: readonly Fields[]): boolean {
  return records.some(({ type }) => type === 'session_meta' || type === 'response_item')
}

function toBlocks(record: Fields): readonly Fields[] {
  const content = toFields(record.message).content
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return Array.isArray(content) ? content.map(toFields) : []
}

/**
 * The records of the branch in the order of the file, and the records without a place on any branch. A parent that the
 * log lacks is taken to be the record before. Calls that a response made side by side are on different branches by their
 * parents; they and their results belong together.
 */
function selectBranch(records: readonly Fields[]): readonly Fields[] {
  const main = records.filter((record) => record.isSidechain !== true)
  const placed = main.filter((record) => typeof record.uuid === 'string')
  const places = new Map(placed.map((record, place) => [record.uuid, place]))
  const chosen = new Set<Fields>()
  for (let place = placed.length - 1; place >= 0; ) {
    const record = placed[place]
    if (record === undefined || chosen.has(record)) break
    chosen.add(record)
    const parent = record.parentUuid ?? record.logicalParentUuid
    place = places.get(parent) ?? (typeof parent === 'string' ? place - 1 : -1)
  }
  const responses = new Set([...chosen].map((record) => toFields(record.message).id).filter(Boolean))
  for (const record of placed) if (responses.has(toFields(record.message).id)) chosen.add(record)
  const calls = new Set(
    [...chosen]
      .flatMap(toBlocks)
      .map((block) => block.id)
      .filter(Boolean),
  )
  for (const record of placed)
    if (toBlocks(record).some((block) => calls.has(block.tool_use_id))) chosen.add(record)
  return main.filter((record) => chosen.has(record) || typeof record.uuid !== 'string')
}

function readBranch(records: readonly Fields[]): ExamLog {
  const results = new Map<unknown, ExamResult>()
  for (const record of records)
    for (const block of toBlocks(record))
      if (block.type === 'tool_result') results.set(block.tool_use_id, toResult(block, record))
  const calls = records.flatMap((record) => {
    if (record.type !== 'assistant') return []
    return toBlocks(record).flatMap((block) => {
      const result = results.get(block.id)
      if (block.type !== 'tool_use' || result === undefined) return []
      const cwd = toText(record.cwd)
      return [
        {
          id: toText(block.id),
          name: toText(block.name),
          input: toFields(block.input),
          cwd,
          result,
        },
      ]
    })
  })
  return { calls, typed: settleQueue(records) }
}

function toResult(block: Fields, record: Fields): ExamResult {
  const details = toFields(record.toolUseResult)
  return {
    text: toContentText(block.content),
    isError: typeof block.is_error === 'boolean' ? block.is_error : undefined,
    isUnfinished: details.interrupted === true || toText(details.backgroundTaskId) !== '',
  }
}

/**
 * What the user typed, in order. A message that was queued while the model worked counts where it was delivered; one of
 * which the log shows only the queue is a `maybe`.
 */
function settleQueue(records: readonly Fields[]): readonly TypedText[] {
  const typed = records.map(readTyped)
  const delivered = new Set(typed.flat().map(({ text }) => text.trim()))
  return records.flatMap((record, position) => {
    const content = toText(record.content).trim()
    if (record.type !== 'queue-operation') return typed[position] ?? []
    if (record.operation !== 'enqueue' || content === '' || /^[/{<]/.test(content)) return []
    const isTakenBack = records
      .slice(position)
      .some((later) => later.operation === 'popAll' && toText(later.content).includes(content))
    return isTakenBack || delivered.has(content) ? [] : [{ kind: 'maybe', text: content } as const]
  })
}

function readTyped(record: Fields): readonly TypedText[] {
  if (record.type === 'assistant')
    return toBlocks(record).flatMap(({ type }) => (type === 'tool_use' ? [{ kind: 'call', text: '' }] : []))
  if (record.type === 'attachment') return readQueued(toFields(record.attachment))
  if (record.type !== 'user' || record.isMeta === true || record.isCompactSummary === true) return []
  const origin = toText(toFields(record.origin).kind)
  if (origin !== '' && origin !== 'human') return []
  const blocks = toBlocks(record)
  const refusals = blocks.flatMap(readRefusal)
  const texts = blocks.filter(({ type }) => type === 'text').map((block) => toText(block.text))
  if (texts.some((text) => text.startsWith('[Request interrupted by user')))
    return [...refusals, { kind: 'interruption', text: '' }]
  const commands = texts.flatMap(readSlashCommand)
  const prompt = texts
    .filter((text) => !isNotice(text))
    .join('\n')
    .replace(/<system-reminder>[\s\S]*?<\/system-reminder>/g, '')
    .trim()
  return [...refusals, ...commands, ...(prompt === '' ? [] : [{ kind: 'prompt', text: prompt } as const])]
}

function readQueued(attachment: Fields): readonly TypedText[] {
  if (attachment.type !== 'queued_command') return []
  const origin = toText(toFields(attachment.origin).kind)
  const mode = toText(attachment.commandMode)
  const text = toContentText(attachment.prompt).trim()
  if (text === '' || isNotice(text) || (origin !== '' && origin !== 'human')) return []
  return mode === '' || mode === 'prompt' ? [{ kind: 'prompt', text }] : []
}

function readSlashCommand(text: string): readonly TypedText[] {
  const args = /<command-args>([\s\S]*?)<\/command-args>/.exec(text)?.[1]?.trim() ?? ''
  return text.includes('<command-name>') && isNotice(text) && args !== ''
    ? [{ kind: 'maybe', text: args }]
    : []
}

/** The words a user typed while refusing a call. A bare refusal has none, nor has one with a program's words in their place. */
function readRefusal(block: Fields): readonly TypedText[] {
  if (block.type !== 'tool_result' || block.is_error !== true) return []
  const text = toContentText(block.content)
  if (text.startsWith('[Request interrupted by user')) return [{ kind: 'interruption', text: '' }]
  if (!/^The user doesn't want to (?:proceed with|take) this (?:tool use|action)/.test(text)) return []
  const said = /the user said:\n([\s\S]*)$/.exec(text)?.[1] ?? ''
  const own = said.replace(/\n\nNote: The user's next message may contain[\s\S]*$/, '').trim()
  return own === '' || own.startsWith('The user wants to clarify these questions')
    ? [{ kind: 'interruption', text: '' }]
    : [{ kind: 'refusal', text: own }]
}
