/** What a summary is made of, gathered from the messages in one walk. */
import {
  type Block,
  blocksOf,
  isObject,
  type JsonObject,
  type MessageParam,
  textField,
} from '../protocol/api.ts'
import { beginning, callOf, resultsOf, type ToolCall, type ToolResult } from './script.ts'

export interface Matter {
  /** What the person said, verbatim, oldest first. */
  readonly prompts: readonly string[]
  /** Every call with its result, oldest first. */
  readonly rounds: readonly RunCall[]
  readonly lastText: string
  /** The summary that stood in for an earlier part of the conversation. */
  readonly earlier: Sections<string> | null
}

export interface RunCall extends ToolCall {
  readonly result: ToolResult | null
}

/** `prompt` is the message that asks for the summary; it is not part of what is summed up. */
export function matterOf(messages: readonly MessageParam[], prompt: string): Matter {
  const results = new Map(
    messages.flatMap((message) => resultsOf(message)).map((result) => [result.id, result]),
  )
  const texts = messages.filter(({ role }) => role === 'user').flatMap(userTexts)
  const summaries = messages.flatMap(summariesOf)
  const calls = messages.flatMap((message) =>
    blocksOf(message.content).flatMap((block) => callOf(block) ?? []),
  )
  return {
    prompts: texts
      .map(withoutReminders)
      .filter((text) => isPrompt(text) && text !== withoutReminders(prompt)),
    rounds: calls.map((call) => ({ ...call, result: results.get(call.id) ?? null })),
    lastText:
      messages
        .filter(({ role }) => role === 'assistant')
        .flatMap(userTexts)
        .at(-1) ?? '',
    earlier: summaries.at(-1) ?? null,
  }
}

function userTexts({ content }: MessageParam): readonly string[] {
  return blocksOf(content)
    .filter((block) => block.type === 'text')
    .map((block) => textField(block, 'text'))
}

function summariesOf({ role, content }: MessageParam): readonly Sections<string>[] {
  return blocksOf(content).flatMap((block) => bodiesIn(summaryText(role, block)) ?? [])
}

function summaryText(role: string, block: Block): string {
  if (block.type === 'compaction') return textField(block, 'content')
  return role === 'user' && block.type === 'text' ? textField(block, 'text') : ''
}

function withoutReminders(text: string): string {
  return text.replaceAll(/<system-reminder>[\s\S]*?<\/system-reminder>/g, '').trim()
}

