/** A reply that breaks off, or that the output limit cuts, does not end the turn and shows nothing twice. */

import {
  createFakeClock,
  createFakeJournal,
  createTestHost,
  type FakeReply,
  runToEnd,
  SessionBuilder,
} from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'
import { buildContextView } from '../../src/context/context-view.ts'
import { flattenContext, toApiMessages } from '../../src/context/flatten-context.ts'
import type { TurnHost } from '../../src/engine/host.ts'
import type { Clock, Model } from '../../src/engine/ports.ts'
import type { ModelFailure, ReplyEvent } from '../../src/engine/reply.ts'
import { readSessionState } from '../../src/engine/session-state.ts'
import { appendUnlinkedRecords, type UnlinkedRecord } from '../../src/engine/session-writer.ts'
import { createPolicy } from '../../src/policy/create-policy.ts'
import { emptyKnownPrefix, updateKnownPrefix } from '../../src/request/prefix-snapshot.ts'
import { prepareNextRequest } from '../../src/turn/turn.ts'
import {
  createScriptedHost,
  logLines,
  openTestSession,
  playTurn,
  reply,
  text,
  toolCall,
} from './test-session.ts'

const OVERLOADED: ModelFailure = { kind: 'overloaded', retryable: true, message: 'Overloaded' }
const CUT: ModelFailure = { kind: 'network', retryable: true, message: 'The connection broke' }

/** A clock on which every sleep ends at once, and which lists the sleeps. */
function createQuickClock(): { readonly clock: Clock; readonly sleeps: number[] } {
  const sleeps: number[] = []
  const { now } = createFakeClock()
  return { sleeps, clock: { now, sleep: async (ms) => void sleeps.push(ms) } }
}

async function play(replies: readonly FakeReply[], changes: Partial<TurnHost> = {}, prompt = 'Go.') {
  const { clock, sleeps } = createQuickClock()
  const { host, asked } = createScriptedHost(replies, { clock, ...changes })
  const turn = await playTurn(await readSessionState(host.journal, 's'), { prompt }, host)
  return { ...turn, host, asked, sleeps, messages: toApiMessages(turn.outcome.state.flat) }
}

describe('a reply that breaks off', () => {
  it('after finished blocks is asked for again with the same request, and is shown once', async () => {
    const broken = { ...reply(text('one'), toolCall('a')), failure: CUT }
    const { outcome, asked, sleeps, messages, events } = await play([broken, reply(text('one, two'))])
    expect(outcome).toMatchObject({ ok: true, stopReason: 'done' })
    expect(asked[1]?.payload).toEqual(asked[0]?.payload)
    expect(sleeps).toEqual([500])
    expect(messages).toEqual([
      { role: 'user', content: 'Go.' },
      { role: 'assistant', content: [text('one, two')] },
    ])
    expect(logLines(outcome.state)).toEqual([
      'user: Go.',
      'system epoch',
      'assistant: one',
      'assistant: a',
      'system reply_dropped',
      'system model_call',
      'assistant: one, two',
    ])
    const named = events.filter(({ type }) => type === 'reply-dropped' || type === 'retrying')
    expect(named).toEqual([
      { type: 'reply-dropped', response: 'message-1', cause: CUT },
      { type: 'retrying', cause: CUT, delayMs: 500, attempt: 1 },
    ])
    expect(events.filter(({ type }) => type === 'tool-started')).toEqual([])
    const failures = events.filter((event) => event.type === 'reply' && event.event.type === 'reply-failed')
    expect(failures).toEqual([])
  })

  it('is asked for again after what the provider asks to wait, then after longer delays', async () => {
    const late = { ...OVERLOADED, retryAfterMs: 7_000 }
    const { outcome, sleeps } = await play([
      { ...reply(text('one')), failure: late },
      { ...reply(), failure: OVERLOADED },
      { ...reply(text('one'), text('two')), failure: OVERLOADED },
    ])
    expect(outcome.ok).toBe(true)
    expect(sleeps).toEqual([7_000, 1_000, 2_000])
  })

  it('too often ends the turn, which can be taken up again', async () => {
    const policy = createPolicy({ turn: { network: { retries: 1 } } })
    const broken = { ...reply(text('one')), failure: OVERLOADED }
    const { outcome, host, events } = await play([broken, broken], { policy })
    expect(outcome).toMatchObject({ ok: false, reason: 'failed', failure: OVERLOADED })
    expect(
      events.filter((event) => event.type === 'reply' && event.event.type === 'reply-failed'),
    ).toHaveLength(1)
    const again = await playTurn(await readSessionState(host.journal, 's'), { prompt: null }, host)
    expect(again.outcome).toMatchObject({ ok: true })
    expect(toApiMessages(again.outcome.state.flat)).toEqual([
      { role: 'user', content: 'Go.' },
      { role: 'assistant', content: [text('Done.')] },
    ])
  })

  it('for a reason that does not pass is not asked for again, and is not shown', async () => {
    const refused: ModelFailure = { kind: 'invalid-request', retryable: false, message: 'No.' }
    const { outcome, asked, messages } = await play([{ ...reply(text('one')), failure: refused }])
    expect(outcome).toMatchObject({ ok: false, reason: 'failed', failure: refused })
    expect([asked.length, messages.length]).toEqual([1, 1])
  })

  it('counts in the costs, and the log folded anew gives the same context', async () => {
    const broken = { ...reply(text('one')), failure: CUT }
    const { outcome, host } = await play([broken])
    const opened = await readSessionState(host.journal, 's')
    expect(toApiMessages(opened.flat)).toEqual(toApiMessages(outcome.state.flat))
    expect(buildContextView(opened.session).entries.toArray()).toEqual(outcome.state.view.entries.toArray())
    expect(outcome.state.costs?.recent.map(({ id }) => id)).toEqual(['message-1', 'message-2'])
  })
})

