import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { openTestSession } from '../../test/engine/test-session.ts'
import type { Deadlines, Model, Signal } from '../engine/ports.ts'
import type { ReplyEvent } from '../engine/reply.ts'
import { readSummarizedHistory } from './draft.ts'
import { planCompaction } from './plan-compaction.ts'
import { createTimeLimitedModel } from './run-summary-attempt.ts'
import { createAttemptsInput } from './write-summary.ts'

const alive: ReplyEvent = { type: 'reply-alive' }
const reply = {
  message: { id: 'm', role: 'assistant' as const, model: 'a', content: [] },
  rawBlocks: [],
  cutInputs: [],
  unfinished: [],
  others: [],
}
const ended: ReplyEvent = { type: 'reply-ended', reply }

/** Time is up for whatever has nothing soon; `tooLong`: for whatever takes longer than that in all. */
function deadlinesOf(tooLong = 50): Deadlines {
  return {
    within: async (ms, work, signal) => {
      if (signal?.aborted === true) return { ok: false, why: 'aborted' }
      const turns = ms === STALL ? 5 : tooLong
      const late = turnsOf(turns).then(() => null)
      const end = await Promise.race([work({ aborted: false }).then((value) => ({ value })), late])
      return end === null ? { ok: false, why: 'timeout' } : { ok: true, value: end.value }
    },
  }
}

const STALL = 1_000
const limits = { keepAliveMs: 1, stallMs: STALL, attemptMs: 9_000 }

async function turnsOf(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

async function told(
  stream: Model['stream'],
  options: { tooLong?: number; signal?: { aborted: boolean } } = {},
) {
  const model = createTimeLimitedModel({ stream }, { deadlines: deadlinesOf(options.tooLong), limits })
  const events: ReplyEvent[] = []
  for await (const event of model.stream({} as never, options.signal)) events.push(event)
  return events.map((event) =>
    event.type === 'reply-failed' ? `${event.failure.kind}: ${event.failure.message}` : event.type,
  )
}

describe('a model that is bounded', () => {
  it('is heard as it speaks', async () => {
    expect(
      await told(async function* () {
        yield alive
        yield ended
      }),
    ).toEqual(['reply-alive', 'reply-ended'])
  })

  it('has failed where it falls silent', async () => {
    const events = await told(async function* () {
      yield alive
      await new Promise(() => {})
    })
    expect(events).toEqual(['reply-alive', 'timeout: Nothing came for too long.'])
  })

  it('has failed where it takes too long in all, however lively', async () => {
    const events = await told(
      async function* () {
        for (;;) {
          await turnsOf(2)
          yield alive
        }
      },
      { tooLong: 12 },
    )
    expect([events.at(0), events.at(-1)]).toEqual(['reply-alive', 'timeout: It took too long.'])
  })

  it('has failed where it stops without an end, or throws', async () => {
    expect(
      await told(async function* () {
        yield alive
      }),
    ).toEqual(['reply-alive', 'bad-reply: The reply stopped without an end.'])
    const events = await told(() => {
      throw new Error('broken')
    })
    expect(events).toEqual(['unknown: broken'])
  })

  it('is not asked once the person has called it off', async () => {
    let asked = 0
    const events = await told(
      async function* () {
        asked += 1
        yield ended
      },
      { signal: { aborted: true } },
    )
    expect([events, asked]).toEqual([['aborted: It was aborted.'], 0])
  })

  it('is read no further where nobody listens any more', async () => {
    let said = 0
    const stream: Model['stream'] = async function* () {
      for (;;) {
        said += 1
        await turnsOf(1)
        yield alive
      }
    }
    const model = createTimeLimitedModel({ stream }, { deadlines: deadlinesOf(500), limits })
    for await (const _ of model.stream({} as never)) break
    await turnsOf(30)
    expect(said).toBeLessThan(5)
  })

  it('is aborted at once where nobody listens any more, even while it is silent', async () => {
    let signal: Signal | undefined
    const stream: Model['stream'] = async function* (_, given) {
      signal = given
      yield alive
      await new Promise(() => {})
    }
    const deadlines: Deadlines = {
      async within(_, work) {
        const inner = { aborted: false }
        const value = await work(inner).finally(() => {
          inner.aborted = true
        })
        return { ok: true, value }
      },
    }
    const model = createTimeLimitedModel({ stream }, { deadlines, limits })
    for await (const _ of model.stream({} as never)) break
    await turnsOf(1)
    expect(signal?.aborted).toBe(true)
  })
})

function toldChainContext(usage: { input: number; output: number } | null): SessionBuilder {
  const builder = new SessionBuilder('told')
  builder.user('go')
  builder.assistant('m-1', [{ type: 'tool_use', id: 'c-1', name: 'Read', input: {} }])
  builder.result('c-1', 'abc '.repeat(500))
  const content = [{ type: 'text', text: 'read' }]
  const message = { id: 'm-2', role: 'assistant' as const, model: 'model-a', content }
  builder.assistant('m-2', content, usage === null ? {} : { message: { ...message, usage } })
  builder.notice('microcompact_boundary', {
    microcompactMetadata: {
      trigger: 'auto',
      way: 'native',
      preTokens: 9_000,
      tokensSaved: 4_000,
      compactedToolIds: ['c-1'],
      clearedAttachmentUUIDs: [],
    },
  })
  return builder
}

describe('what the chain of asking is told', () => {
  it.each([
    ['what the provider cleared is not in what it measured', { input: 5_000, output: 10 }, 4_000],
    ['an estimate of the view holds it already', null, 0],
  ])('%s', async (_, usage, more) => {
    const { run, room, host } = await openTestSession(toldChainContext(usage).records)
    const plan = planCompaction(run.state, { trigger: 'manual', cause: 'person' }, host)
    if (!plan.ok) throw new Error(plan.message)
    const history = await readSummarizedHistory(run, room, plan)
    if (history === null) throw new Error('aborted')
    const { unclearedTokens } = createAttemptsInput(run, { plan, history, instructions: null })
    expect(unclearedTokens - plan.before.expected).toBe(more)
  })
})
