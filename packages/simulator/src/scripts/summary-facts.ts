/** Collects the facts that the summarizer script puts into a summary, and reads the nine sections of a summary. */
import {
  type Block,
  isObject,
  type JsonObject,
  type MessageParam,
  readTextField,
  toBlocks,
} from '../protocol/messages-request.ts'
import {
  listMessageTexts,
  listToolCalls,
  listToolResults,
  type ToolCall,
  type ToolResult,
  takeCharacters,
} from './script.ts'

export interface SummaryFacts {
  /** The user's prompts verbatim, oldest first. */
  readonly prompts: readonly string[]
  /** Every tool call with its result, oldest first. */
  readonly calls: readonly AnsweredCall[]
  /** The last text of the assistant; empty if there is none. */
  readonly lastText: string
  /** True if the assistant ended its turn: its last message calls no tool, and only the summary prompt follows. */
  readonly isAnswered: boolean
  /** The sections of each summary in the conversation, oldest first; several if a client joins summaries. */
  readonly previousSummaries: readonly SectionRecord<string>[]
  /** What the user wants in this summary, and matching lines of the conversation; null if the user wants nothing special. */
  readonly wanted: { readonly text: string; readonly lines: readonly string[] } | null
}

interface AnsweredCall extends ToolCall {
  readonly result: ToolResult | null
}

/**
 * Collects the facts of a conversation. The text that asks for the summary is passed as `prompt`, so that it is not
 * listed among the user's prompts.
 */
export function collectSummaryFacts(messages: readonly MessageParam[], prompt: string): SummaryFacts {
  const results = new Map(
    messages.flatMap((message) => listToolResults(message)).map((result) => [result.id, result]),
  )
  const texts = (role: string): readonly string[] =>
    messages.filter((message) => message.role === role).flatMap(listMessageTexts)
  const said = texts('assistant').filter((text) => !isHostNote(text))
  const calls = [
    ...messages.flatMap(listToolCalls).map((call) => ({ ...call, result: results.get(call.id) ?? null })),
    ...listCallsInTexts(messages),
  ]
  return {
    prompts: [
      ...texts('user')
        .map(dropReminders)
        .filter((text) => isUserPrompt(text) && text !== dropReminders(prompt))
        .flatMap((text) => (CONTINUED.test(text) ? listQuotedMessages(text) : [text])),
      ...listTranscribedPrompts(prompt),
    ],
    calls,
    lastText: said.at(-1) ?? '',
    isAnswered: isTurnEnded(messages, prompt),
    previousSummaries: messages.flatMap((message) => findSummaries(message, prompt)),
    wanted: findWantedLines(prompt, [...said, ...calls.map(({ result }) => result?.text ?? '')]),
  }
}

function isTurnEnded(messages: readonly MessageParam[], prompt: string): boolean {
  const isPrompt = (message: MessageParam) => listMessageTexts(message).includes(prompt)
  const last = messages.findLast((message) => message.role !== 'system' && !isPrompt(message))
  return last?.role === 'assistant' && listToolCalls(last).length === 0
}

/** Lists calls that a client sends as text: `[call of Read: {…}]`, and `[result: …]` in the same order. */
function listCallsInTexts(messages: readonly MessageParam[]): readonly AnsweredCall[] {
  const texts = messages.flatMap(listMessageTexts)
  const results = texts.flatMap((text) => /^\[result: ([\s\S]*)\]$/.exec(text)?.[1] ?? [])
  return texts.flatMap(parseCallText).map((call, index) => {
    const text = results[index]
    const result = text === undefined ? null : { id: call.id, name: call.name, text, isError: false }
    return { ...call, result }
  })
}

function parseCallText(text: string): readonly ToolCall[] {
  const [, name, json = ''] = /^\[call of ([^:\s]+): ([\s\S]*)\]$/.exec(text) ?? []
  if (name === undefined) return []
  try {
    const input: unknown = JSON.parse(json)
    return [{ id: '', name, input: isObject(input) ? (input as JsonObject) : {} }]
  } catch {
    return [{ id: '', name, input: {} }]
  }
}

