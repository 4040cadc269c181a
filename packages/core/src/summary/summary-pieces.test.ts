import { describe, expect, it } from 'vitest'
import { CodingSession } from '../../test/summarize/coding-session.ts'
import {
  estimate,
  gateRules,
  repairSummary,
  summaryRules,
  writeLocalSummary,
} from '../../test/summarize/summary-rules.ts'
import { SessionBuilder } from '../../testing/session-builder.ts'
import { extractSessionFacts } from '../facts/session-facts.ts'
import type { Block } from '../log/block.ts'
import type { KnownRecord } from '../log/record.ts'
import { createPolicy } from '../policy/create-policy.ts'
import {
  computeUserMessageBudget,
  createMissingCharacterCounter,
  fitSummaryPieces,
  fitUserPrompts,
  hasUserPrompt,
  type SummaryPiece,
} from './summary-pieces.ts'

/** One token a character. */
const countTokens = (text: string): number => text.length

function createPiece(given: Partial<SummaryPiece>): SummaryPiece {
  return { section: 1, rank: 0, order: 0, full: '', short: null, groups: [], id: null, ...given }
}

function fitTexts(
  pieces: readonly SummaryPiece[],
  total: number,
  caps: readonly (readonly [string, number])[] = [],
) {
  const { placed, leftOut } = fitSummaryPieces(pieces, { tokens: total, caps: new Map(caps), countTokens })
  return [placed.map(({ text }) => text).join(' '), leftOut.map(({ full }) => full).join(' ')]
}

describe('pieces in a room', () => {
  const pieces = [
    createPiece({ rank: 1, order: 2, full: 'dddddd', short: 'd' }),
    createPiece({ rank: 0, order: 1, full: 'aaaa', short: 'a' }),
    createPiece({ rank: 0, order: 0, full: 'bbbb', short: 'b' }),
    createPiece({ rank: 2, order: 3, full: 'ccc' }),
  ]
  it.each([
    [99, 'bbbb aaaa dddddd ccc', ''],
    [14, 'bbbb aaaa dddddd', 'ccc'],
    [12, 'bbbb aaaa d ccc', ''],
    [7, 'b aaaa d', 'ccc'],
    [2, 'b a', 'dddddd ccc'],
    [1, 'a', 'dddddd bbbb ccc'],
    [0, '', 'dddddd aaaa bbbb ccc'],
  ])('of %d: each of a rank in short before any in full', (total, placed, leftOut) => {
    expect(fitTexts(pieces, total)).toEqual([placed, leftOut])
  })

  it('share the cap of their group', () => {
    const grouped = [
      createPiece({ full: 'aaaa', groups: ['g'] }),
      createPiece({ full: 'bb', groups: ['g'], order: 1 }),
      createPiece({ full: 'cc', groups: ['h'], order: 2 }),
    ]
    expect(fitTexts(grouped, 99, [['g', 4]])).toEqual(['aaaa cc', 'bb'])
  })

  it('stand by section, then in order', () => {
    expect(
      fitTexts([createPiece({ section: 2, full: 'z' }), createPiece({ section: 1, order: 9, full: 'y' })], 9),
    ).toEqual(['y z', ''])
  })
})

const requirements = Array.from(
  { length: 300 },
  (_, index) => `Requirement ${index + 1}: field_${index * 7} must be checked before field_${index * 11}.`,
).join('\n')

const limits = (totalTokens: number, eachTokens = totalTokens) => ({ totalTokens, eachTokens, estimate })

describe('what the user typed', () => {
  it('stands with what it answers, refuses or asks for', () => {
    const work = new CodingSession()
    const refused =
      "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n"
    work.says('Set it up.')
    work.calls(
      'AskUserQuestion',
      { questions: [{ question: 'Which port?', options: [{ label: '80' }, { label: '8080' }] }] },
      'User has answered your questions: "Which port?"="8080". You can now continue with the user\'s answers in mind.',
    )
    work.runs('git push', `${refused}not on main`, true)
    work.builder.attachment({
      type: 'queued_command',
      prompt: 'and keep the tests green at all times please',
    })
    work.answers('There are two ways:\n1. a proxy\n2. a flag\nWhich do you want?')
    work.says('1+2')
    work.builder.user('<command-name>/fix</command-name><command-args>the login page</command-args>')
    work.answers('Done.')
    const { messages } = extractSessionFacts(work.history)
    expect(fitUserPrompts(messages, limits(20_000))).toEqual([
      'Set it up.',
      'Asked: "Which port?" (options: 80 | 8080)\nAnswered: 8080',
      '(refusing Bash `git push`) not on main',
      '(sent while the model worked) and keep the tests green at all times please',
      '(answering "There are two ways:\n1. a proxy\n2. a flag\nWhich do you want?") 1+2',
      '/fix the login page',
    ])
    expect(messages.map(({ isCorrection }) => isCorrection)).toEqual([
      false,
      false,
      true,
      false,
      false,
      false,
    ])
  })

  it('is in a local summary and in a repaired one', () => {
    const work = new CodingSession()
    work.says(requirements)
    work.answers('Understood.')
    const facts = extractSessionFacts(work.history)
    const [message] = facts.messages
    if (message === undefined) throw new Error('no message')
    expect(hasUserPrompt(writeLocalSummary(facts, summaryRules).text, message)).toBe(true)
    const repaired = repairSummary('Summary:\nNothing.', facts, gateRules).text
    expect(hasUserPrompt(repaired, message)).toBe(true)
  })
})

