/**
 * The summarizer: a script that writes a summary in the sections that the request asks for. The same messages always
 * give the same summary. Options make the summary worse, to test whether a client notices.
 */
import { createFillerText } from './filler-text.ts'
import { containsText, isSummaryRequest, readSummaryPrompt, type Script, takeCharacters } from './script.ts'
import {
  collectSummaryFacts,
  describeClearedError,
  listOpenTodos,
  listToolErrors,
  listTouchedFiles,
  readRequestedSectionTitles,
  type SectionRecord,
  SUMMARY_SECTION_NUMBERS,
  type SummaryFacts,
  type SummarySectionNumber,
} from './summary-facts.ts'

interface SummarizerOptions {
  /** Text to add to a section, by section number. */
  readonly plant?: Readonly<Partial<Record<SummarySectionNumber, string>>>
  /** Texts to forget: user messages, files, errors and todos that contain one of them are left out. */
  readonly forget?: readonly (string | RegExp)[]
  /** Numbers of the sections to leave out. */
  readonly omit?: readonly SummarySectionNumber[]
  /** True to write an `<analysis>` section before the summary. Default: true if the prompt asks for one. */
  readonly analysis?: boolean
  /** Default: `closed`. For a client that asks for a summary without naming `<summary>` tags: `none`. */
  readonly tags?: 'closed' | 'unclosed' | 'none'
  /** Tokens of filler text after the last section. */
  readonly paddingTokens?: number
}

/**
 * Creates a script that answers every request with a summary of the conversation.
 *
 * @example
 * const forgetful = createSummarizer({ forget: ['cookies'], omit: [2], tags: 'unclosed' })
 * const simulator = createSimulator({ script: withSummaries(echo, forgetful) })
 */
export function createSummarizer(options: SummarizerOptions = {}): Script {
  return (request) => {
    const prompt = readSummaryPrompt(request)
    const matter = collectSummaryFacts(request.messages, prompt)
    const text = writeSummaryText(
      writeSectionBodies(matter, options.forget ?? []),
      readRequestedSectionTitles(prompt),
      options,
    )
    const isUntagged =
      request.kind === 'message' && !prompt.includes('<summary>') && isSummaryRequest(request)
    const tags = options.tags ?? (isUntagged ? 'none' : 'closed')
    const isAnalyzed = options.analysis ?? prompt.includes('<analysis>')
    const analysis = isAnalyzed ? `<analysis>\n${writeAnalysis(matter)}\n</analysis>\n\n` : ''
    return {
      blocks: [{ type: 'text', text: `${analysis}${addSummaryTags(text, tags)}` }],
    }
  }
}

export const summarizer: Script = createSummarizer()

/**
 * Creates a script in which `summary` answers summary requests and `script` answers all others. A summary request
 * comes from the provider itself, or from a client that compacts: its last message demands `<summary>` tags, or it is a
 * compaction request of opencode or pi.
 *
 * @example
 * const simulator = createSimulator({ script: withSummaries(createCoder().script) })
 */
export function withSummaries(script: Script, summary: Script = summarizer): Script {
  return (request, context) =>
    isSummaryRequest(request) ? summary(request, context) : script(request, context)
}

function addSummaryTags(text: string, tags: 'closed' | 'unclosed' | 'none'): string {
  if (tags === 'none') return text
  return tags === 'closed' ? `<summary>\n${text}\n</summary>` : `<summary>\n${text}`
}

function writeSummaryText(
  bodies: SectionRecord<readonly string[]>,
  titles: ReturnType<typeof readRequestedSectionTitles>,
  { plant = {}, omit = [], paddingTokens = 0 }: SummarizerOptions,
): string {
  const asked = SUMMARY_SECTION_NUMBERS.filter((number) => titles[number] !== undefined)
  const sections = asked
    .filter((number) => !omit.includes(number))
    .map((number) => {
      const planted = plant[number]
      const lines = [...bodies[number], ...(planted === undefined ? [] : [planted])]
      return `${number}. ${titles[number]}:\n${lines.length === 0 ? 'None.' : lines.join('\n')}`
    })
  return [...sections, ...(paddingTokens > 0 ? [createFillerText('padding', paddingTokens)] : [])].join(
    '\n\n',
  )
}

function writeSectionBodies(
  matter: SummaryFacts,
  forget: readonly (string | RegExp)[],
): SectionRecord<readonly string[]> {
  const { calls, previousSummaries } = matter
  const keep = (items: readonly string[]): readonly string[] =>
    items.filter((item) => !forget.some((part) => containsText(item, part)))
  const before = (number: SummarySectionNumber): readonly string[] => [
    ...new Set(
      keep(previousSummaries.map((summary) => summary[number]).filter((body) => !isEmptyBody(body))),
    ),
  ]
  // Sections about the end of the conversation come from the newest summary that has them.
  const orNewest = (lines: readonly string[] | null, number: SummarySectionNumber): readonly string[] =>
    lines === null ? before(number).slice(-1) : keep(lines)
  const prompts = keep(matter.prompts)
  const errors = listToolErrors(calls)
  const files = listTouchedFiles(calls).slice(0, 40)
  return {
    1: [...before(1), ...prompts.slice(0, 1)],
    2: keep([...new Set([...formatWanted(matter), ...formatTools(calls, before(2))])]),
    3: joinFiles(keep(files.map(formatTouchedFile)), before(3)),
    4: joinEntries(
      before(4),
      keep(
        errors.map((error) => `- ${error.text}${error.fix === null ? '' : `; then changed ${error.fix}`}`),
      ),
    ),
    5: joinEntries(
      before(5).map((body) => settleEntries(body, calls)),
      keep(errors.map((error) => `- ${error.isSolved ? 'solved' : 'open'}: ${error.text}`)),
    ),
    6: [...before(6), ...prompts.map((text) => `- ${text}`)],
    7: orNewest(listOpenTodos(calls)?.map((todo) => `- ${todo}`) ?? null, 7),
    8: orNewest(matter.lastText === '' && calls.length === 0 ? null : formatCurrentWork(matter), 8),
    9: orNewest(prompts.length === 0 ? null : [formatNextStep(matter, prompts.at(-1) ?? '')], 9),
  }
}

