import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import {
  answerWith,
  buildLongSession,
  createContext,
  failWith,
  GOOD_SUMMARY,
  listRungs,
  runAttempts,
  selectSpan,
} from '../../test/summarize/summary-attempts.ts'
import { recordAttemptResult, startAttempts } from './attempt-chain.ts'
import type { AttemptResult, DirectAttempt } from './attempt-types.ts'

const binding = {
  thinking: { binding: 'prefix' as const },
  compaction: { blocks: true, onDemand: true, beta: 'compact-beta', maxInstructionCharacters: 16_384 },
}
const kept = selectSpan(buildLongSession(8, true), 'up_to')
const lastText = (ask: unknown): string => JSON.stringify((ask as DirectAttempt).payload.messages.at(-1))
const block: AttemptResult = {
  kind: 'answer',
  content: [{ type: 'compaction', content: 'short', signature: 's' }],
  stop: 'compacted',
}

describe('which rung comes first', () => {
  it.each<[string, Parameters<typeof createContext>[0], string]>([
    ['the fork, while the cache is warm', {}, '1 fork'],
    ['a call of its own, once it is cold', { context: { isWarm: false } }, '2 direct'],
    ['a call of its own, where there is nothing to fork', { context: { parent: null } }, '2 direct'],
    [
      'a call of its own, where forks are off',
      { policy: { compact: { chain: { fork: false } } } },
      '2 direct',
    ],
    [
      'a call of its own, where the fork would not fit',
      { context: { parent: { tokens: 190_000 } } },
      '2 direct',
    ],
    ['the block, where kept messages carry bound thinking', { span: kept, profile: binding }, '0 block'],
    [
      'no block where it is off',
      { span: kept, profile: binding, policy: { compact: { chain: { block: false } } } },
      '1 fork',
    ],
    [
      'no block where nothing is bound',
      { span: kept, profile: { ...binding, thinking: { binding: 'model' } } },
      '1 fork',
    ],
    ['no block where nothing is kept', { profile: binding }, '1 fork'],
    [
      'no block where the provider has none',
      { span: kept, profile: { thinking: { binding: 'prefix' } } },
      '1 fork',
    ],
    [
      'no block where kept messages carry no thinking',
      { span: selectSpan(buildLongSession(), 'up_to'), profile: binding },
      '1 fork',
    ],
    [
      'no block where what is kept comes in front',
      { span: selectSpan(buildLongSession(8, true), 'from'), profile: binding },
      '1 fork',
    ],
    [
      'no block where the uncleared conversation does not fit',
      { span: kept, profile: binding, context: { unclearedTokens: 199_000 } },
      '1 fork',
    ],
    [
      'no block where pins stand between',
      { span: { ...kept, pinned: kept.kept.slice(0, 1) }, profile: binding },
      '1 fork',
    ],
    ['no model at all', { policy: { compact: { chain: { local: 'only' } } } }, '4 local'],
  ])('%s', (_, circumstances, first) => {
    expect(listRungs(runAttempts(createContext(circumstances), [GOOD_SUMMARY]).asks)[0]).toBe(first)
  })

  it('skipped attempts are listed', () => {
    const { done } = runAttempts(createContext({ context: { isWarm: false } }), [GOOD_SUMMARY])
    expect(done.trace.map(({ rung, outcome, reason }) => [rung, outcome, reason])).toEqual([
      [0, 'skipped', 'not-needed'],
      [1, 'skipped', 'cold'],
      [2, 'accepted', 'accepted'],
    ])
    expect(done).toMatchObject({
      ok: true,
      summarizer: 'model',
      fallbackReason: null,
      coveredLocally: [],
    })
  })
})

