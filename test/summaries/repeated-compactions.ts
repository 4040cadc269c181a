/** A long session compacted again and again, with planted facts that must last and secrets that must not appear. */
import { isFullRun } from '@tidemark/core/testing'
import { type Script, withSummaries } from '@tidemark/simulator'
import { createFillerText } from '@tidemark/simulator/internal'
import { assistant, type CompactOptions, type MessageInput, toolResult, user } from 'tidemark'
import { expect } from 'vitest'
import { openTestSession, type TestSession } from '../support/test-tidemark.ts'
import { takeSnapshot } from './session-size.ts'

/** Appear in the first round only. */
export const PLANTED = {
  file: 'src/planted/tide-gate.ts',
  error: 'E4711: the planted database refused the connection',
  rule: 'A rule for all of this: amounts are in cents, never in euros.',
} as const

export const SECRETS = [
  'sk-ant-api03-Zx8Kq2mN4vB7tR1wY5uE9pL3sD6fG0hJ',
  'ghp_9aB8cD7eF6gH5iJ4kL3mN2oP1qR0sT9uV8wX',
  'AKIAIOSFODNN7TIDEGAT',
] as const

export interface ChainEnd {
  /** Tokens after each compaction. */
  readonly sizes: readonly number[]
  /** The text of each summary. */
  readonly summaries: readonly string[]
  readonly summarizers: readonly string[]
  /** User messages that the receipts list as lost. */
  readonly lost: ReadonlySet<string>
  /** The user messages before the last compaction, in order. */
  readonly said: readonly string[]
  /** The id of the record with each user message, by which the history returns it in full. */
  readonly recordIds: ReadonlyMap<string, string>
  readonly target: number
}

export interface ChainOptions {
  readonly rounds: number
  readonly window: number
  readonly compact: CompactOptions
  readonly summary?: Script
  /** Filler tokens in each prompt. */
  readonly promptTokens?: number
}

const answers: Script = () => ({ blocks: [{ type: 'text', text: 'That is done.' }] })

export async function compactRepeatedly(options: ChainOptions): Promise<ChainEnd> {
  const { rounds, window, summary, promptTokens = 0 } = options
  // Each round is compacted, however little that saves.
  const policy = { compact: { maximumPercentOfReplaced: 100 } }
  const script = withSummaries(answers, summary)
  const stage = await openTestSession({ script, window, history: false, policy })
  const end = createEnd()
  const unsummarized: string[] = []
  for (let round = 1; round <= rounds; round += 1) {
    const { prompts, talk } = buildRound(round, window, promptTokens)
    await stage.session.append(...talk)
    const last = `Round ${round} ends here: write down step ${round * 7}.`
    expect(await stage.session.run(last).outcome).toMatchObject({ ok: true })
    unsummarized.push(...prompts, last)
    const committed = await stage.session.compact(options.compact)
    // A round that saves nothing is refused with nothing lost; the next one has more to save.
    if (!committed.ok && committed.reason === 'not-smaller') continue
    if (!committed.ok) throw new Error(`round ${round}: ${committed.message}`)
    end.said.push(...unsummarized.splice(0))
    end.sizes.push(committed.compaction.tokensAfter)
    end.summarizers.push(committed.compaction.summarizer)
    end.summaries.push(listSummaries(stage).at(-1) ?? '')
  }
  checkNothingInvented(stage, end.summaries)
  const recordIds = listRecordIds(stage)
  return {
    ...end,
    lost: listLost(stage),
    recordIds,
    target: stage.session.contextRemaining().lines?.target ?? 0,
  }
}

/** Most rounds until a session has compacted by itself as often as it is asked to. */
const MOST_ROUNDS = 600

