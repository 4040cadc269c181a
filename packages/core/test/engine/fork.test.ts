/** Questions on the side: made of what was really sent, paid for in the log, and no part of the conversation. */
import { type FakeReply, type ForkResult, runFork, runToEnd } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { findLastCachedPrefix } from '../../src/cache/cache-model.ts'
import type { TurnEvent } from '../../src/engine/events.ts'
import type { TurnHost } from '../../src/engine/host.ts'
import { readSessionState, type SessionState } from '../../src/engine/session-state.ts'
import { appendUnlinkedRecords } from '../../src/engine/session-writer.ts'
import { buildForkRequest, type ForkRequestOptions } from '../../src/engine/side-call.ts'
import { toPayload } from '../../src/request/build-request.ts'
import { createScriptedHost, playTurn, type ScriptedHost, text, toolCall } from './test-session.ts'

const PRICES = { input: 10, cacheRead: 1, writeShort: 12.5, writeLong: 20, output: 50 }
const QUESTION: ForkRequestOptions = { source: 'compact', messages: [{ role: 'user', content: 'Sum up.' }] }

async function talked(
  side: FakeReply,
  changes: Partial<TurnHost> = {},
): Promise<ScriptedHost & { readonly state: SessionState }> {
  const first = { blocks: [text('Yes.')], usage: { short: 50_000 } }
  const made = createScriptedHost([first, side], { pricesOf: () => PRICES, ...changes })
  const { outcome } = await playTurn(
    await readSessionState(made.host.journal, 's'),
    { prompt: 'First.' },
    made.host,
  )
  return { ...made, state: outcome.state }
}

async function forked(
  state: SessionState,
  asked: ForkRequestOptions,
  host: TurnHost,
): Promise<{ readonly events: readonly TurnEvent[]; readonly end: ForkResult }> {
  const events: TurnEvent[] = []
  const stream = runFork(state, asked, host)
  for (;;) {
    const step = await stream.next()
    if (step.done === true) return { events, end: step.value }
    events.push(step.value)
  }
}

const READ: FakeReply = {
  blocks: [text('All is well.'), toolCall('x')],
  usage: { read: 50_000 },
}

describe('a fork', () => {
  it('adds what was said since and its own messages to what was sent', async () => {
    const { state, host, asked } = await talked(READ)
    await forked(state, QUESTION, host)
    const said = asked[1]?.payload.messages.map(({ role, content }) => [role, content])
    expect(said).toEqual([
      ['user', [{ ...text('First.'), cache_control: { type: 'ephemeral' } }]],
      ['assistant', [text('Yes.')]],
      ['user', 'Sum up.'],
    ])
  })

  it('leaves out what was said since where that is asked for', async () => {
    const { state, host } = await talked(READ)
    const made = buildForkRequest(state, { ...QUESTION, asSent: true }, host)
    expect(made.ok && toPayload(made.request).messages.map(({ role }) => role)).toEqual(['user'])
  })

  it('hands back the reply, tells how well it read, and leaves in the log what it cost', async () => {
    const { state, host } = await talked(READ)
    const { events, end } = await forked(state, QUESTION, host)
    const share = 50_000 / 50_010
    const fork = { source: 'compact', expected: 50_000, read: 50_000, share, missed: null }
    expect(events.at(-1)).toEqual({ type: 'fork', fork })
    expect(end).toMatchObject({ ok: true, reply: { message: { content: READ.blocks } }, read: fork })
    const records = [...end.state.session.records].slice(-1)
    expect(records).toMatchObject([
      {
        type: 'system',
        subtype: 'model_call',
        modelCall: { id: 'message-2', source: 'compact', model: 'model-a' },
      },
    ])
    expect(end.state.flat.tail.length).toBe(state.flat.tail.length)
    const spent = 0.0001 + 0.05 + 0.00025
    const totals = { calls: 2, spentOnCompaction: { total: expect.closeTo(spent, 9) } }
    expect(events.find(({ type }) => type === 'priced')).toMatchObject({ totals })
  })

  it('shows no word of its reply as the conversation’s', async () => {
    const { state, host } = await talked(READ)
    const { events } = await forked(state, QUESTION, host)
    const types = new Set(events.map(({ type }) => type))
    expect([types.has('reply'), types.has('answered'), types.has('side-reply')]).toEqual([false, false, true])
  })

  it('that misses says why, and does not disturb what its parent expects', async () => {
    const missed = { blocks: [text('Hm.')], usage: { short: 50_000 } }
    const { state, host } = await talked(missed)
    const { events, end } = await forked(state, QUESTION, host)
    const fork = events.flatMap((event) => (event.type === 'fork' ? [event.fork.missed] : []))
    expect(fork).toEqual([expect.stringMatching(/^Cache broke: .*50,000 tokens/)])
    const [chain] = end.state.cacheModel?.chains ?? []
    expect(chain?.blockIndex).toBe(end.state.cacheMonitor.sources.get('repl_main_thread')?.last?.blockIndex)
    expect(chain === undefined ? null : findLastCachedPrefix(chain)?.tokens).toBe(50_000)
  })

  it('of the first records only is refused, with the reason, once the provider has cleared results', async () => {
    const { state, host } = await talked(READ)
    const records = new Set(state.view.entries.toArray(0, 1).map(({ record }) => record.uuid))
    expect(buildForkRequest(state, { ...QUESTION, records }, host)).toMatchObject({ ok: true })
    const turn = { state, host, signal: undefined }
    const microcompactMetadata = { trigger: 'auto', way: 'native', preTokens: 9, tokensSaved: 1 }
    const cleared = { compactedToolIds: ['x'], clearedAttachmentUUIDs: [] }
    const boundary = {
      type: 'system',
      subtype: 'microcompact_boundary',
      microcompactMetadata: { ...microcompactMetadata, ...cleared },
    } as const
    await runToEnd(appendUnlinkedRecords(turn, [boundary as never]))
    expect(buildForkRequest(turn.state, { ...QUESTION, records }, host)).toMatchObject({
      ok: false,
      reason: 'not-cached',
      message: 'The provider has cleared tool results, and clears others in a shorter request.',
    })
  })

  it('needs a request that was sent', async () => {
    const { host } = createScriptedHost([])
    const { end } = await forked(await readSessionState(host.journal, 's'), QUESTION, host)
    expect(end).toMatchObject({ ok: false, reason: 'nothing-sent' })
  })

  it('does not send what the provider would refuse', async () => {
    const { state, host, asked } = await talked(READ)
    const { end } = await forked(state, { ...QUESTION, messages: [] }, host)
    expect([end, asked.length]).toMatchObject([{ ok: false, reason: 'invalid' }, 1])
  })

  it('that fails is told, and what it cost is kept', async () => {
    const failure = { kind: 'overloaded', retryable: true, message: 'Overloaded' } as const
    const { state, host } = await talked({ blocks: [], failure })
    const { end } = await forked(state, QUESTION, host)
    expect(end).toMatchObject({ ok: false, reason: 'failed', failure })
    expect([...end.state.session.records].at(-1)).toMatchObject({ subtype: 'model_call' })
  })
})
