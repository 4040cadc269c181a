/** Summaries upon summaries: what holds after twenty rounds, without a model and with one that says next to nothing. */

import { continueSession, GeneratorChoices, generateSession } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { extractSessionFacts } from '../../src/facts/session-facts.ts'
import { collectJsonStrings } from '../../src/facts/tool-calls.ts'
import { toBlocks } from '../../src/log/block.ts'
import type { KnownRecord } from '../../src/log/record.ts'
import { hasUserPrompt } from '../../src/summary/summary-pieces.ts'
import { findNamesInText } from '../../src/text/code-in-text.ts'
import { redact } from '../../src/text/redact.ts'
import { CodingSession } from './coding-session.ts'
import {
  buildLedger,
  estimate,
  gateRules,
  repairSummary,
  summaryRules,
  writeLocalSummary,
} from './summary-rules.ts'

const ROUNDS = 20
const SECRET = `ghp_${'aB3'.repeat(12)}`
const PLANTED = [
  'Never touch port 5417, whatever happens.',
  '/app/first/planted_file.ts',
  'const plantedName = 1',
  'plantedError: no such port',
  'Write the first report',
]

type Summarise = (history: readonly KnownRecord[]) => string

const local: Summarise = (history) => writeLocalSummary(extractSessionFacts(history), summaryRules).text
const gated: Summarise = (history) =>
  repairSummary('Summary:\nWork went on.', extractSessionFacts(history), gateRules).text

function firstRound(work: CodingSession): void {
  work.says(PLANTED[0] ?? '')
  work.edits(PLANTED[1] ?? '', PLANTED[2] ?? '')
  work.runs('serve', PLANTED[3] ?? '', true)
  work.calls('TaskCreate', { subject: PLANTED[4] }, 'Task #1 created')
}

function laterRound(work: CodingSession, round: number): void {
  work.says(`Round ${round}: change step_${round}, with ${SECRET} where it asks for one.`)
  work.edits(`/app/src/round_${round}.ts`, `export const stepNumber${round} = ${round}`)
  work.runs(`make step-${round}`, `stepError${round} near line ${round}`, round % 2 === 0)
  work.calls('TaskCreate', { subject: `Finish step ${round}` }, `Task #${round + 10} created`)
  work.calls('TaskUpdate', { taskId: String(round + 10), status: 'completed' }, 'ok')
  work.answers(`Step ${round} is done.`)
}

function rounds(summarise: Summarise): {
  readonly work: CodingSession
  readonly summaries: readonly string[]
} {
  const work = new CodingSession()
  firstRound(work)
  const summaries = Array.from({ length: ROUNDS }, (_, round) => {
    laterRound(work, round + 1)
    const summary = summarise(work.history)
    work.compacts(summary)
    return summary
  })
  return { work, summaries }
}

/**
 * Everything in the log but its summaries. A summary that is the first message counts: what it summarised is not in
 * the log, so a later summary quotes it.
 */
function logText(history: readonly KnownRecord[]): string {
  const first = history.find(({ type }) => type === 'user' || type === 'assistant')
  return history
    .flatMap((record) => {
      if (record.type === 'attachment') return collectJsonStrings(record.attachment)
      if (record.type !== 'user' && record.type !== 'assistant') return []
      if (record.isCompactSummary === true && record !== first) return []
      return toBlocks(record.message.content).flatMap((block) => collectJsonStrings(block))
    })
    .join('\n')
}

function invented(summary: string, history: readonly KnownRecord[]): readonly string[] {
  const said = findNamesInText(logText(history))
  const { files, identifiers } = findNamesInText(summary)
  const bases = new Set([...said.files].map((path) => path.split('/').at(-1)))
  return [
    ...[...identifiers.keys()].filter((name) => !said.identifiers.has(name)),
    ...[...files].filter((path) => !bases.has(path.split('/').at(-1))),
  ]
}

describe.each([
  ['without a model', local],
  ['with a model that says next to nothing', gated],
] as const)('twenty rounds %s', (_, summarise) => {
  const { work, summaries } = rounds(summarise)
  const last = summaries.at(-1) ?? ''

  it('facts planted in the first are found in the last', () => {
    expect(PLANTED.filter((fact) => !last.includes(fact))).toEqual([])
  })

  it('every message of the person is there, in each round', () => {
    expect(summaries.map((summary) => new Set(summary.match(/\[\d+\] Round \d+: change/g)).size)).toEqual(
      summaries.map((_, round) => round + 1),
    )
    const { messages } = extractSessionFacts(work.history)
    expect(messages).toHaveLength(ROUNDS + 1)
    expect(messages.filter(({ text }) => !last.includes(text))).toEqual([])
  })

  it('each says a thing once, and grows by what the round added alone', () => {
    const sizes = summaries.map((summary) => estimate.text(summary))
    const growth = sizes.slice(1).map((size, at) => size - (sizes[at] ?? 0))
    expect(Math.max(...growth)).toBeLessThan(200)
    expect(last.split('Round 1: change').length - 1).toBe(1)
  })

  it('done tasks are never pending', () => {
    const pending = /7\. Pending tasks\n([\s\S]*?)\n\n/.exec(last)?.[1] ?? ''
    expect(pending.match(/Finish step/g)).toBe(null)
  })

  it('nothing is invented, and secrets are gone', () => {
    expect(invented(last, work.history)).toEqual([])
    expect(
      [...summaries, buildLedger(work.history, { tokens: 1_500, estimate }).text].join().includes(SECRET),
    ).toBe(false)
  })
})

describe('the ledger over twenty rounds', () => {
  it('stays within its tokens and names the newest file first', () => {
    const work = new CodingSession()
    firstRound(work)
    const ledgers = Array.from({ length: ROUNDS }, (_, round) => {
      laterRound(work, round + 1)
      const ledger = buildLedger(work.history, { tokens: 300, estimate })
      work.compacts(ledger.text)
      return ledger
    })
    expect(ledgers.map(({ lines }) => lines.join().match(/round_\d+\.ts/)?.[0])).toEqual(
      ledgers.map((_, round) => `round_${round + 1}.ts`),
    )
    expect(ledgers.every(({ tokens }) => tokens <= 300)).toBe(true)
    expect(ledgers.flatMap(({ text }) => invented(text, work.history))).toEqual([])
  })
})

describe('of any session, round upon round', () => {
  const numbers = fc.array(fc.nat({ max: 0xffff }), { minLength: 10, maxLength: 60, size: 'max' })

  it('a local summary is bounded, holds every message it should, and invents nothing', () => {
    fc.assert(
      fc.property(fc.array(numbers, { minLength: 1, maxLength: ROUNDS, size: 'max' }), (stories) => {
        const { builder } = generateSession(new GeneratorChoices(stories[0] ?? []))
        const work = new CodingSession(builder)
        for (const story of stories.slice(1)) {
          continueSession(builder, new GeneratorChoices(story))
          const facts = extractSessionFacts(work.history)
          const { text, tokens, leftOut } = writeLocalSummary(facts, summaryRules)
          expect(tokens).toBeLessThanOrEqual(summaryRules.tokens)
          const missing = facts.messages.filter((message) => !hasUserPrompt(text, message))
          expect(missing.filter(({ uuid }) => !leftOut.includes(uuid) && !text.includes(uuid))).toEqual([])
          expect(invented(text, work.history)).toEqual([])
          expect(redact(text)).toBe(text)
          work.compacts(text)
        }
      }),
      { numRuns: 12 },
    )
  })
})