describe('what is asked', () => {
  it('of the provider’s block: the prompt as instructions, no analysis, up to the last summarised record', () => {
    const [ask] = runAttempts(
      createContext({ span: kept, profile: binding, context: { instructions: 'x'.repeat(20_000) } }),
      [block],
    ).asks
    if (ask?.kind !== 'block') throw new Error('expected a block')
    expect([ask.beta, ask.through, ask.instructions.length]).toEqual(['compact-beta', 'done', 16_384])
    expect(ask.instructions).not.toContain('<analysis>')
    expect(ask.instructions.endsWith('the turn would be lost.')).toBe(true)
  })

  it('of a fork: one message, for up_to only as far as what is summarised', () => {
    const ask = (form: 'full' | 'from' | 'up_to') =>
      runAttempts(createContext({ span: selectSpan(buildLongSession(), form) }), [GOOD_SUMMARY]).asks[0]
    expect([ask('full'), ask('from'), ask('up_to')]).toMatchObject([
      { kind: 'fork', records: null, message: { role: 'user' } },
      { kind: 'fork', records: null },
      {
        kind: 'fork',
        records: new Set(selectSpan(buildLongSession(), 'up_to').input.map(({ record }) => record.uuid)),
      },
    ])
    expect(JSON.stringify(ask('from'))).toContain('begins with the message that starts: \\"two\\"')
  })

  it('with how long to wait', () => {
    expect(runAttempts(createContext(), [GOOD_SUMMARY]).asks[0]?.deadlines).toEqual({
      keepAliveMs: 30_000,
      stallMs: 120_000,
      attemptMs: 600_000,
    })
  })

  it('of another model, where one was set', () => {
    const { asks } = runAttempts(createContext({ direct: { model: 'small' } }), [
      failWith('server'),
      GOOD_SUMMARY,
    ])
    expect(asks[1]).toMatchObject({ payload: { model: 'small', max_tokens: 20_000 } })
  })

  it('for up_to only what is summarised, for the others everything', () => {
    const shown = (form: 'full' | 'from' | 'up_to') =>
      JSON.stringify(
        runAttempts(
          createContext({ span: selectSpan(buildLongSession(), form), context: { isWarm: false } }),
          [GOOD_SUMMARY],
        ).asks[0],
      )
    expect([shown('full'), shown('from'), shown('up_to')].map((text) => text.includes('done too'))).toEqual([
      true,
      true,
      false,
    ])
  })
})

