import type { Block } from '@tidemark/core/log/block'
import { describe, expect, it } from 'vitest'
import { LogBuilder } from '../../test/claude-code-log.ts'
import { readRecordedSession } from './recorded-session.ts'

function read(log: LogBuilder) {
  return readRecordedSession(log.records.map(({ record }) => record))
}

function bash(id: string): Block {
  return { type: 'tool_use', id, name: 'Bash', input: { command: 'ls' } }
}

describe('the steps of a recorded session', () => {
  it('are inputs and responses at their times, without the rewrites of the program', () => {
    const log = new LogBuilder()
      .prompt('Fix the login.')
      .answer(0, { blocks: [bash('c1')] })
      .result('c1')
      .wait(3_600)
      .prompt('This session is continued from an earlier one.', { isCompactSummary: true })
      .answer(0)
    const { steps, toolNames } = read(log)
    expect(steps.map(({ kind, isPrompt }) => [kind, isPrompt])).toEqual([
      ['input', true],
      ['response', false],
      ['input', false],
      ['response', false],
    ])
    expect((steps[3]?.at ?? 0) - (steps[2]?.at ?? 0)).toBe(3_602_000)
    expect(toolNames).toEqual(['Bash'])
  })

  it('count a response once, although results of its calls stand between its parts', () => {
    const usage = { input_tokens: 5, cache_read_input_tokens: 40_000, output_tokens: 9 }
    const part = (block: Block) => ({
      type: 'assistant',
      requestId: 'r1',
      message: { id: 'm1', role: 'assistant', model: 'claude-opus-4-6', content: [block], usage },
    })
    const log = new LogBuilder()
      .prompt()
      .line(part(bash('c1')))
      .result('c1')
    const { steps } = read(log.line(part(bash('c2'))).result('c2'))
    expect(steps.map(({ kind, blocks }) => `${kind} ${blocks.length}`)).toEqual([
      'input 1',
      'response 2',
      'input 1',
      'input 1',
    ])
  })

  it('have an own id for each call, although the provider used one twice, and one result for each', () => {
    const log = new LogBuilder().prompt().answer(0, { blocks: [bash('c1')] })
    log.result('c1').result('c1')
    log.answer(0, { blocks: [bash('c1')] }).result('c1')
    const blocks = read(log).steps.flatMap((step) => step.blocks)
    const calls = blocks.flatMap(({ type, id }) => (type === 'tool_use' ? [id] : []))
    const results = blocks.flatMap(({ type, tool_use_id: id }) => (type === 'tool_result' ? [id] : []))
    expect(new Set(calls).size).toBe(2)
    expect(results).toEqual(calls)
  })

  it('tell what the user typed from texts of the program', () => {
    const log = new LogBuilder()
      .prompt('Fix the login.')
      .prompt('<system-reminder>\nThe file was changed.\n</system-reminder>', { isMeta: true })
      .prompt('<goal_context>\nFinish it.\n</goal_context>')
    expect(read(log).steps.map(({ isPrompt }) => isPrompt)).toEqual([true, false, false])
  })

  it('keep the answers of the user to questions of the model', () => {
    const questions = [{ question: 'Which port?', options: [{ label: '80' }] }]
    const ask: Block = { type: 'tool_use', id: 'c1', name: 'AskUserQuestion', input: { questions } }
    const toolUseResult = { questions, answers: { 'Which port?': '8080' } }
    const { steps } = read(
      new LogBuilder()
        .prompt()
        .answer(0, { blocks: [ask] })
        .result('c1', { toolUseResult }),
    )
    expect(steps[2]).toMatchObject({
      isPrompt: false,
      userInputs: [{ kind: 'answer', text: '8080', toolUseId: 'c1', question: { text: 'Which port?' } }],
    })
  })
})

describe('system prompt and tools of a recorded session', () => {
  it('are the first request less its messages', () => {
    const text = 'x'.repeat(36_000)
    const { prefixTokens, earlierTokens } = read(new LogBuilder().prompt(text).answer(0, { written: 30_000 }))
    expect(prefixTokens).toBeGreaterThan(19_900)
    expect(prefixTokens).toBeLessThan(20_000)
    expect(earlierTokens).toBe(0)
  })

  it('count as 41,000 tokens in a log that continues another one; the rest is earlier conversation', () => {
    const log = new LogBuilder().prompt('go on', { parentUuid: 'elsewhere' }).answer(0, { written: 120_000 })
    const { prefixTokens, earlierTokens } = read(log)
    expect(prefixTokens).toBe(41_000)
    expect(earlierTokens).toBeGreaterThan(78_900)
    expect(prefixTokens + earlierTokens).toBeLessThan(120_000)
  })

  it('are not taken from the response that the program writes in the place of an error', () => {
    const log = new LogBuilder().prompt().answer(0, { model: '<synthetic>', written: 0 })
    const { prefixTokens, steps } = read(log.answer(0, { written: 25_000 }))
    expect(prefixTokens).toBeGreaterThan(24_900)
    expect(steps.map(({ kind }) => kind)).toEqual(['input', 'response'])
  })
})

it('sizes are scaled to the growth that the log reports', () => {
  const log = new LogBuilder().prompt().answer(0, { written: 20_000 })
  log.prompt('y'.repeat(36_000)).answer(0, { written: 35_000 })
  const { scale } = read(log)
  expect(scale).toBeGreaterThan(1.45)
  expect(scale).toBeLessThan(1.5)
})
