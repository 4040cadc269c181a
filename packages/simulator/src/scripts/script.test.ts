import { describe, expect, it } from 'vitest'
import { assistant, call, request, result, user } from '../../test/script-request.ts'
import { PROVIDER_SUMMARY_PROMPT } from '../server/provider-compaction.ts'
import {
  isSummaryRequest,
  listLastToolResults,
  readLastUserText,
  readSummaryPrompt,
  takeCharacters,
} from './script.ts'

const MESSAGES = [
  user('One'),
  assistant('Two', call('a', 'Read'), call('b', 'Bash')),
  user(result('a', 'A'), {
    type: 'tool_result',
    tool_use_id: 'b',
    content: [{ type: 'text', text: 'B' }],
    is_error: true,
  }),
  { role: 'system', content: 'Aside' } as const,
  user('Three'),
  user('Four', 'Five'),
]

it('the last user text is everything since the last response', () => {
  expect(readLastUserText(MESSAGES)).toBe('Three\nFour\nFive')
  expect(readLastUserText([])).toBe('')
})

it('the last results have the names of their tools', () => {
  expect(listLastToolResults(MESSAGES)).toEqual([
    { id: 'a', name: 'Read', text: 'A', isError: false },
    { id: 'b', name: 'Bash', text: 'B', isError: true },
  ])
  expect(listLastToolResults([user(result('x', 'X'))])).toEqual([
    { id: 'x', name: '', text: 'X', isError: false },
  ])
})

it('a shortened text has no half characters', () => {
  expect([takeCharacters('ab😀c', 2), takeCharacters('ab😀c', 3), takeCharacters('ab😀c', 4)]).toEqual([
    'ab',
    'ab',
    'ab😀',
  ])
})

const NINE = `Answer with text only.
First write an <analysis> block. Then write a <summary> block with nine sections.
Do not call tools.`

const OPENCODE = {
  system: 'You are an anchored context summarization assistant for coding sessions.',
  says: '<conversation>\nuser: Fix it.\nassistant: Done.\n</conversation>\n\nCreate a new anchored summary from it.',
}
const PI = {
  system: 'You are a context summarization assistant. Only output the structured summary.',
  says: '<conversation>\n[User]: Fix it.\n\n[Assistant]: Done.\n</conversation>\n\nUse this format:\n## Goal',
}

describe('a request for a summary', () => {
  it.each([
    ['with an analysis', NINE],
    ["in the provider's words", PROVIDER_SUMMARY_PROMPT],
    ['in other words', 'Please summarize our session in <summary> tags.'],
  ])('%s', (_, says) => {
    expect(isSummaryRequest(request({ says }))).toBe(true)
  })

  it('of the provider itself, with any instructions', () => {
    const asked = request({ kind: 'compaction', instructions: 'Keep the names.' })
    expect([isSummaryRequest(asked), readSummaryPrompt(asked)]).toEqual([true, 'Keep the names.'])
  })

  it.each([
    ['opencode', OPENCODE.system, OPENCODE.says],
    ['opencode, told by its last text alone', '', OPENCODE.says],
    [
      'opencode, with an earlier summary',
      '',
      '<conversation>\nuser: x\n</conversation>\nWrite a new summary of both.',
    ],
    ['opencode before 1.18', '', 'Provide a detailed prompt for continuing our conversation above.'],
    ['pi', PI.system, PI.says],
  ])('of %s', (_, system, says) => {
    const asked = request({ system: system === '' ? [] : [{ type: 'text', text: system }], says })
    expect(isSummaryRequest(asked)).toBe(true)
    const tools = [{ name: 'read', input_schema: { type: 'object' } }]
    expect(isSummaryRequest({ ...asked, tools })).toBe(false)
  })

  it('after tool results', () => {
    const messages = [user('Go'), assistant(call('a', 'Read')), user(result('a', 'text'), NINE)]
    const asked = request({ messages })
    expect([isSummaryRequest(asked), readSummaryPrompt(asked)]).toEqual([true, NINE])
  })

  it.each([
    ['a prompt', 'Fix the bug.'],
    ['a prompt about HTML', 'The <summary> element of the page needs a colour.'],
    ['a prompt about a summary', 'Write a summary of the session to NOTES.md.'],
    [
      'a summary that was taken over',
      'This session continues an earlier conversation.\nSummary:\n1. Primary request and intent:\nx',
    ],
  ])('is not %s', (_, says) => {
    expect(isSummaryRequest(request({ says }))).toBe(false)
  })

  it('is not one that was answered, nor one before the last text', () => {
    expect(
      isSummaryRequest(
        request({ messages: [user(NINE), assistant('<summary>x</summary>'), user('Go on.')] }),
      ),
    ).toBe(false)
    expect(isSummaryRequest(request({ messages: [user(NINE, 'Never mind. Fix the bug.')] }))).toBe(false)
  })

  it('is not one in a tool result', () => {
    const messages = [user('Go'), assistant(call('a', 'Read')), user(result('a', NINE))]
    expect(isSummaryRequest(request({ messages }))).toBe(false)
  })
})