describe('after a failure', () => {
  it.each<[string, readonly AttemptResult[], readonly string[], string | null]>([
    ['a fork without a text', [answerWith(' '), GOOD_SUMMARY], ['1 fork', '2 direct'], 'no_summary'],
    [
      'a fork that could not be made',
      [{ kind: 'unavailable', message: 'no' }, GOOD_SUMMARY],
      ['1 fork', '2 direct'],
      null,
    ],
    ['a stall', [{ kind: 'stalled', message: 'hangs' }, GOOD_SUMMARY], ['1 fork', '2 direct'], 'api_error'],
    [
      'two retries',
      [failWith('server'), answerWith('x'), answerWith('x'), GOOD_SUMMARY],
      ['1 fork', '2 direct', '2 direct', '2 direct'],
      'no_summary',
    ],
    [
      'everything',
      [failWith('server')],
      ['1 fork', '2 direct', '2 direct', '2 direct', '4 local'],
      'api_error',
    ],
    ['what waiting does not mend', [failWith('billing')], ['1 fork', '2 direct', '4 local'], 'api_error'],
    [
      'an overflow',
      [failWith('server'), failWith('overflow'), GOOD_SUMMARY],
      ['1 fork', '2 direct', '3 direct'],
      'prompt_too_long',
    ],
    [
      'a full window',
      [failWith('server'), answerWith('x', 'window'), GOOD_SUMMARY],
      ['1 fork', '2 direct', '3 direct'],
      'prompt_too_long',
    ],
    [
      'too many bytes',
      [failWith('server'), failWith('too-large'), GOOD_SUMMARY],
      ['1 fork', '2 direct', '3 direct'],
      'prompt_too_long',
    ],
    [
      'overflow upon overflow',
      [failWith('overflow')],
      ['1 fork', '3 direct', '3 direct', '3 direct', '4 local'],
      'prompt_too_long',
    ],
  ])('%s', (_, outcomes, expected, fallbackReason) => {
    const { asks, done } = runAttempts(createContext(), outcomes)
    expect(listRungs(asks)).toEqual(expected)
    expect(done).toMatchObject({
      ok: true,
      fallbackReason,
      summarizer: expected.at(-1) === '4 local' ? 'local' : 'model',
    })
  })

  it('a retry says what was wrong, and goes without tools after a call', () => {
    const call: AttemptResult = {
      kind: 'answer',
      content: [{ type: 'tool_use', id: 'c', name: 'Read', input: {} }],
      stop: 'tools',
    }
    const { asks } = runAttempts(createContext({ context: { isWarm: false } }), [
      call,
      answerWith('x', 'cut'),
      GOOD_SUMMARY,
    ])
    expect(asks.map((ask) => (ask as DirectAttempt).payload.tools?.length)).toEqual([1, undefined, undefined])
    expect(lastText(asks[1])).toContain(
      'This is attempt 2. The answer before it could not be used: The model called a tool',
    )
    expect(lastText(asks[2])).toContain('This is attempt 3. The answer before it was too long')
  })

  it('the conversation’s own model steps in for one that cannot be had', () => {
    const { asks } = runAttempts(createContext({ direct: { model: 'small' }, context: { isWarm: false } }), [
      failWith('not-found'),
      GOOD_SUMMARY,
    ])
    expect(asks.map((ask) => (ask as DirectAttempt).payload.model)).toEqual(['small', 'model-a'])
  })

  it('a request that would be refused is made otherwise', () => {
    const refused: AttemptResult = { kind: 'unavailable', message: 'The provider would refuse the request.' }
    const { asks, done } = runAttempts(createContext({ context: { isWarm: false } }), [refused, GOOD_SUMMARY])
    expect(asks.map((ask) => (ask as DirectAttempt).payload.tools?.length)).toEqual([1, undefined])
    expect(done).toMatchObject({ ok: true, fallbackReason: 'api_error' })
  })

  it('an overflow of the fork says nothing of another model', () => {
    const { asks } = runAttempts(createContext({ direct: { model: 'large', window: null } }), [
      failWith('overflow', { over: 500 }),
      GOOD_SUMMARY,
    ])
    expect(asks[1]).toMatchObject({ rung: 2 })
  })

  it('what stripping saves need not be dropped', () => {
    const builder = buildLongSession()
    builder.user([
      { type: 'image', source: { data: 'A'.repeat(40_000) } },
      { type: 'text', text: 'see' },
    ])
    builder.assistant('m-see', 'seen')
    const { asks } = runAttempts(createContext({ span: selectSpan(builder) }), [
      failWith('overflow', { over: 5_000 }),
      GOOD_SUMMARY,
    ])
    expect(asks[1]).toMatchObject({ rung: 2 })
  })

  it('a failure of the one rung allowed ends it, with what to do', () => {
    const { done } = runAttempts(createContext({ policy: { compact: { chain: { local: 'never' } } } }), [
      failWith('server'),
    ])
    expect(done).toMatchObject({
      ok: false,
      aborted: false,
      fallbackReason: 'api_error',
      message:
        'No summary could be made. it failed: server Rewind a few messages and compact again, or allow the summary without a model (compact.chain.local).',
    })
  })

  it('a local summary that failed is not advised', () => {
    const first = startAttempts(createContext({ policy: { compact: { chain: { local: 'only' } } } }))
    expect(recordAttemptResult(first, { kind: 'text', text: '' }).next).toMatchObject({
      ok: false,
      message:
        'No summary could be made. The summary without a model is empty. Rewind a few messages and compact again.',
    })
  })

  it('a block that fails goes on to the fork', () => {
    expect(
      listRungs(
        runAttempts(createContext({ span: kept, profile: binding }), [failWith('overloaded'), GOOD_SUMMARY])
          .asks,
      ),
    ).toEqual(['0 block', '1 fork'])
  })
})

