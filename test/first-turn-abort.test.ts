/** A turn that is called off over a real connection, in the middle of a reply. */
import type { TurnEvent, TurnOutcome } from '@tidemark/core/engine/events'
import type { TurnHost } from '@tidemark/core/engine/host'
import { readSessionState, type SessionState } from '@tidemark/core/engine/session-state'
import { toBlocks } from '@tidemark/core/log/block'
import { isKnownRecord } from '@tidemark/core/log/record'
import { createTestHost, runSingleTurn } from '@tidemark/core/testing'
import { createManualClock, type Script, type SimulatorServer, serve } from '@tidemark/simulator'
import { anthropicCodec } from '@tidemark/wire/anthropic/codec'
import { createProviderProfile } from '@tidemark/wire/profiles/provider-profile'
import { createHttpModel, systemIds } from 'tidemark/internal'
import { afterEach, describe, expect, it } from 'vitest'
import { findModel } from './support/simulated-host.ts'

/** The first answer stops for ever behind its first block, on a clock that stands still; later ones do not. */
const slow: Script = (_, { index }) =>
  index === 0
    ? {
        blocks: [
          { type: 'text', text: 'I begin.' },
          { type: 'text', text: 'I go on.' },
        ],
        delays: { blockMs: 60_000 },
      }
    : { blocks: [{ type: 'text', text: 'Done.' }] }

const served: SimulatorServer[] = []
afterEach(async () => {
  for (const one of served.splice(0)) await one.close()
})

async function hostOf(): Promise<TurnHost> {
  const server = await serve({ script: slow, clock: createManualClock() })
  served.push(server)
  const model = findModel('claude-opus-5')
  return createTestHost({
    model: createHttpModel({
      codec: anthropicCodec,
      baseUrl: server.url,
      credentials: { style: 'key', secret: 'any' },
    }),
    ids: systemIds,
    profile: createProviderProfile(model),
    pricesOf: () => model.prices,
    readOfferedPrefix: () => ({ tools: [], model: 'claude-opus-5', parameters: { max_tokens: 100 } }),
  })
}

async function calledOff(
  host: TurnHost,
  isTime: (event: TurnEvent) => boolean,
): Promise<{ readonly outcome: TurnOutcome; readonly events: readonly TurnEvent[] }> {
  const controller = new AbortController()
  const events: TurnEvent[] = []
  const asked = { prompt: 'Go.', signal: controller.signal }
  for await (const event of runSingleTurn(await readSessionState(host.journal, 's'), asked, host)) {
    events.push(event)
    if (isTime(event)) controller.abort()
    if (event.type === 'turn-ended') return { outcome: event.outcome, events }
  }
  throw new Error('a turn ends with its outcome')
}

function said({ session }: SessionState): readonly string[] {
  return [...session.records].flatMap((record) => {
    if (!isKnownRecord(record)) return []
    if (record.type === 'system') return [`${record.subtype}`]
    if (record.type !== 'user' && record.type !== 'assistant') return []
    return toBlocks(record.message.content).map(({ text }) => `${record.type}: ${text}`)
  })
}

const replied = (event: TurnEvent, type: string): boolean =>
  event.type === 'reply' && event.event.type === type

describe('a turn called off over HTTP', () => {
  it('in the middle of a reply keeps the whole blocks and their price, and the session goes on', async () => {
    const host = await hostOf()
    const { outcome, events } = await calledOff(host, (event) => replied(event, 'block-ended'))
    expect(outcome).toMatchObject({ ok: false, reason: 'aborted' })
    expect(said(outcome.state)).toEqual(['user: Go.', 'epoch', 'assistant: I begin.', 'model_call'])
    expect(events.filter(({ type }) => type === 'priced')).toMatchObject([{ totals: { calls: 1 } }])
    const again = runSingleTurn(outcome.state, { prompt: 'Again.' }, host)
    const ends: TurnOutcome[] = []
    for await (const event of again) if (event.type === 'turn-ended') ends.push(event.outcome)
    expect(ends.map(({ ok, state }) => [ok, said(state).slice(4)])).toEqual([
      [
        true,
        [
          'user: The user interrupted your answer above; it ends where they stopped you.',
          'user: Again.',
          'assistant: Done.',
        ],
      ],
    ])
  })

  it('before a block was whole says nothing in the conversation, and is paid for', async () => {
    const host = await hostOf()
    const { outcome } = await calledOff(host, (event) => replied(event, 'reply-started'))
    expect(outcome).toMatchObject({ ok: false, reason: 'aborted' })
    expect(said(outcome.state).slice(0, 2)).toEqual(['user: Go.', 'epoch'])
    const reopened = await readSessionState(host.journal, 's')
    expect(said(reopened)).toEqual(said(outcome.state))
  })
})
