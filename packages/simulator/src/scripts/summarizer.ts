/**
 * The summarizer: a script that writes a summary in nine sections. The same messages always give the same summary.
 * Options make the summary worse, to test whether a client notices.
 */
import { createFillerText } from './filler-text.ts'
import { hasText, isSummaryRequest, readSummaryPrompt, type Script, takeCharacters } from './script.ts'
import {
  collectSummaryFacts,
  listOpenTodos,
  listToolErrors,
  listTouchedFiles,
  readSectionTitles,
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
  /** Default: `closed`, or `none` if the client asks for a summary and names no `<summary>` tags. */
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
      readSectionTitles(prompt),
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
  titles: SectionRecord<string>,
  { plant = {}, omit = [], paddingTokens = 0 }: SummarizerOptions,
): string {
  const sections = SUMMARY_SECTION_NUMBERS.filter((number) => !omit.includes(number)).map((number) => {
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
  const { calls, previousSummary } = matter
  const keep = (items: readonly string[]): readonly string[] =>
    items.filter((item) => !forget.some((part) => hasText(item, part)))
  const before = (number: SummarySectionNumber): readonly string[] =>
    previousSummary === null || previousSummary[number] === '' || previousSummary[number] === 'None.'
      ? []
      : keep([previousSummary[number]])
  const prompts = keep(matter.prompts)
  const errors = listToolErrors(calls)
  const files = listTouchedFiles(calls).slice(0, 40)
  return {
    1: [...before(1), ...prompts.slice(0, 1)],
    2: [...before(2), ...keep(formatToolCounts(matter))],
    3: [...keep(files.map(formatTouchedFile)), ...before(3)],
    4: [
      ...before(4),
      ...keep(
        errors.map((error) => `- ${error.text}${error.fix === null ? '' : `; then changed ${error.fix}`}`),
      ),
    ],
    5: [
      ...before(5),
      ...keep(errors.map((error) => `- ${error.isSolved ? 'solved' : 'open'}: ${error.text}`)),
    ],
    6: [...before(6), ...prompts.map((text) => `- ${text}`)],
    7: keep(listOpenTodos(calls).map((todo) => `- ${todo}`)),
    8: keep(formatCurrentWork(matter)),
    9: prompts.slice(-1).map((text) => `Go on with what was asked last: “${takeCharacters(text, 200)}”`),
  }
}

function formatToolCounts({ calls }: SummaryFacts): readonly string[] {
  const counts = new Map<string, number>()
  for (const { name } of calls) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].map(([name, count]) => `- ${name}, called ${count === 1 ? 'once' : `${count} times`}`)
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