/** Works on until the session has compacted itself so many times with notes from the log. */
export async function compactWithNotesRepeatedly(options: {
  readonly compactions: number
  readonly window: number
}): Promise<ChainEnd> {
  const { compactions, window } = options
  const stage = await openTestSession({
    script: withSummaries(answers),
    window,
    history: false,
    policy: { notes: { extractor: 'local' } },
  })
  const end = createEnd()
  const said: string[] = []
  for (let round = 1; round <= MOST_ROUNDS && end.sizes.length < compactions; round += 1) {
    const { prompts, talk } = buildRound(round, window, 0)
    await stage.session.append(...talk)
    const last = `Round ${round} ends here: write down step ${round * 7}.`
    const before = countCompactions(stage)
    expect(await stage.session.run(last).outcome).toMatchObject({ ok: true })
    said.push(...prompts)
    if (countCompactions(stage) > before) {
      const [done] = stage.events.filter((event) => event.type === 'compact').slice(-1)
      end.said.splice(0, end.said.length, ...said)
      end.sizes.push(done?.compaction.tokensAfter ?? 0)
      end.summarizers.push(done?.compaction.summarizer ?? '')
      end.summaries.push(listSummaries(stage).at(-1) ?? '')
    }
    said.push(last)
  }
  checkNothingInvented(stage, end.summaries)
  return {
    ...end,
    lost: listLost(stage),
    recordIds: listRecordIds(stage),
    target: stage.session.contextRemaining().lines?.autoCompact ?? 0,
  }
}

function countCompactions({ events }: TestSession): number {
  return events.filter(({ type }) => type === 'compact').length
}

function listRecordIds(stage: TestSession): ReadonlyMap<string, string> {
  const records = takeSnapshot(stage).log.map((line) => JSON.parse(line))
  const users = records.filter(({ type, isCompactSummary }) => type === 'user' && isCompactSummary !== true)
  return new Map(users.map(({ message, uuid }) => [textOf(message.content), String(uuid)]))
}

/** From all receipts, automatic compactions included. */
function listLost({ events }: TestSession): ReadonlySet<string> {
  const receipts = events.flatMap((event) => (event.type === 'compact' ? [event.compaction.receipt] : []))
  return new Set(receipts.flatMap(({ lost }) => lost.userMessages.map(({ text }) => text)))
}

function createEnd() {
  const texts = (): string[] => []
  const sizes: number[] = []
  return { sizes, summaries: texts(), summarizers: texts(), said: texts() }
}

interface Round {
  readonly prompts: readonly string[]
  readonly talk: readonly MessageInput[]
}

function buildRound(round: number, window: number, promptTokens: number): Round {
  const long = round === 3 ? [`A long story: ${createFillerText('story', 1_200)} That is all of it.`] : []
  const planted = round === 1 ? [PLANTED.rule] : []
  const more = promptTokens === 0 ? '' : ` ${createFillerText(`prompt/${round}`, promptTokens)}`
  const prompts = [`Round ${round}: mend module-${round}, please.${more}`, ...planted, ...long]
  const told = round === 2 ? [`The key of the service is ${SECRETS[0]}, the token ${SECRETS[1]}.`] : []
  return { prompts, talk: [...[...prompts, ...told].map((text) => user(text)), ...buildWork(round, window)] }
}

function buildWork(round: number, window: number): readonly MessageInput[] {
  const file = round === 1 ? PLANTED.file : `src/module-${round}/part.ts`
  const words = Math.ceil(window / 30)
  const secret = SECRETS[round % SECRETS.length]
  return [
    buildCall(round, 'a', 'Read', { file_path: file }),
    toolResult(`toolu_${round}a`, `const key = '${secret}'\n${createFillerText(`read/${round}`, words)}`),
    buildCall(round, 'b', 'Edit', {
      file_path: file,
      old_string: `was ${round}`,
      new_string: `is ${round} '${secret}'`,
    }),
    toolResult(`toolu_${round}b`, 'The file was changed.'),
    buildCall(round, 'c', 'Bash', {
      command: round === 1 ? 'npm run planted' : `npm test -- module-${round}`,
    }),
    round === 1
      ? toolResult(`toolu_${round}c`, `with ${SECRETS[2]}\n${PLANTED.error}`, { isError: true })
      : toolResult(`toolu_${round}c`, `ok ${round}\n${createFillerText(`run/${round}`, words)}`),
    assistant(`module-${round} is mended. ${createFillerText(`told/${round}`, words)}`),
  ]
}

function buildCall(round: number, part: string, name: string, input: object): MessageInput {
  return assistant({
    content: [
      { type: 'text', text: `Step ${part} of ${round}.` },
      { type: 'tool_use', id: `toolu_${round}${part}`, name, input },
    ],
  })
}

function listSummaries(stage: TestSession): readonly string[] {
  return takeSnapshot(stage).log.flatMap((line) => {
    const record = JSON.parse(line)
    return record.isCompactSummary === true ? [textOf(record.message.content)] : []
  })
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map(({ text }) => String(text ?? '')).join('\n') : ''
}

const PATH = /\b(?:src|test|lib)\/[\w./-]*\w/g
const QUOTED = /“([^”]{12,})”/g

