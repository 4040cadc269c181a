import type { FakeReply } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import type { TurnEvent } from '../../src/engine/events.ts'
import type { ModelFailure } from '../../src/engine/reply.ts'
import { readSessionState } from '../../src/engine/session-state.ts'
import type { TurnContext } from '../../src/engine/session-writer.ts'
import { runSideCall, type SideCallRequest, type SideCallResult } from '../../src/engine/side-call.ts'
import { createScriptedHost, playTurn, text } from './test-session.ts'

const PRICES = { input: 10, cacheRead: 1, writeShort: 12.5, writeLong: 20, output: 50 }

async function called(
  side: FakeReply,
  more: Partial<SideCallRequest>,
): Promise<{
  readonly events: readonly TurnEvent[]
  readonly end: SideCallResult
  readonly run: TurnContext
}> {
  const first = { blocks: [text('Yes.')], usage: { short: 50_000 } }
  const { host } = createScriptedHost([first, side], { pricesOf: () => PRICES })
  const { outcome } = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'First.' }, host)
  const { lastRequest: sent } = outcome.state
  if (sent === null) throw new Error('a turn sends a request')
  const run: TurnContext = { state: outcome.state, host, signal: undefined }
  const stream = runSideCall(run, { request: sent, source: 'compact', ...more })
  const events: TurnEvent[] = []
  for (;;) {
    const step = await stream.next()
    if (step.done === true) return { events, end: step.value, run }
    events.push(step.value)
  }
}

const MISSED: FakeReply = { blocks: [text('A summary.')], usage: { short: 50_000 } }
const last = ({ state }: TurnContext): unknown => [...state.session.records].at(-1)

describe('a call on the side', () => {
  it('that is no fork is not judged by the cache of the conversation, and is paid for', async () => {
    const { events, end, run } = await called(MISSED, {})
    expect(end).toMatchObject({ answer: { ok: true }, outcome: { kind: 'not-judged', why: 'not-watched' } })
    expect(last(run)).toMatchObject({ subtype: 'model_call', modelCall: { source: 'compact' } })
    expect(events.at(-1)).toMatchObject({ type: 'priced', totals: { breaks: 0, calls: 2 } })
  })

  it('that is a fork and misses is a break, in the log with its cost', async () => {
    const { run, end } = await called(MISSED, { forkOf: 'sdk' })
    expect([end.outcome.kind, last(run)]).toMatchObject([
      'broke',
      { subtype: 'cache_loss', batch: { of: 2 } },
    ])
  })

  it('that fails is in the log with what it cost', async () => {
    const failure: ModelFailure = { kind: 'overloaded', retryable: true, message: 'Overloaded' }
    const { end, run } = await called({ blocks: [], failure }, { forkOf: 'sdk' })
    expect(end).toMatchObject({ answer: { ok: false, failure } })
    expect(last(run)).toMatchObject({ subtype: 'model_call' })
  })
})