/** Matches the text that clients write before the user's instructions for a summary. */
const INSTRUCTIONS =
  /(?:the following is wanted as well|additional instructions):\s*([\s\S]*?)(?=\n\n(?:remember|important)\b|$)/i
const MOST_WANTED_LINES = 12
const WANTED_CHARACTERS = 200

/** Finds lines that contain words of the instructions, or numbers if the instructions ask for numbers. */
function findWantedLines(prompt: string, texts: readonly string[]): SummaryFacts['wanted'] {
  const text = INSTRUCTIONS.exec(prompt)?.[1]?.trim() ?? ''
  if (text === '') return null
  const words = (text.toLowerCase().match(/[\p{L}\d_./-]{4,}/gu) ?? []).filter(
    (word) => !COMMON_WORDS.has(word),
  )
  const isNumeric = /\b(?:numbers?|figures?|amounts?|prices?)\b/i.test(text)
  const fits = (line: string): boolean =>
    (isNumeric && /\d/.test(line)) || words.some((word) => line.toLowerCase().includes(word))
  const lines = texts
    .filter((each) => !isHostNote(each))
    .flatMap((each) => each.split('\n').map((line) => takeCharacters(line.trim(), WANTED_CHARACTERS)))
  return { text, lines: [...new Set(lines.filter(fits))].slice(0, MOST_WANTED_LINES) }
}

const COMMON_WORDS = new Set(
  'keep every about also that this with from what which them they have please summary number numbers figures'.split(
    ' ',
  ),
)

/**
 * Lists the user's prompts in a conversation that is part of the summary prompt. opencode and pi send it in
 * `<conversation>` tags, with a label such as `[User]:` before each part.
 */
function listTranscribedPrompts(prompt: string): readonly string[] {
  const parts = readTranscript(prompt).split(/^(?=\[?(?:user|assistant|tool)\b[^\]\n:]*\]?:)/im)
  return parts.flatMap((part) => /^\[?user\]?:\s*([\s\S]*\S)/i.exec(part)?.[1] ?? [])
}

/** Finds the summaries in a message. The summary prompt lists the same nine sections, but is not a summary. */
function findSummaries({ role, content }: MessageParam, prompt: string): readonly SectionRecord<string>[] {
  return toBlocks(content)
    .map((block) => readPossibleSummary(role, block))
    .flatMap((text) => listSummaries(text === prompt ? readTranscript(prompt) : text))
}

function readPossibleSummary(role: string, block: Block): string {
  if (block.type === 'compaction') return readTextField(block, 'content')
  return role === 'user' && block.type === 'text' ? readTextField(block, 'text') : ''
}

function readTranscript(prompt: string): string {
  return /<conversation>([\s\S]*)<\/conversation>/.exec(prompt)?.[1] ?? ''
}

/** Matches the beginning of a client's message that replaces an earlier part of the conversation. */
const CONTINUED = /^This session (?:continues one|is being continued)\b/

/** Lists the user messages that a text of such a client message (`CONTINUED`) quotes as `[1] …` below a heading. */
function listQuotedMessages(text: string): readonly string[] {
  const [, list = ''] = /^User messages, word for word:\n([\s\S]*)$/m.exec(text) ?? []
  const [quoted = ''] = list.split(/\n\n(?!\[\d+\] )/)
  return quoted.split(/\n+(?=\[\d+\] )/).flatMap((each) => /^\[\d+\] ([\s\S]*\S)/.exec(each)?.[1] ?? [])
}

function dropReminders(text: string): string {
  return text.replaceAll(/<(system-reminder(?:-\d+)?)>[\s\S]*?<\/\1>/g, '').trim()
}