describe('a short reply', () => {
  const work = new CodingSession()
  work.answers(`Shall I push ${'🙂'.repeat(200)} now?`)
  work.says('no')
  work.answers('Understood.')
  const [message] = extractSessionFacts(work.history).messages
  if (message === undefined) throw new Error('no message')

  it.each([
    ['The cause is known.', false],
    ['There is no cause.', false],
    ['5. Problem solving\nThe test prints "no" at its end.', false],
    ['- no', true],
    ['[1] no', true],
    ['**User**: "no"', true],
    ['no (answering "Shall I push?")', true],
    [`6. All user messages\n[1] ${message.lead}no`, true],
    ['6. All user messages\n- yes\n7. Pending tasks\n- The test prints "no" at its end.', false],
  ])('is found only as a whole line: %j', (text, isThere) => {
    expect(hasUserPrompt(text, message)).toBe(isThere)
    expect(createMissingCharacterCounter(text)(message)).toBe(isThere ? 0 : 2)
  })

  it('stands with the end of what it answers, never cut inside a character', () => {
    expect(message.lead).toMatch(/^\(answering "…🙂+ now\?"\) $/u)
    expect(message.lead.isWellFormed()).toBe(true)
  })

  it('is a change of course if it follows an interruption in the same message', () => {
    const stopped = new CodingSession()
    stopped.says('[Request interrupted by user]\nno, use pnpm instead')
    stopped.says('go on')
    const { messages } = extractSessionFacts(stopped.history)
    expect(messages.map(({ isCorrection }) => isCorrection)).toEqual([true, false])
  })
})

describe('the budget of user messages', () => {
  it.each<[string, object, number | null, number, number]>([
    ['is a third of the target', {}, 83_500, 27_555, 27_555],
    ['grows with the window', {}, 483_500, 159_555, 159_555],
    ['follows the share of the policy', { userMessagesPercent: 50 }, 52_000, 26_000, 26_000],
    ['has limits of its own', { userMessagesTokens: 10_000, userMessageTokens: 500 }, 52_000, 500, 10_000],
    ['has no end without a target', {}, null, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
  ])('%s', (_, ledger, target, each, total) => {
    expect(computeUserMessageBudget(createPolicy({ ledger }).ledger, target)).toEqual({ each, total })
  })
})

describe('a budget that is too small for all messages', () => {
  const work = new CodingSession()
  work.says(requirements)
  work.says('Only the essentials, then.')
  work.says(requirements.slice(0, 8_000))
  work.answers('Understood.')
  const { messages } = extractSessionFacts(work.history)
  const cutTexts = (total: number): readonly string[] => fitUserPrompts(messages, limits(total))

  it('cuts the longest first, in the middle, with a pointer to the record', () => {
    const [first = '', second, third] = cutTexts(6_000)
    expect([second, third]).toEqual([messages[1]?.text, messages[2]?.text])
    expect(first).toContain(`in full in record ${messages[0]?.uuid}`)
    expect([first.startsWith('Requirement 1:'), first.endsWith('field_3289.')]).toEqual([true, true])
  })

  it('is used, not undercut', () => {
    for (const total of [1_000, 2_000, 6_000, 20_000]) {
      const tokens = cutTexts(total).reduce((sum, text) => sum + estimate.text(text), 0)
      expect(tokens).toBeLessThanOrEqual(total)
      if (total < 20_000) expect(tokens).toBeGreaterThan(0.8 * total)
    }
    expect(cutTexts(20_000)).toEqual(messages.map(({ text }) => text))
  })

  it('never cuts a message that the model has not answered', () => {
    work.says(requirements)
    const texts = fitUserPrompts(extractSessionFacts(work.history).messages, limits(1_000))
    expect(texts.at(-1)).toBe(requirements)
  })

  it('counts what is missing', () => {
    const [message] = messages
    if (message === undefined) throw new Error('no message')
    const cut = cutTexts(6_000)[0] ?? ''
    const missing = Number(/… (\d+) characters/.exec(cut)?.[1])
    expect(missing).toBeGreaterThan(0)
    expect(createMissingCharacterCounter(cut)(message)).toBe(missing)
    expect(createMissingCharacterCounter('nothing of it')(message)).toBe(message.text.length)
  })
})

it('answers stand with their questions where a provider gives one id to several calls', () => {
  const ask = (question: string): Block => ({
    type: 'tool_use',
    id: 'call_0',
    name: 'AskUserQuestion',
    input: { question },
  })
  const answer = (content: string): Block => ({ type: 'tool_result', tool_use_id: 'call_0', content })
  const read = { type: 'tool_use', id: 'call_0', name: 'Read', input: { file_path: 'a.ts' } }
  const builder = new SessionBuilder()
  builder.user('Go.')
  builder.assistant('m1', [read])
  builder.assistant('m2', [ask('One?'), ask('Two?')])
  builder.user([answer('Answer one'), answer('Answer two')])
  builder.assistant('m3', [ask('Three?')])
  builder.assistant('m3', [read])
  builder.user([answer('Answer three')])
  builder.user([answer('1 line')])
  builder.assistant('m4', [ask('Four?')])
  builder.user([answer('(waiting)')])
  builder.user([answer('Answer four')])
  const { messages } = extractSessionFacts(builder.records as readonly KnownRecord[])
  const texts = messages.map(({ text }) => text).join('\n')
  for (const [question, text] of [
    ['One?', 'Answer one'],
    ['Two?', 'Answer two'],
    ['Three?', 'Answer three'],
    ['Four?', 'Answer four'],
  ])
    expect(texts).toContain(`Asked: "${question}"\nAnswered: ${text}`)
})