function isEmptyBody(body: string): boolean {
  return body === '' || /^none\.?$/i.test(body)
}

/** Marks open problems of an earlier summary as solved if their command has succeeded since. */
function settleEntries(body: string, calls: SummaryFacts['calls']): string {
  const solved = new Set(calls.filter(({ result }) => result?.isError === false).map(describeClearedError))
  return body.replaceAll(/^- open: (.*)$/gm, (entry, text) =>
    solved.has(text) ? `- solved: ${text}` : entry,
  )
}

/** Adds new entries after those of earlier summaries, without repeating any. */
function joinEntries(before: readonly string[], added: readonly string[]): readonly string[] {
  const old = before.flatMap((body) => body.split(/\n(?=- )/))
  return [...new Set(old)].filter((entry) => !added.includes(entry)).concat(added)
}

const FILE_ENTRY = /^- (\S+) \((?:read|changed)\)(?:\n```\n[\s\S]*?\n```)?$/gm

/** Adds the files of earlier summaries after the new ones, newest first, each once. A changed file is not listed as read. */
function joinFiles(added: readonly string[], before: readonly string[]): readonly string[] {
  const bodies = [added.join('\n'), ...before.toReversed()]
  const foreign = before.filter((body) => body.replaceAll(FILE_ENTRY, '').trim() !== '')
  const entries = new Map<string, string>()
  for (const body of bodies.filter((each) => !foreign.includes(each)))
    for (const [entry, path = ''] of body.matchAll(FILE_ENTRY)) {
      const known = entries.get(path)
      if (known === undefined || (known.endsWith('(read)') && !entry.endsWith('(read)')))
        entries.set(path, entry)
    }
  return [...entries.values(), ...foreign]
}

function formatNextStep({ isAnswered, calls }: SummaryFacts, prompt: string): string {
  const asked = `“${takeCharacters(prompt.replaceAll(/\s+/g, ' '), 200)}”`
  if (!isAnswered) return `Go on with what was asked last: ${asked}`
  const [todo] = listOpenTodos(calls) ?? []
  return todo === undefined
    ? `Wait for the user: what was asked last has been answered: ${asked}`
    : `The first open todo: ${todo}`
}

/** Formats the user's wishes for the summary, with the lines of the conversation that match them. */
function formatWanted({ wanted }: SummaryFacts): readonly string[] {
  if (wanted === null) return []
  return [`- Wanted in this summary: ${wanted.text}`, ...wanted.lines.map((line) => `  - ${line}`)]
}

const TOOL_LINE = /^- Tools used: (.*)$/

/** Lists the names of the used tools, with those of earlier summaries first. Other lines of earlier summaries are kept. */
function formatTools(calls: SummaryFacts['calls'], before: readonly string[]): readonly string[] {
  const lines = before.flatMap((body) => body.split('\n'))
  const earlier = lines.flatMap((line) => TOOL_LINE.exec(line)?.[1]?.split(', ') ?? [])
  const names = [...new Set([...earlier, ...calls.map(({ name }) => name)])]
  const others = lines.filter((line) => !TOOL_LINE.test(line))
  return [...new Set(others), ...(names.length === 0 ? [] : [`- Tools used: ${names.join(', ')}`])]
}

function formatTouchedFile({
  path,
  isChanged,
  snippet,
}: ReturnType<typeof listTouchedFiles>[number]): string {
  const head = `- ${path} (${isChanged ? 'changed' : 'read'})`
  return snippet === '' ? head : `${head}\n\`\`\`\n${snippet}\n\`\`\``
}

function formatCurrentWork({ lastText, calls }: SummaryFacts): readonly string[] {
  const call = calls.at(-1)
  const done =
    call === undefined ? [] : [`Last call: ${call.name} ${takeCharacters(JSON.stringify(call.input), 300)}`]
  return [...(lastText === '' ? [] : [takeCharacters(lastText, 1_000)]), ...done]
}

/** Writes a short review of the conversation, which clients are expected to remove. */
function writeAnalysis({ prompts, calls }: SummaryFacts): string {
  const walked = calls
    .slice(-40)
    .map(({ name, result }) => `- ${name}${result?.isError ? ', which failed' : ''}`)
  return [
    `The user wrote ${prompts.length} messages and ${calls.length} tool calls were made. The last ones:`,
    ...walked,
  ].join('\n')
}
