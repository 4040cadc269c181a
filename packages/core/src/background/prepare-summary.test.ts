import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { Situation } from '../../test/clear/situation.ts'
import type { SessionState } from '../engine/session-state.ts'
import { makeContextPlan } from '../planner/context-plan.ts'
import type { PlanningMoment } from '../planner/plan-input.ts'
import {
  canPrepareSummary,
  captureEndedPreparation,
  chooseSwapCause,
  hasJustCompletedTodo,
  measureTurnGrowth,
} from './prepare-summary.ts'

/** The part of a session's state that these rules read. */
function toState(builder: SessionBuilder): SessionState {
  return { view: builder.view, session: builder.session } as SessionState
}

describe('a prepared summary', () => {
  it.each<[string, number, number, PlanningMoment, string | null]>([
    ['at the auto-compact threshold, in the middle of a turn', 167_000, 0, 'call', 'threshold'],
    ['at it, at the end of a turn', 167_000, 0, 'turn-end', 'threshold'],
    ['below it, in the middle of a turn that will reach it', 166_999, 50_000, 'call', null],
    ['below it, at the end of a turn, and the next would reach it', 160_000, 7_000, 'turn-end', 'prepared'],
    ['below it, at a prompt, and its turn would reach it', 160_000, 7_000, 'prompt', 'prepared'],
    ['below it, a todo is done, and the turn would reach it', 160_000, 7_000, 'todo-done', 'prepared'],
    ['below it, at the end of a turn, and the next fits', 160_000, 6_999, 'turn-end', null],
    ['below it, and nothing is known of the growth', 166_999, 0, 'turn-end', null],
    ['below the warning threshold, however much a turn adds', 146_999, 100_000, 'turn-end', null],
  ])('%s', (_, tokens, growth, moment, cause) => {
    const situation = new Situation()
    situation.measure(tokens)
    const plan = makeContextPlan(situation.planContext({ moment, hasPreparedSummary: true }))
    expect(chooseSwapCause(plan, moment, growth)).toBe(cause)
  })

  it('is not swapped in where the user has switched automatic compaction off', () => {
    const situation = new Situation({ switches: { autoCompactEnabled: false } })
    situation.measure(170_000)
    const plan = makeContextPlan(situation.planContext({ moment: 'turn-end', hasPreparedSummary: true }))
    expect(chooseSwapCause(plan, 'turn-end', 50_000)).toBeNull()
  })

  it('that was given up is tried again after the next prompt or the next compaction, and not before', () => {
    const builder = new SessionBuilder('ended')
    builder.user('begin')
    builder.answer()
    expect(canPrepareSummary(toState(builder), null)).toBe(true)
    const ended = captureEndedPreparation(toState(builder))
    builder.call('Read', { file_path: 'a.ts' }, 'text')
    expect(canPrepareSummary(toState(builder), ended)).toBe(false)
    const compacted = captureEndedPreparation(toState(builder))
    builder.user('go on')
    expect(canPrepareSummary(toState(builder), ended)).toBe(true)
    expect(
      canPrepareSummary(toState(builder), { ...compacted, compactionUuid: 'other', newestIndex: 1_000 }),
    ).toBe(true)
  })
})

describe('the growth of a turn', () => {
  function answerWithUsage(builder: SessionBuilder, tokens: number): void {
    const id = builder.id('msg')
    const usage = { input: 5, read: tokens - 5, output: 9 }
    const message = { id, role: 'assistant' as const, model: 'model-a', content: 'text', usage }
    builder.assistant(id, 'text', { message })
  }

  it('is what the newest turn added, by reported usage, also once the next prompt is there', () => {
    const builder = new SessionBuilder('growth')
    const say = (tokens: number) => answerWithUsage(builder, tokens)
    builder.user('one')
    say(10_000)
    builder.user('two')
    say(11_000)
    builder.call('Read', { file_path: 'a.ts' }, 'text')
    say(14_500)
    expect(measureTurnGrowth(toState(builder))).toBe(4_500)
    builder.user('three')
    expect(measureTurnGrowth(toState(builder))).toBe(4_500)
  })

  it('is 0 where nothing was reported, or for the first turn', () => {
    const builder = new SessionBuilder('growth')
    builder.user('one')
    builder.answer()
    expect(measureTurnGrowth(toState(builder))).toBe(0)
    answerWithUsage(builder, 9_000)
    expect(measureTurnGrowth(toState(builder))).toBe(0)
  })
})

describe('a todo', () => {
  const todos = (...states: readonly string[]) => ({
    todos: states.map((status, index) => ({ content: `item ${index}`, status })),
  })
  const isDone = (builder: SessionBuilder) => hasJustCompletedTodo(toState(builder), ['TodoWrite'])

  it('counts as completed right after the call that completed it', () => {
    const builder = new SessionBuilder('todo')
    builder.user('begin')
    builder.call('TodoWrite', todos('in_progress', 'pending'), 'ok')
    expect(isDone(builder)).toBe(false)
    builder.call('TodoWrite', todos('completed', 'in_progress'), 'ok')
    expect(isDone(builder)).toBe(true)
    builder.call('Read', { file_path: 'a.ts' }, 'text')
    expect(isDone(builder)).toBe(false)
  })

  it('is looked for in the newest response only, however long the context is', () => {
    const builder = new SessionBuilder('todo')
    builder.user('begin')
    builder.call('TodoWrite', todos('in_progress', 'pending'), 'ok')
    for (let count = 0; count < 300; count += 1) builder.call('Read', { file_path: 'a.ts' }, 'text')
    const state = toState(builder)
    let read = 0
    const at = state.view.entries.at.bind(state.view.entries)
    const toArray = state.view.entries.toArray.bind(state.view.entries)
    const entries = Object.assign(Object.create(state.view.entries), {
      at: (place: number) => {
        read += 1
        return at(place)
      },
      toArray: (start?: number) => {
        const list = toArray(start)
        read += list.length
        return list
      },
    })
    expect(hasJustCompletedTodo({ ...state, view: { ...state.view, entries } }, ['TodoWrite'])).toBe(false)
    expect(read).toBeLessThan(10)
  })
})
