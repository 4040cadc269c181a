/**
 * Retention: what of a session is still there, letter for letter, in the text that replaces it. The facts are found by
 * rules written apart from the engine's own: this is the measure, not the thing measured.
 */
import { stripVTControlCharacters } from 'node:util'
import { isTextBlock, isToolResult, isToolUse, toBlocks } from '../../packages/core/src/log/block.ts'
import type { KnownRecord } from '../../packages/core/src/log/record.ts'
import { redact } from '../../packages/core/src/text/redact.ts'
import { listStrings } from '../../packages/tidemark/src/replay/replaced-lines.ts'

/** A fact is there when every text of it is. */
export type Fact = readonly string[]

export interface SessionFacts {
  readonly userMessages: readonly Fact[]
  readonly editedFiles: readonly Fact[]
  readonly readFiles: readonly Fact[]
  /** Last errors of commands that have not succeeded since. */
  readonly openErrors: readonly Fact[]
  /** Last errors of those that have. */
  readonly settledErrors: readonly Fact[]
}

const WRITTEN_BY_PROGRAMS =
  /^\s*(?:<command-|<local-command-|<bash-|<task-notification>|\[Request interrupted)/
const EDITS = new Set(['Edit', 'Write', 'MultiEdit', 'NotebookEdit'])

export function sessionFacts(before: readonly KnownRecord[]): SessionFacts {
  const paths = filePaths(before)
  const errors = lastErrors(before)
  return {
    userMessages: before.flatMap(userMessages),
    editedFiles: [...paths.edited].map((path) => [path]),
    readFiles: [...paths.read].filter((path) => !paths.edited.has(path)).map((path) => [path]),
    openErrors: errors.filter(({ settled }) => !settled).map(({ error }) => [error]),
    settledErrors: errors.filter(({ settled }) => settled).map(({ error }) => [error]),
  }
}

/** How many of the facts are in the text, white space around them and colours aside; both sides without secrets. */
export function heldIn(text: string, facts: readonly Fact[]): number {
  const isHeld = (part: string): boolean => text.includes(redact(stripVTControlCharacters(part)).trim())
  return facts.filter((fact) => fact.every(isHeld)).length
}

function userMessages(record: KnownRecord): readonly Fact[] {
  if (record.type !== 'user' || record.isMeta === true || record.isCompactSummary === true) return []
  const texts = toBlocks(record.message.content)
    .filter(isTextBlock)
    .map((block) => block.text)
  const said = texts.filter((text) => text.trim() !== '' && !WRITTEN_BY_PROGRAMS.test(text)).join('\n')
  return said === '' ? [] : [[said]]
}

function filePaths(records: readonly KnownRecord[]): { edited: Set<string>; read: Set<string> } {
  const found = { edited: new Set<string>(), read: new Set<string>() }
  for (const { name, input } of calls(records)) {
    const path = typeof input === 'object' && input !== null && 'file_path' in input ? input.file_path : null
    if (typeof path !== 'string') continue
    if (EDITS.has(name)) found.edited.add(path)
    else if (name === 'Read') found.read.add(path)
  }
  return found
}

function calls(records: readonly KnownRecord[]): readonly { name: string; input: unknown; id: string }[] {
  return records.flatMap((record) =>
    record.type === 'assistant' ? toBlocks(record.message.content).filter(isToolUse) : [],
  )
}

interface LastError {
  readonly error: string
  readonly settled: boolean
}

function lastErrors(records: readonly KnownRecord[]): readonly LastError[] {
  const commands = new Map<string, string>()
  for (const { id, input } of calls(records)) {
    if (typeof input !== 'object' || input === null || !('command' in input)) continue
    if (typeof input.command === 'string') commands.set(id, bare(input.command))
  }
  const last = new Map<string, LastError>()
  for (const record of records) {
    if (record.type !== 'user') continue
    for (const block of toBlocks(record.message.content).filter(isToolResult)) {
      const command = commands.get(block.tool_use_id)
      // The user refused the call, so the command did not fail.
      const isRefused = listStrings(block.content)[0]?.startsWith("The user doesn't want to proceed") === true
      if (command === undefined || isRefused) continue
      const before = last.get(command)
      if (block.is_error === true)
        last.set(command, { error: listStrings(block.content).join('\n').slice(-600), settled: false })
      else if (before !== undefined) last.set(command, { ...before, settled: true })
    }
  }
  return [...last.values()]
}

function bare(command: string): string {
  return command
    .replace(/^(?:\s*cd [^&]*&&)+/, '')
    .replace(/(?:\|\s*(?:head|tail)[^|]*)+$/, '')
    .trim()
}

export interface NextEdits {
  readonly edits: number
  /** In files seen before the cut … */
  readonly seen: number
  /** … that the text names together with their last state. */
  readonly named: number
}

/** Matches the last known state of a file, as a summary and as notes tell it. */
const LAST_STATE = /newest text (?:put there|begins): \S|\d lines?(?: when last read)?\b|; defines \S/

/** The edits among the next calls, and how many of their files a summary names with its last known state. */
export function nextEdits(records: readonly KnownRecord[], place: number, text: string): NextEdits {
  const known = new Set(calls(records.slice(0, place)).flatMap(({ input }) => pathOf(input)))
  const responses = new Set<string>()
  const paths: string[] = []
  for (const record of records.slice(place)) {
    if (record.type === 'assistant' && record.message.model !== '<synthetic>')
      responses.add(record.message.id)
    if (responses.size > 20) break
    for (const { name, input } of calls([record])) if (EDITS.has(name)) paths.push(...pathOf(input))
  }
  const seen = paths.filter((path) => known.has(path))
  const lines = text.split('\n')
  // A summary names the whole path, and notes the path from the working directory on.
  const names = (line: string, path: string): boolean =>
    line.includes(path) ||
    (/^- ([^:\n]+):/.test(line) && path.endsWith(`/${/^- ([^:\n]+):/.exec(line)?.[1]}`))
  const isNamed = (path: string): boolean => lines.some((line) => names(line, path) && LAST_STATE.test(line))
  return { edits: paths.length, seen: seen.length, named: seen.filter(isNamed).length }
}

function pathOf(input: unknown): readonly string[] {
  const path = typeof input === 'object' && input !== null && 'file_path' in input ? input.file_path : null
  return typeof path === 'string' ? [path] : []
}