/** Each path and each quoted sentence of a summary occurs literally in the rest of the log. */
function checkNothingInvented(stage: TestSession, summaries: readonly string[]): void {
  const told = takeSnapshot(stage)
    .log.filter((line) => JSON.parse(line).isCompactSummary !== true)
    .flatMap((line) => listTexts(JSON.parse(line)))
    .join('\n')
  const paths = new Set(summaries.flatMap((text) => text.match(PATH) ?? []))
  expect(paths.size).toBeGreaterThan(10)
  expect([...paths].filter((path) => !told.includes(path))).toEqual([])
  const quotes = summaries.flatMap((text) => [...text.matchAll(QUOTED)].map(([, quote = '']) => quote))
  expect(quotes.filter((quote) => !told.includes(quote.replace(/…$/, '')))).toEqual([])
}

function listTexts(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(listTexts) : []
}

/** How often a chain is compacted; fewer times in `npm test`. */
export const ROUNDS = isFullRun() ? 20 : 15

/**
 * User messages that a summary does not contain: in full, or both ends of a long one, or its beginning with the id of the
 * record that has all of it.
 */
function missingFrom(summary: string, { said, recordIds }: ChainEnd): readonly string[] {
  return said.filter((text) => {
    if (summary.includes(text)) return false
    if (text.length <= LONG_MESSAGE || !summary.includes(text.slice(0, LONG_BEGINNING))) return true
    const reference = `in full in record ${recordIds.get(text)}`
    return !summary.includes(reference) && !summary.includes(text.slice(-500))
  })
}

/** Characters of a message that may be cut, and of its beginning that must stay. */
const [LONG_MESSAGE, LONG_BEGINNING] = [4_000, 120]

/** The session stays small, what must last is in the last summary, and no summary has a secret. */
export function expectLasting(end: ChainEnd): void {
  const { sizes, summaries, summarizers, target } = end
  expect([sizes.length, summaries.length]).toEqual([ROUNDS, ROUNDS])
  expect(sizes.filter((size) => size > target)).toEqual([])
  const last = summaries.at(-1) ?? ''
  expect(missingFrom(last, end)).toEqual([])
  expect(Object.values(PLANTED).filter((text) => !last.includes(text))).toEqual([])
  // The newest of them: how many depends on the room. A model that repeats a summary from the log repeats this line as well.
  const newest = summarizers.at(-1) === 'model' && summarizers.includes('local') ? '\\d+' : '1\\d'
  expect(last).toMatch(new RegExp(`changed since: module-${newest}/part\\.ts, module-${newest}/part\\.ts`))
  expect(last).toContain('The key of the service is [redacted')
  const all = summaries.join('\n')
  expect(SECRETS.filter((secret) => all.includes(secret))).toEqual([])
}

/**
 * Every compaction used notes, and the session stays below its threshold. A user message for which a small window has no room
 * is on a receipt, and the last notes say that there are more.
 */
export function expectLastingNotes(end: ChainEnd, compactions: number): void {
  const { sizes, summaries, summarizers, target, lost } = end
  expect(summarizers).toEqual(Array.from({ length: compactions }, () => 'notes'))
  expect(sizes.filter((size) => size >= target)).toEqual([])
  const last = summaries.at(-1) ?? ''
  const missing = missingFrom(last, end)
  expect(missing.filter((text) => !lost.has(text))).toEqual([])
  expect(last.includes(' more in the transcript: ')).toBe(missing.length > 0)
  expect(last).toContain(end.said[0])
  expect(SECRETS.filter((secret) => summaries.join('\n').includes(secret))).toEqual([])
}

/** More user text than there is room for: the size stays bounded, and the receipts list what was lost. */
export async function expectBounded(options: Omit<ChainOptions, 'rounds' | 'promptTokens'>): Promise<void> {
  const end = await compactRepeatedly({ ...options, rounds: ROUNDS, promptTokens: 900 })
  const { sizes, summaries, said, lost, target } = end
  expect(sizes.length).toBeGreaterThan(ROUNDS / 2)
  expect(Math.max(...sizes)).toBeLessThan(target * 1.25)
  const missing = missingFrom(summaries.at(-1) ?? '', end)
  expect(missing.length).toBeGreaterThan(0)
  expect(missing.filter((text) => !lost.has(text))).toEqual([])
  expect(missing).not.toContain(said.at(-1))
}
