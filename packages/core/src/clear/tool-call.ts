/** What a tool call is about: the file it reads or writes, the command it runs, and which of its inputs are large. */
import type { ToolUseBlock } from '../conversation/block.ts'
import { isObject } from '../conversation/json.ts'

/** `write` holds the whole file, `edit` a part of it. */
export type Concern = 'read' | 'write' | 'edit' | 'other'

export interface CallFacts {
  readonly concern: Concern
  /** The file, for reads, writes and edits. */
  readonly path: string | null
  /** Which part of the file is read; null for all of it. */
  readonly range: string | null
  readonly command: string | null
}

/** Fields that say which part of a file is wanted. */
const RANGE = ['offset', 'limit', 'pages', 'view_range', 'start_line', 'end_line']
/** Fields that make a `path` the root of a search. */
const SEARCH = ['pattern', 'query', 'regex', 'command']

export function factsOfCall(block: ToolUseBlock, isWriteTool: boolean): CallFacts {
  const input = isObject(block.input) ? block.input : {}
  const path = pathOf(input, isWriteTool)
  return {
    concern: concernOf(input, path, isWriteTool),
    path,
    range: path === null || isWriteTool ? null : rangeOf(input),
    command: commandOf(input.command),
  }
}

type Input = Readonly<Record<string, unknown>>

function pathOf(input: Input, isWriteTool: boolean): string | null {
  const isSearch = !isWriteTool && SEARCH.some((field) => input[field] !== undefined)
  const path = input.file_path ?? (isSearch ? undefined : input.path)
  return typeof path === 'string' ? path : null
}

function concernOf(input: Input, path: string | null, isWriteTool: boolean): Concern {
  if (path === null) return 'other'
  if (!isWriteTool) return 'read'
  return typeof input.content === 'string' || typeof input.file_text === 'string' ? 'write' : 'edit'
}

function rangeOf(input: Input): string | null {
  const given = RANGE.filter((field) => input[field] !== undefined && input[field] !== null)
  return given.length === 0 ? null : JSON.stringify(given.map((field) => [field, input[field]]))
}

/** A shell takes its command as one text, or as a list of words. */
function commandOf(command: unknown): string | null {
  if (typeof command === 'string') return command
  return Array.isArray(command) ? command.map(String).join(' ') : null
}

export interface LargeInput {
  readonly field: string
  /** Tokens, as estimated. */
  readonly tokens: number
}

/** Texts of an input that are at least `least` tokens long. */
export function largeInputs(
  block: ToolUseBlock,
  least: number,
  estimate: (text: string) => number,
): readonly LargeInput[] {
  if (!isObject(block.input)) return []
  return Object.entries(block.input).flatMap(([field, value]) => {
    // A token is rarely less than a byte of text, so a short text need not be weighed.
    if (typeof value !== 'string' || value.length < least) return []
    const tokens = estimate(value)
    return tokens >= least ? [{ field, tokens }] : []
  })
}
