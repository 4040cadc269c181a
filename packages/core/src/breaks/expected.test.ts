/** Thinking that a provider leaves out of a finished turn is no break; in the middle of a turn nothing is left out. */
import { expect, it } from 'vitest'
import { RULES } from '../../test/breaks/rules.ts'
import {
  longTalk,
  prompted,
  requestOf,
  responded,
  rounded,
  type Talk,
  TEXT,
  told,
} from '../../test/breaks/talk.ts'
import { compareAnswer } from './compare-answer.ts'
import { emptyCacheWatch, takeSnapshot } from './watch.ts'

const SOURCE = 'repl_main_thread'
const profile = { ...RULES.profile, thinking: { ...RULES.profile.thinking, stripsFinishedTurns: true } }
const rules = { ...RULES, profile }
const thoughtful = rounded(longTalk(), 1, TEXT, TEXT.repeat(3))
const called = responded(thoughtful, [{ type: 'tool_use', id: 'last', name: 'Read', input: {} }])
const result = { type: 'tool_result', tool_use_id: 'last', content: TEXT }
const words = { type: 'text', text: TEXT }
const spoken = prompted(responded(thoughtful, [{ type: 'text', text: 'done' }]), TEXT)
const system = { role: 'system', content: 'it is late' }

it.each<[string, Talk, string]>([
  ['a prompt', spoken, 'read'],
  ['a prompt and a system message behind it', told(spoken, { type: 'user', message: system }), 'read'],
  ['words beside a result', prompted(called, [result, words]), 'read'],
  ['a result alone', prompted(called, [result]), 'broke'],
  [
    'a result and a system message',
    told(prompted(called, [result]), { type: 'user', message: system }),
    'broke',
  ],
])('after %s', (_, talk, kind) => {
  const usage = { input_tokens: 0, output_tokens: 1 }
  const before = { ...usage, cache_read_input_tokens: 0, cache_creation_input_tokens: 33_300 }
  const after = { ...usage, cache_read_input_tokens: 29_900, cache_creation_input_tokens: 6_000 }
  const sent = takeSnapshot(emptyCacheWatch(), requestOf(thoughtful, 0), rules.policy)
  const { watch } = compareAnswer(sent, { source: SOURCE, usage: before }, rules)
  const next = takeSnapshot(watch, requestOf(talk, 1_000), rules.policy)
  expect(compareAnswer(next, { source: SOURCE, usage: after }, rules).outcome.kind).toBe(kind)
})