describe('what no model was shown', () => {
  it('is handed back, oldest first', () => {
    const { done, asks } = runAttempts(createContext(), [failWith('overflow', { over: 200 }), GOOD_SUMMARY])
    if (!done.ok) throw new Error(done.message)
    expect(done.coveredLocally.map((entry) => entry.record.uuid)).toEqual(['q1', 'a0', 'r0'])
    expect(asks[1]).toMatchObject({ rung: 3 })
    expect(JSON.stringify(asks[1])).toContain('[earlier conversation truncated for compaction retry]')
  })

  it.each([
    ['leaves room for the answer, where the window is learnt', 2_400, 9],
    ['is no more than was too much, where there is room for both', 60_000, 3],
    ['leaves half of a window that is smaller than the longest answer', 1_000, 15],
  ])('%s', (_, limit, dropped) => {
    const direct = { model: 'model-a', window: 200_000, outputTokens: 500 }
    const { asks, done } = runAttempts(createContext({ direct }), [
      failWith('overflow', { over: 200, limit }),
      GOOD_SUMMARY,
    ])
    expect(asks[1]).toMatchObject({ kind: 'direct', rung: 3 })
    expect(done.ok && done.coveredLocally.length).toBe(dropped)
  })

  it('kept messages may be dropped at no loss', () => {
    const { done } = runAttempts(createContext({ span: selectSpan(buildLongSession(), 'from', 'done') }), [
      failWith('overflow', { over: 200 }),
      GOOD_SUMMARY,
    ])
    expect(done).toMatchObject({ ok: true, coveredLocally: [] })
  })

  it('a drop that changes nothing of the request is followed by another before it is sent', () => {
    const builder = new SessionBuilder()
    builder.result('gone', 'the answer to a call that is not there')
    builder.user('one')
    builder.assistant('m-one', 'done '.repeat(100))
    builder.user('two')
    builder.assistant('m-two', 'done '.repeat(100))
    const context = createContext({ span: selectSpan(builder), context: { isWarm: false } })
    const { asks, done } = runAttempts(context, [failWith('overflow', { over: 1 }), GOOD_SUMMARY])
    expect(asks.map(({ rung }) => rung)).toEqual([2, 3])
    expect(done.ok && done.coveredLocally.length).toBe(2)
    expect(JSON.stringify(asks[0])).not.toBe(JSON.stringify(asks[1]))
  })

  it('where nothing would be left no model is asked any more', () => {
    expect(
      listRungs(runAttempts(createContext(), [failWith('overflow', { over: 1_000_000 }), GOOD_SUMMARY]).asks),
    ).toEqual(['1 fork', '4 local'])
  })
})

describe('a summariser with a small window', () => {
  const small = { direct: { model: 'small', window: 4_000, outputTokens: 1_000 }, context: { isWarm: false } }

  it('is not asked: the log is summarised without a model, and the reason is told', () => {
    const { asks, done } = runAttempts(createContext({ ...small, span: selectSpan(buildLongSession(30)) }), [
      GOOD_SUMMARY,
    ])
    expect(listRungs(asks)).toEqual(['4 local'])
    expect(done).toMatchObject({ ok: true, summarizer: 'local', fallbackReason: 'prompt_too_long' })
  })

  it('one far too small is learnt of, and the oldest rounds are dropped and covered without a model', () => {
    const span = selectSpan(buildLongSession(60))
    const { asks, done } = runAttempts(
      createContext({ span, context: { isWarm: false }, direct: { outputTokens: 1_000 } }),
      [failWith('overflow', { limit: 6_000, over: 9_000 }), GOOD_SUMMARY],
    )
    expect(listRungs(asks)).toEqual(['2 direct', '3 direct'])
    if (!done.ok) throw new Error(done.message)
    expect(done).toMatchObject({ summarizer: 'model', fallbackReason: 'prompt_too_long' })
    expect(done.coveredLocally[0]?.record.uuid).toBe('q1')
  })
})
