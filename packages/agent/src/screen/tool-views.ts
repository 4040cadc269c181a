/** Formats tool calls for the screen: a title, a short form of the result, and the change that an edit makes. */

import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { formatCount } from '@tidemark/terminal/render/format-numbers'
import { escapeLinesForApproval, formatProjectPath, toSafeLine } from '@tidemark/terminal/render/text'
import { REFUSED_CALL_TEXT, readRefusalText } from 'tidemark/records'
import { REFUSED_BY_USER } from '../agent/permissions.ts'
import { decodeFileText } from '../tools/file-content.ts'
import { applyEdits, hasCrlfLines, type TextEdit, toCrlf } from '../tools/text-edits.ts'
import { type DiffLine, diffLines } from './line-diff.ts'
import type { ToolCallItem } from './transcript.ts'

type ToolInput = Readonly<Record<string, unknown>>

/** Returns what a call is about on one line: a path, a command, a pattern. */
export function describeCallSubject(name: string, input: ToolInput, folder: string): string {
  const text = (field: string): string => (typeof input[field] === 'string' ? String(input[field]) : '')
  const path = text('file_path') || text('path') || text('notebook_path')
  switch (name) {
    case 'Bash':
    case '!':
      return toSafeLine(text('command'))
    case 'Grep':
    case 'Glob':
      return toSafeLine(`${text('pattern')}${path === '' ? '' : ` in ${formatProjectPath(path, folder)}`}`)
    case 'TodoWrite':
      return describeTodos(input.todos)
    case 'AskUser':
      return ''
    default: {
      if (path !== '') return formatProjectPath(path, folder)
      const first = Object.values(input).find((value) => typeof value === 'string')
      return toSafeLine(typeof first === 'string' ? first : '')
    }
  }
}

function describeTodos(todos: unknown): string {
  if (!Array.isArray(todos)) return ''
  const done = todos.filter((todo) => (todo as { status?: unknown }).status === 'completed').length
  return `${done} of ${todos.length} done`
}

/** Maximum lines of a result that are shown while it is folded. */
const FOLDED_LINES: Readonly<Record<string, number>> = { Bash: 5, '!': 20, TodoWrite: 0 }

interface ResultView {
  readonly lines: readonly string[]
  /** Describes what is left out; empty if nothing is. */
  readonly more: string
}

/** Returns the lines of a result. Folded: the end of a command's output, the beginning of an error, else only how much it is. */
export function createResultView(
  { name, result, state, progress }: ToolCallItem,
  isFolded: boolean,
): ResultView {
  if (result === null) {
    const last = progress.trimEnd().split('\n').slice(-PROGRESS_LINES)
    return { lines: progress === '' ? [] : last, more: '' }
  }
  const lines = readOutput(name, result).split('\n')
  if (!isFolded) return { lines: lines.slice(0, MAX_LINES), more: describeRest(lines.length - MAX_LINES) }
  const shown = Math.max(state === 'failed' ? FAILED_LINES : 0, FOLDED_LINES[name] ?? 0)
  // The end of a command's output shows its result. For errors of other tools, the beginning is more informative.
  const isHead = state === 'failed' && !COMMANDS.has(name)
  const picked = isHead ? lines.slice(0, shown) : shown === 0 ? [] : lines.slice(-shown)
  return { lines: picked, more: describeRest(lines.length - picked.length) }
}

/** Returns why a call was refused, after a colon: the user's text, or the rule. Empty if there is no reason to show. */
export function formatRefusalReason({ result }: ToolCallItem): string {
  const words = readRefusalText(result ?? '', true) ?? ''
  const reason = (result ?? '').replace(REFUSED_CALL_TEXT, '').replace(REFUSED_BY_USER, '')
  const text = (words === '' ? reason : words).trim()
  return text === '' ? '' : `: ${text}`
}

/** Tools whose result is the output of a command. */
const COMMANDS: ReadonlySet<string> = new Set(['Bash', 'BashOutput', '!'])

