import { runSingleTurn } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import type { TurnOutcome } from '../../src/engine/events.ts'
import type { NewRecord } from '../../src/engine/ports.ts'
import type { ModelFailure } from '../../src/engine/reply.ts'
import { readSessionState, refreshSessionState } from '../../src/engine/session-state.ts'
import { createPolicy } from '../../src/policy/create-policy.ts'
import { createScriptedHost, logLine, logLines, playTurn, reply, text, toolCall } from './test-session.ts'

const OVERLOADED: ModelFailure = { kind: 'overloaded', retryable: true, message: 'Overloaded' }

describe('a turn that another writer comes into', () => {
  const prompt = (uuid: string): NewRecord => ({
    type: 'user',
    uuid,
    parentUuid: null,
    timestamp: '2026-01-01T00:00:00Z',
    sessionId: 's',
    message: { role: 'user', content: 'From elsewhere.' },
  })

  it('in the middle of a reply halts with all that was not written, and loses nothing', async () => {
    const { host } = createScriptedHost([reply(text('one'), text('two'), text('three'))])
    const state = await readSessionState(host.journal, 's')
    let last: TurnOutcome | null = null
    for await (const event of runSingleTurn(state, { prompt: 'Count.' }, host)) {
      if (event.type === 'turn-ended') last = event.outcome
      const isSecond = event.type === 'reply' && event.event.type === 'block-ended' && event.event.index === 1
      if (isSecond) await host.journal.append('s', 2, [prompt('p')])
    }
    if (last === null || last.ok || last.reason !== 'conflict') throw new Error(JSON.stringify(last?.ok))
    expect(last.unsaved.map((record) => logLine(record))).toEqual(['assistant: one', 'assistant: two'])
    const [first, second] = last.unsaved
    expect(second?.parentUuid).toBe(first?.uuid)
    const caught = await refreshSessionState(host.journal, last.state)
    expect(logLines(caught)).toEqual(['user: Count.', 'system epoch', 'user: From elsewhere.'])
    const { outcome } = await playTurn(caught, { prompt: null }, host)
    expect([outcome.ok, logLines(outcome.state).at(-1)]).toEqual([true, 'assistant: Done.'])
  })

  it('at the end of a reply halts with its last block and what it cost', async () => {
    const { host } = createScriptedHost([reply(text('one'))])
    const state = await readSessionState(host.journal, 's')
    for await (const event of runSingleTurn(state, { prompt: 'Count.' }, host)) {
      if (event.type === 'reply' && event.event.type === 'reply-ended')
        await host.journal.append('s', 2, [prompt('p')])
      if (event.type !== 'turn-ended') continue
      const { outcome } = event
      expect(outcome).toMatchObject({
        reason: 'conflict',
        refusal: { position: 3 },
        unsaved: [{ type: 'assistant', message: { usage: { output: 5 } } }],
      })
    }
    expect.assertions(1)
  })
})

describe('the calls of a turn', () => {
  it('are so many at most, and the turn can be taken up again', async () => {
    const { host, asked } = createScriptedHost(
      [reply(toolCall('a')), reply(toolCall('b')), reply(toolCall('c'))],
      { maxCalls: 2 },
    )
    const first = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'Go.' }, host)
    expect(first.outcome).toMatchObject({ ok: false, reason: 'call-limit', calls: 2 })
    expect([asked.length, logLines(first.outcome.state).at(-1)]).toEqual([2, 'user: result of b'])
    const { outcome } = await playTurn(first.outcome.state, { prompt: null }, host)
    expect([outcome.ok, asked.length]).toEqual([true, 4])
  })

  it.each([0, -1, 1.5, Number.NaN])('cannot be %d', async (maxCalls) => {
    const { host } = createScriptedHost([], { maxCalls })
    const turn = playTurn(await readSessionState(host.journal, 's'), { prompt: 'Go.' }, host)
    await expect(turn).rejects.toMatchObject({ code: 'bad-option' })
  })

  it('that fail before they say anything are paid for all the same', async () => {
    const policy = createPolicy({ turn: { network: { retries: 0 } } })
    const { host } = createScriptedHost([{ blocks: [], failure: OVERLOADED }], { policy })
    const { outcome, events } = await playTurn(
      await readSessionState(host.journal, 's'),
      { prompt: 'Go.' },
      host,
    )
    expect(logLines(outcome.state).at(-1)).toBe('system model_call')
    expect(events.find(({ type }) => type === 'priced')).toMatchObject({
      call: { source: 'sdk', id: 'message-1' },
    })
  })
})
