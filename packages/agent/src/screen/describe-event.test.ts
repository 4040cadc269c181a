import { describeEvent, formatClearing, formatCompaction } from '@tidemark/terminal/render/describe-event'
import type { SessionEvent } from 'tidemark'
import { expect, it } from 'vitest'
import { createEventLine } from './event-lines.ts'

const compacted = {
  tokensBefore: 40_000,
  tokensAfter: 12_000,
  summarizer: 'model',
  cause: 'threshold',
} as const

it.each([
  ['by the model', compacted, 'Compacted: 40.0k → 12.0k tokens, with a summary by the model'],
  [
    'that was prepared',
    { ...compacted, cause: 'prepared' },
    'Swapped in a prepared summary: 40.0k → 12.0k tokens, with a summary by the model',
  ],
  [
    'whose size the log does not say',
    { ...compacted, tokensAfter: undefined },
    'Compacted: 40.0k → ? tokens, with a summary by the model',
  ],
])('a compaction %s', (_, figures, text) => {
  expect(formatCompaction(figures)).toBe(text)
})

it.each([
  [{ compactedToolIds: ['a'] }, 1_200, 'Cleared 1 old tool result: 1.2k tokens freed'],
  [{ compactedToolIds: ['a', 'b'], clearedThinking: ['c'] }, 0, 'Cleared 2 old tool results'],
  [
    { compactedToolIds: ['a'], clearedInputs: [1, 2] },
    9_000,
    'Cleared 1 old tool result and 2 large inputs of old tool calls: 9.0k tokens freed',
  ],
  [{ compactedToolIds: [], clearedMedia: [1, 2] }, 0, 'Cleared 2 old images and documents'],
  [{ compactedToolIds: [], clearedThinking: ['c'] }, 0, 'Cleared 1 response of its thinking'],
])('a clearing of %j', (content, freed, text) => {
  expect(formatClearing(content, freed)).toBe(text)
})

it.each([
  [
    { type: 'breaker-open', failures: 3, reason: 'no summary came.' },
    'Automatic compaction is paused after 3 failures: no summary came.',
  ],
  [{ type: 'request-passed', reason: 'failed', message: 'It was\u0007 passed on.' }, 'It was passed on.'],
  [
    { type: 'hook-failed', hook: 'guard', message: 'it ended with 1.' },
    'The hook guard failed: it ended with 1.',
  ],
])('%j is a warning, wherever it is shown', (event, text) => {
  expect(describeEvent(event as SessionEvent)).toEqual({ tone: 'warning', text })
  expect(createEventLine(event as SessionEvent)).toMatchObject({ mark: '!', text })
})

it.each([
  { type: 'hook-failed', hook: 'permission', message: 'The question was aborted.' },
  { type: 'sm-compact-refused', reason: 'none', message: 'There are no notes.' },
])('%j needs no word', (event) => {
  expect(describeEvent(event as SessionEvent)).toBeNull()
})