/** Returns true for calls whose result is the output of a command. */
export function isShellCall({ name }: Pick<ToolCallItem, 'name'>): boolean {
  return COMMANDS.has(name)
}

/** Matches the beginning of a command's result if its exit code is not 0. */
const FAILED_COMMAND = /^Exit code: (\d+)\nOutput:\n?/

/** Returns the exit code of a command for the title of its call; empty if it is 0, and for other calls. */
export function formatExitCode({ name, result }: Pick<ToolCallItem, 'name' | 'result'>): string {
  const code = COMMANDS.has(name) ? FAILED_COMMAND.exec(result ?? '')?.[1] : undefined
  return code === undefined ? '' : ` · exit code ${code}`
}

/** Returns the lines of a result without the exit code, which the title shows. */
function readOutput(name: string, result: string): string {
  return (COMMANDS.has(name) ? result.replace(FAILED_COMMAND, '') : result).trimEnd()
}

const PROGRESS_LINES = 3
const FAILED_LINES = 6
const MAX_LINES = 500

function describeRest(lines: number): string {
  return lines > 0 ? formatCount(lines, 'line') : ''
}

/** Formats the items of the todo list, each with a mark for its state. */
export function formatTodos(input: ToolInput): readonly string[] {
  if (!Array.isArray(input.todos)) return []
  return input.todos.map((todo) => {
    const { content, status } = todo as { readonly content?: unknown; readonly status?: unknown }
    const mark = status === 'completed' ? '✓' : status === 'in_progress' ? '▸' : '·'
    return `${mark} ${toSafeLine(String(content ?? ''))}`
  })
}

/** Maximum size of a file that is compared with what a call would write. */
const MAX_FILE_BYTES = 1_000_000

/**
 * Returns the change that a call makes or would make to a file; null for other tools. `withFile`: the file on disk has not been changed
 * yet, so that lines around the change can be shown.
 */
export function computeCallChange(
  name: string,
  input: ToolInput,
  { folder, withFile }: { readonly folder: string; readonly withFile: boolean },
): readonly DiffLine[] | null {
  const path = typeof input.file_path === 'string' ? resolve(folder, input.file_path) : null
  if (path === null || !['Write', 'Edit', 'MultiEdit'].includes(name)) return null
  const current = withFile ? readCurrentText(path) : null
  if (name === 'Write') return viewWrite(current, String(input.content ?? ''))
  const edits = (name === 'Edit' ? [input] : Array.isArray(input.edits) ? input.edits : []) as TextEdit[]
  if (current !== null)
    try {
      return toSafeLines(diffLines(current, applyEdits(current, edits).text))
    } catch {
      // The edit does not match the file. The call will report that; here only its own texts are compared.
    }
  const parts = edits.map((edit) => diffLines(String(edit.old_string ?? ''), String(edit.new_string ?? '')))
  const gap: DiffLine = { kind: 'gap', text: '' }
  const lines = parts.flatMap((part, index) => (index === 0 ? part : [gap, ...part]))
  // Line numbers in the call's texts are not those of the file, so they are removed.
  return toSafeLines(lines.map(({ kind, text }) => ({ kind, text })))
}

function viewWrite(current: string | null, content: string): readonly DiffLine[] {
  if (current === null && content === '') return [{ kind: 'note', text: 'an empty file' }]
  // The tool keeps the file's line ends.
  const isCrlf = current !== null && hasCrlfLines(current)
  return toSafeLines(diffLines(current ?? '', isCrlf ? toCrlf(content) : content))
}

function readCurrentText(path: string): string | null {
  try {
    if (statSync(path).size > MAX_FILE_BYTES) return null
    return decodeFileText(readFileSync(path))?.text ?? null
  } catch {
    return null
  }
}

function toSafeLines(lines: readonly DiffLine[]): readonly DiffLine[] {
  return lines.map((line) => ({ ...line, text: escapeLinesForApproval(line.text) }))
}