describe('the context after an undo', () => {
  it('has neither a broken reply nor an earlier response of the same id missing', () => {
    const builder = new SessionBuilder('s')
    builder.user('One?')
    builder.assistant('m', [text('One.')])
    builder.compact('A summary.')
    builder.user('Two?')
    builder.assistant('m', [text('Tw')])
    builder.notice('reply_dropped', { response: 'm' })
    builder.assistant('n', [text('Two.')])
    const { uuid = '' } = builder.view.rewrites.at(-1) ?? {}
    builder.notice('compact_undone', { of: uuid })
    const view = buildContextView(builder.session)
    expect(toApiMessages(flattenContext(view)).map(({ content }) => content)).toEqual([
      'One?',
      [text('One.')],
      'Two?',
      [text('Two.')],
    ])
    expect(builder.view.entries.toArray()).toEqual(view.entries.toArray())
  })

  it('has a message that was appended before the response to a request after it', () => {
    const builder = new SessionBuilder('s')
    const { uuid } = builder.user('One?')
    const { entries: requested } = builder.view
    builder.user('Two?')
    builder.assistant('m', [text('One.')], { afterUuid: uuid })
    builder.assistant('m', [text('Really.')], { afterUuid: uuid })
    const view = buildContextView(builder.session)
    expect(toApiMessages(flattenContext(view)).map(({ content }) => content)).toEqual([
      'One?',
      [text('One.'), text('Really.')],
      'Two?',
    ])
    expect(builder.view.entries.toArray()).toEqual(view.entries.toArray())
    expect(builder.view.entries.extends(requested)).toBe(true)
  })

  it('computes nothing of a request again when its response comes after a later message', async () => {
    const builder = new SessionBuilder('s')
    for (const turn of ['One', 'Two', 'Three']) {
      builder.user(`${turn}?`)
      builder.assistant(turn, [text(`${turn}.`)])
    }
    const { uuid } = builder.user('Four?')
    const { run } = await openTestSession(builder.records)
    await runToEnd(prepareNextRequest(run, 'prompt'))
    const afterUuid = run.state.view.entries.last?.record.uuid ?? uuid
    const { flat } = run.state
    const late: UnlinkedRecord = { type: 'user', message: { role: 'user', content: 'Five?' } }
    await runToEnd(appendUnlinkedRecords(run, [late]))
    const message = { id: 'm', role: 'assistant', model: 'model-a', content: [text('Four.')] } as const
    await runToEnd(appendUnlinkedRecords(run, [{ type: 'assistant', message, afterUuid }]))
    expect(run.state.flat.frozen.at(0)).toBe(flat.frozen.at(0))
    expect(flat.frozen.length).toBeGreaterThan(3)
    expect(run.state.flat.frozen.extends(flat.frozen)).toBe(true)
    const fresh = buildContextView(run.state.session)
    expect(toApiMessages(run.state.flat)).toEqual(toApiMessages(flattenContext(fresh)))
    const { current, tools } = updateKnownPrefix(emptyKnownPrefix(), run.state.session, fresh)
    expect(run.state.prefix).toMatchObject({ current, tools })
  })
})

describe('a request that the host withholds', () => {
  it('is neither the last request nor recorded by the cache monitor', async () => {
    const builder = new SessionBuilder('s')
    builder.user('One?')
    const { run } = await openTestSession(builder.records)
    const refusal = { ok: false, reason: 'failed', failure: OVERLOADED } as const
    const { cacheMonitor } = run.state
    expect(await runToEnd(prepareNextRequest(run, 'prompt', () => refusal))).toBe(refusal)
    expect([run.state.lastRequest, run.state.monitoredRequest]).toEqual([null, null])
    expect(run.state.cacheMonitor.sources).toEqual(cacheMonitor.sources)
  })
})