const HOST_NOTES = [
  /^\[earlier conversation truncated/,
  /^<(?:local-command|command)-/,
  /^\[Request interrupted/,
  /^\[(?:earlier parts|brought back|an earlier summary|call of|result:)/,
  /^\[(?:image|document|empty)\]$/,
]

function isHostNote(text: string): boolean {
  return HOST_NOTES.some((pattern) => pattern.test(text)) || isPlaceholder(text)
}

/** Checks whether a text is a placeholder for a cleared one, such as `[Old tool result content cleared]`. */
function isPlaceholder(text: string): boolean {
  return /^\[[^\]\n]*\bcleared\b[^\]\n]*\]/i.test(text.trim())
}

/** Checks whether a text was written by the user. Summaries, and notes that the client program inserted, were not. */
function isUserPrompt(text: string): boolean {
  return text !== '' && !isHostNote(text) && readSummarySections(text) === null
}

function toolCallPath({ input }: ToolCall): string | null {
  const path = input.file_path ?? input.notebook_path ?? input.path
  return typeof path === 'string' ? path : null
}

const CHANGE_TOOLS = new Set(['Edit', 'Write', 'MultiEdit', 'NotebookEdit'])

function isFileChange({ name }: ToolCall): boolean {
  return CHANGE_TOOLS.has(name)
}

interface TouchedFile {
  readonly path: string
  readonly isChanged: boolean
  /** Beginning of the text that the newest change inserted into the file; empty if there was no change. */
  readonly snippet: string
}

/** Lists the files that were read or changed, most recent first. Folders that were searched are left out. */
export function listTouchedFiles(rounds: readonly AnsweredCall[]): readonly TouchedFile[] {
  const files = new Map<string, TouchedFile>()
  for (const call of rounds.toReversed()) {
    const path = call.name === 'Grep' || call.name === 'Glob' ? null : toolCallPath(call)
    if (path === null) continue
    const known = files.get(path)
    const snippet = known?.snippet || readSnippet(call)
    files.set(path, { path, isChanged: known?.isChanged === true || isFileChange(call), snippet })
  }
  return [...files.values()]
}

function readSnippet({ input }: ToolCall): string {
  const text = input.new_string ?? input.content
  return typeof text === 'string' && !isPlaceholder(text) ? takeCharacters(text, 400) : ''
}

interface ReportedError {
  readonly text: string
  /** Path of the first file that was changed after the error; null if there is none. */
  readonly fix: string | null
  /** True if a later tool call with the same name and input succeeded. */
  readonly isSolved: boolean
}

export function listToolErrors(rounds: readonly AnsweredCall[]): readonly ReportedError[] {
  return rounds.flatMap((call, at) => {
    const { result } = call
    if (result === null || !result.isError) return []
    const later = rounds.slice(at + 1)
    const change = later.find(isFileChange)
    const again = later.find((other) => isSameCall(call, other) && other.result?.isError === false)
    return [
      {
        text: isPlaceholder(result.text) ? describeClearedError(call) : extractErrorText(result.text),
        fix: change === undefined ? null : toolCallPath(change),
        isSolved: again !== undefined,
      },
    ]
  })
}

/** Returns the first line of a tool result that contains a word such as `TypeError`; otherwise its first line. */
function extractErrorText(text: string): string {
  return takeCharacters((/^.*\b\w*Error\b.*$/m.exec(text)?.[0] ?? text.split('\n')[0] ?? '').trim(), 300)
}

/**
 * Describes an error whose text was cleared by the name and the command or file of its call, so that equal calls get
 * the same text.
 */
export function describeClearedError({ name, input }: ToolCall): string {
  const target = input.command ?? input.file_path ?? ''
  return `${name}${typeof target === 'string' && target !== '' ? ` (${takeCharacters(target, 200)})` : ''} failed; its output was cleared`
}

/** Checks whether two calls do the same. The descriptions of commands are ignored. */
function isSameCall(one: ToolCall, other: ToolCall): boolean {
  if (one.name !== other.name) return false
  const { command } = one.input
  if (typeof command === 'string') return command === other.input.command
  return JSON.stringify(one.input) === JSON.stringify(other.input)
}

/** Lists the unfinished items of the newest todo list; null if there is no list. */
export function listOpenTodos(rounds: readonly AnsweredCall[]): readonly string[] | null {
  const newest = rounds.findLast(({ name }) => name === 'TodoWrite')?.input
  if (newest === undefined) return null
  const todos: readonly unknown[] = Array.isArray(newest.todos) ? newest.todos : []
  return todos.flatMap((todo) =>
    isObject(todo) && todo.status !== 'completed' && typeof todo.content === 'string' ? [todo.content] : [],
  )
}

// Helpers for the nine sections of a summary: the titles in a summary prompt, and the section texts in a summary.

export const SUMMARY_SECTION_NUMBERS = [1, 2, 3, 4, 5, 6, 7, 8, 9] as const

export type SummarySectionNumber = (typeof SUMMARY_SECTION_NUMBERS)[number]

export type SectionRecord<T> = Readonly<Record<SummarySectionNumber, T>>

export const SUMMARY_SECTION_TITLES: SectionRecord<string> = {
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

/** Patterns that recognize a summary section by a word in its title. */
const TITLE_PATTERNS: SectionRecord<RegExp> = {
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

interface SectionHeading {
  readonly number: SummarySectionNumber
  readonly title: string
  /** Character offsets at which the heading line starts and ends. */
  readonly start: number
  readonly end: number
}

/**
 * Finds the section headings in order; null if one is missing, except the heading of the user's messages, which some
 * clients write themselves. Numbered lists inside a section do not count as headings.
 */
function findHeadings(text: string, start = 0): readonly SectionHeading[] | null {
  const headings: SectionHeading[] = []
  let from = start
  for (const number of SUMMARY_SECTION_NUMBERS) {
    const heading = findHeading(text, number, from)
    if (number === 6 && isMissingBefore(heading, findHeading(text, 7, from))) continue
    if (heading === null) return null
    headings.push(heading)
    from = heading.end
  }
  return headings
}

function isMissingBefore(heading: SectionHeading | null, next: SectionHeading | null): boolean {
  return heading === null || (next !== null && next.start < heading.start)
}

function findHeading(text: string, number: SummarySectionNumber, from: number): SectionHeading | null {
  const line = new RegExp(`^[ \\t#*]*${number}[.)][ \\t*]*([^\\n:(—]{3,60}?)[ \\t*]*(?=[:(—\\n]|$).*$`, 'gm')
  line.lastIndex = from
  for (let found = line.exec(text); found !== null; found = line.exec(text)) {
    const title = (found[1] ?? '').replace(/[.\s*]+$/, '')
    if (TITLE_PATTERNS[number].test(title))
      return { number, title, start: found.index, end: found.index + found[0].length }
  }
  return null
}

/** Returns the titles of the sections that a prompt asks for, by number; the default titles if it lists none. */
export function readRequestedSectionTitles(
  prompt: string,
): Readonly<Partial<Record<SummarySectionNumber, string>>> {
  const headings = findHeadings(prompt)
  if (headings === null) return SUMMARY_SECTION_TITLES
  return Object.fromEntries(headings.map(({ number, title }) => [number, title]))
}

/** Returns the section bodies of a summary; null if the text does not have the nine sections. */
export function readSummarySections(text: string): SectionRecord<string> | null {
  return listSummaries(text)[0] ?? null
}

/** Lists the section bodies of each summary in a text. If a client puts the model's summary into a tag, other text is ignored. */
function listSummaries(given: string): readonly SectionRecord<string>[] {
  const text = /<(model-notes(?:-\d+)?)>\n([\s\S]*?)\n<\/\1>/.exec(given)?.[2] ?? given
  const summaries: SectionRecord<string>[] = []
  let headings = findHeadings(text)
  while (headings !== null) {
    const all = headings
    const next = findHeadings(text, all.at(-1)?.end)
    const bodies = all.map(({ number, end }, index) => {
      const body = text.slice(end, all[index + 1]?.start ?? next?.[0]?.start ?? text.length).trim()
      // After the last section there may be notes of the client, or the title of the next part.
      return [number, number === 9 ? (body.split(/\n\s*\n/)[0] ?? '') : body]
    })
    summaries.push({ ...EMPTY_SECTIONS, ...Object.fromEntries(bodies) })
    headings = next
  }
  return summaries
}

const EMPTY_SECTIONS: SectionRecord<string> = {
  1: '',
  2: '',
  3: '',
  4: '',
  5: '',
  6: '',
  7: '',
  8: '',
  9: '',
}