const NOT_SAID = [
  /^\[earlier conversation truncated/,
  /^<(?:local-command|command)-/,
  /^\[Request interrupted/,
]

/** Said by the person, not by the host on its own behalf, and no summary of an earlier part. */
function isPrompt(text: string): boolean {
  return text !== '' && !NOT_SAID.some((pattern) => pattern.test(text)) && bodiesIn(text) === null
}

export function pathOf({ input }: ToolCall): string | null {
  const path = input.file_path ?? input.notebook_path ?? input.path
  return typeof path === 'string' ? path : null
}

const CHANGES = new Set(['Edit', 'Write', 'MultiEdit', 'NotebookEdit'])

export function isChange({ name }: ToolCall): boolean {
  return CHANGES.has(name)
}

export interface TouchedFile {
  readonly path: string
  readonly isChanged: boolean
  /** What the last change put in. */
  readonly snippet: string
}

/** Newest first, each once. A folder that was searched is not a file. */
export function touchedFiles(rounds: readonly RunCall[]): readonly TouchedFile[] {
  const files = new Map<string, TouchedFile>()
  for (const call of rounds.toReversed()) {
    const path = call.name === 'Grep' || call.name === 'Glob' ? null : pathOf(call)
    if (path === null) continue
    const known = files.get(path)
    const snippet = known?.snippet || snippetOf(call)
    files.set(path, { path, isChanged: known?.isChanged === true || isChange(call), snippet })
  }
  return [...files.values()]
}

function snippetOf({ input }: ToolCall): string {
  const text = input.new_string ?? input.content
  return typeof text === 'string' ? beginning(text, 400) : ''
}

export interface SeenError {
  readonly text: string
  /** The file changed next, and whether the same call went well later. */
  readonly fix: string | null
  readonly isSolved: boolean
}

export function seenErrors(rounds: readonly RunCall[]): readonly SeenError[] {
  return rounds.flatMap((call, at) => {
    const { result } = call
    if (result === null || !result.isError) return []
    const later = rounds.slice(at + 1)
    const change = later.find(isChange)
    const again = later.find((other) => isSame(call, other) && other.result?.isError === false)
    return [
      {
        text: errorText(result.text),
        fix: change === undefined ? null : pathOf(change),
        isSolved: again !== undefined,
      },
    ]
  })
}

/** The line that says what is wrong, where one does. */
function errorText(text: string): string {
  return beginning((/^.*\b\w*Error\b.*$/m.exec(text)?.[0] ?? text.split('\n')[0] ?? '').trim(), 300)
}

function isSame(one: ToolCall, other: ToolCall): boolean {
  return one.name === other.name && JSON.stringify(one.input) === JSON.stringify(other.input)
}

/** What is not yet done on the newest list of todos. */
export function openTodos(rounds: readonly RunCall[]): readonly string[] {
  const newest: JsonObject = rounds.findLast(({ name }) => name === 'TodoWrite')?.input ?? {}
  const todos: readonly unknown[] = Array.isArray(newest.todos) ? newest.todos : []
  return todos.flatMap((todo) =>
    isObject(todo) && todo.status !== 'completed' && typeof todo.content === 'string' ? [todo.content] : [],
  )
}

// The nine sections of a summary: their titles, as a prompt gives them, and their bodies, as a summary has them.

export const SECTION_NUMBERS = [1, 2, 3, 4, 5, 6, 7, 8, 9] as const

export type SectionNumber = (typeof SECTION_NUMBERS)[number]

export type Sections<T> = Readonly<Record<SectionNumber, T>>

export const TITLES: Sections<string> = {
  1: 'Primary request and intent',
  2: 'Key technical concepts',
  3: 'Files and code sections',
  4: 'Errors and fixes',
  5: 'Problem solving',
  6: 'All user messages',
  7: 'Pending tasks',
  8: 'Current work',
  9: 'Optional next step',
}

/** What the title of a section has in it, however it is worded. */
const KNOWN_BY: Sections<RegExp> = {
  1: /request|intent/i,
  2: /concept/i,
  3: /\bfiles?\b/i,
  4: /\berrors?\b/i,
  5: /problem/i,
  6: /user messages?/i,
  7: /pending|\btasks?\b/i,
  8: /current work|work completed/i,
  9: /next step|context for/i,
}

interface Heading {
  readonly number: SectionNumber
  readonly title: string
  /** Where the line begins, and where it ends. */
  readonly start: number
  readonly end: number
}

/** The nine headings in order; null where one is missing. Numbered lists inside a section are no headings. */
function headingsIn(text: string): readonly Heading[] | null {
  const headings: Heading[] = []
  let from = 0
  for (const number of SECTION_NUMBERS) {
    const heading = headingFrom(text, number, from)
    if (heading === null) return null
    headings.push(heading)
    from = heading.end
  }
  return headings
}

function headingFrom(text: string, number: SectionNumber, from: number): Heading | null {
  const line = new RegExp(`^[ \\t#*]*${number}[.)][ \\t*]*([^\\n:(—]{3,60}?)[ \\t*]*(?=[:(—\\n]|$).*$`, 'gm')
  line.lastIndex = from
  for (let found = line.exec(text); found !== null; found = line.exec(text)) {
    const title = (found[1] ?? '').replace(/[.\s*]+$/, '')
    if (KNOWN_BY[number].test(title))
      return { number, title, start: found.index, end: found.index + found[0].length }
  }
  return null
}

/** The titles a prompt asks for, where it lists all nine; otherwise the usual ones. */
export function titlesIn(prompt: string): Sections<string> {
  const headings = headingsIn(prompt)
  if (headings === null) return TITLES
  return { ...TITLES, ...Object.fromEntries(headings.map(({ number, title }) => [number, title])) }
}

/** The bodies of a summary; null where the text is none. */
export function bodiesIn(text: string): Sections<string> | null {
  const headings = headingsIn(text)
  if (headings === null) return null
  const bodies = headings.map(({ number, end }, index) => [
    number,
    text.slice(end, headings[index + 1]?.start ?? text.length).trim(),
  ])
  return { ...EMPTY, ...Object.fromEntries(bodies) }
}

const EMPTY: Sections<string> = { 1: '', 2: '', 3: '', 4: '', 5: '', 6: '', 7: '', 8: '', 9: '' }