describe('a model that breaks its promise', () => {
  const begun: readonly ReplyEvent[] = [
    {
      type: 'reply-started',
      message: {
        id: 'm',
        role: 'assistant',
        model: 'model-a',
        content: [],
        usage: { input: 1, output: 1 },
      },
    },
    { type: 'block-ended', index: 0, block: text('one') },
  ]

  function createModel(end: () => void): Model {
    let calls = 0
    return {
      async *stream() {
        calls += 1
        yield* begun
        if (calls === 1) end()
        else
          yield {
            type: 'reply-ended',
            reply: {
              message: { id: 'm2', role: 'assistant', model: 'model-a', content: [] },
              rawBlocks: [],
              cutInputs: [],
              unfinished: [],
              others: [],
            },
          }
      },
    }
  }

  it('by stopping without an end is asked again, and the block it had sent is in the log', async () => {
    const { clock } = createQuickClock()
    const host = createTestHost({ journal: createFakeJournal(), clock, model: createModel(() => {}) })
    const { outcome } = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'Go.' }, host)
    expect(outcome.ok).toBe(true)
    expect(logLines(outcome.state).slice(2, 4)).toEqual(['assistant: one', 'system reply_dropped'])
  })

  const createThrower = (): Model =>
    createModel(() => {
      throw new Error('no such thing')
    })

  it('by throwing is asked again, as after a broken connection, and nothing is shown twice', async () => {
    const { clock, sleeps } = createQuickClock()
    const host = createTestHost({ journal: createFakeJournal(), clock, model: createThrower() })
    const { outcome, events } = await playTurn(
      await readSessionState(host.journal, 's'),
      { prompt: 'Go.' },
      host,
    )
    expect(outcome.ok).toBe(true)
    expect(sleeps).toHaveLength(1)
    expect(events.find(({ type }) => type === 'retrying')).toMatchObject({
      cause: { kind: 'bad-reply', retryable: true, message: 'no such thing' },
    })
    expect(logLines(outcome.state).slice(2, 4)).toEqual(['assistant: one', 'system reply_dropped'])
  })

  it('by throwing before it said anything ends the turn with what it threw', async () => {
    const model: Model = {
      // biome-ignore lint/correctness/useYield: a model that fails before its first event.
      async *stream() {
        throw new Error('no such thing')
      },
    }
    const host = createTestHost({ journal: createFakeJournal(), model })
    const { outcome } = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'Go.' }, host)
    expect(outcome).toMatchObject({
      ok: false,
      reason: 'failed',
      failure: { kind: 'unknown', retryable: false, message: 'no such thing' },
    })
  })
})

describe('an answer that max_tokens cuts', () => {
  const cut = (words: string): FakeReply => ({ ...reply(text(words)), stop: 'cut' })

  it('is continued until it ends', async () => {
    const { outcome, asked, events } = await play([cut('one,'), cut(' two,'), reply(text(' three'))])
    expect(outcome).toMatchObject({ ok: true, stopReason: 'done' })
    expect(asked.length).toBe(3)
    expect(asked[2]?.payload.messages.at(-1)?.role).toBe('user')
    const parts = events.flatMap((event) => (event.type === 'answer-continued' ? [event.part] : []))
    expect(parts).toEqual([1, 2])
  })

  it('is continued three times at most, and run(null) continues it later', async () => {
    const four = [cut('1'), cut('2'), cut('3'), cut('4')]
    const { outcome, asked, host } = await play(four)
    expect(outcome).toMatchObject({ ok: true, stopReason: 'cut' })
    expect(asked.length).toBe(4)
    const again = await playTurn(outcome.state, { prompt: null }, host)
    expect(again.outcome).toMatchObject({ ok: true, stopReason: 'done' })
    expect(asked[4]?.payload.messages.at(-1)?.role).toBe('user')
  })

  it('is not continued if the policy says so', async () => {
    const policy = createPolicy({ turn: { reactive: { continuations: 0 } } })
    const { outcome, asked } = await play([cut('one')], { policy })
    expect([outcome.ok, asked.length]).toEqual([true, 1])
  })

  it('in a tool call is asked for again, but not for ever', async () => {
    const cutCall = (id: string): FakeReply => ({ ...reply(toolCall(id)), cut: 0, stop: 'cut' })
    const { outcome, asked } = await play(['a', 'b', 'c', 'd', 'e', 'f'].map(cutCall))
    expect(outcome).toMatchObject({ ok: true, stopReason: 'cut' })
    expect(asked.length).toBe(4)
    expect(toApiMessages(outcome.state.flat).at(-1)?.role).toBe('user')
  })
})

describe('run(null)', () => {
  it.each(['allowed', 'refused'] as const)(
    'on a finished session sends nothing, whether a prefill is %s',
    async (prefill) => {
      const profile = defineMessagesProfile({ roles: { prefill } })
      const { outcome, host, asked } = await play([], { profile })
      const again = await playTurn(outcome.state, { prompt: null }, host)
      expect(again.outcome).toMatchObject({ ok: false, reason: 'invalid' })
      expect(asked.length).toBe(1)
    },
  )

  it('continues an answer that was aborted after a finished block', async () => {
    const signal = { aborted: false }
    const aborted: ModelFailure = { kind: 'aborted', retryable: false, message: 'It was aborted.' }
    const { host, asked } = createScriptedHost([{ ...reply(text('one')), failure: aborted }])
    const first = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'Go.', signal }, host)
    expect(first.outcome).toMatchObject({ ok: false, reason: 'aborted' })
    const { outcome } = await playTurn(first.outcome.state, { prompt: null }, host)
    expect(outcome.ok).toBe(true)
    expect(asked[1]?.payload.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
  })
})
