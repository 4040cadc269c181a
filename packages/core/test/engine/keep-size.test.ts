/** Too many bytes or images: the oldest go, once in many turns, and the session lives on. */
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'
import type { TurnEvent } from '../../src/engine/events.ts'
import type { TurnHost } from '../../src/engine/host.ts'
import { readSessionState, type SessionState } from '../../src/engine/session-state.ts'
import type { Block } from '../../src/log/block.ts'
import type { ProviderProfile } from '../../src/policy/provider-profile.ts'
import { createScriptedHost, logLines, playTurn, type ScriptedHost, text } from './test-session.ts'

const DATA = 'A'.repeat(1_000)
const image: Block = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: DATA } }
const GONE = text('[image: no longer shown, to keep the request within its size]')

function limited(sizes: Partial<ProviderProfile['sizes']>): Partial<TurnHost> {
  const profile = defineMessagesProfile({})
  return { profile: defineMessagesProfile({ sizes: { ...profile.sizes, ...sizes } }) }
}

interface Talked extends ScriptedHost {
  readonly state: SessionState
  readonly events: readonly TurnEvent[]
}

async function talk(prompts: readonly (readonly Block[])[], changes: Partial<TurnHost>): Promise<Talked> {
  const made = createScriptedHost([], changes)
  let state = await readSessionState(made.host.journal, 's')
  const all: TurnEvent[] = []
  for (const prompt of prompts) {
    const { outcome, events } = await playTurn(state, { prompt }, made.host)
    expect(outcome).toMatchObject({ ok: true })
    all.push(...events)
    state = outcome.state
  }
  return { ...made, state, events: all }
}

const prompts = (count: number) => Array.from({ length: count }, (_, at) => [text(`Look ${at}.`), image])
const imagesIn = (value: unknown) => JSON.stringify(value).split('"image/png"').length - 1

describe('a session with more images than may be sent', () => {
  it('leaves out the oldest, well below the limit at once, and tells', async () => {
    const { asked, events, state } = await talk(prompts(12), limited({ images: 8 }))
    expect(asked.map(({ payload }) => imagesIn(payload))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 6, 7, 8, 6])
    expect(events.filter(({ type }) => type === 'media-dropped')).toMatchObject([
      { items: 3, before: { images: 9 }, after: { images: 6 }, limits: { images: 8 } },
      { items: 3, before: { images: 9 }, after: { images: 6 } },
    ])
    expect(asked.at(-1)?.payload.messages[0]?.content).toEqual([text('Look 0.'), GONE])
    expect(logLines(state).filter((line) => line.includes('microcompact'))).toHaveLength(2)
  })

  it('sends the same after it was opened again, and what it left out is still in the log', async () => {
    const { asked, host } = await talk(prompts(9), limited({ images: 8 }))
    const again = await readSessionState(host.journal, 's')
    await playTurn(again, { prompt: 'And?' }, host)
    const [before, after] = asked.slice(-2).map(({ payload }) => payload.messages.slice(0, 15))
    const plain = (value: unknown) => JSON.stringify(value).replaceAll(/,"cache_control":\{[^}]*\}/g, '')
    expect(plain(after)).toBe(plain(before))
    expect(imagesIn([...again.session.records])).toBe(9)
  })

  it('shows them again where that is undone', async () => {
    const { host, events, state } = await talk(prompts(9), limited({ images: 8 }))
    const of = events.flatMap((event) => (event.type === 'media-dropped' ? [event.id] : []))[0]
    if (of === undefined) throw new Error('nothing was left out')
    const links = { uuid: 'u', parentUuid: null, timestamp: '2026-01-01T00:00:00Z', sessionId: 's' }
    await host.journal.append('s', state.position, [
      { ...links, type: 'system', subtype: 'clear_undone', of },
    ])
    const { flat } = await readSessionState(host.journal, 's')
    expect(imagesIn([...flat.frozen, ...flat.tail])).toBe(9)
  })

  it('counts those in one prompt and in results each for itself', async () => {
    const many = [text('Many.'), image, image, image]
    const { asked, state, host } = await talk([many, [text('More.'), image], [image]], limited({ images: 4 }))
    expect(asked.at(-1)?.payload.messages[0]?.content).toEqual([text('Many.'), GONE, GONE, image])
    const { outcome } = await playTurn(state, { prompt: [image, image] }, host)
    expect(outcome.ok).toBe(true)
    expect(asked.at(-1)?.payload.messages[0]?.content).toEqual([text('Many.'), GONE, GONE, GONE])
  })

  it('is as well off with bytes', async () => {
    const { asked } = await talk(prompts(12), limited({ bodyBytes: 8_000 }))
    expect(asked.every(({ payload }) => JSON.stringify(payload).length <= 8_000)).toBe(true)
    expect(imagesIn(asked.at(-1)?.payload)).toBeGreaterThan(2)
  })

  it('halts where what nobody has answered is too much by itself', async () => {
    const { host } = createScriptedHost([], limited({ images: 2 }))
    const { outcome } = await playTurn(
      await readSessionState(host.journal, 's'),
      { prompt: [image, image, image] },
      host,
    )
    expect(outcome).toMatchObject({ ok: false, reason: 'invalid', findings: [{ code: 'image-count' }] })
  })
})
