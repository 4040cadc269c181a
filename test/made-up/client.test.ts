/** Clients of the made-up provider under `tide.fetch`: the codec is one that the application brings with its model. */
import type { JsonObject } from '@tidemark/core/log/json'
import { createTidemark, type SessionEvent } from 'tidemark'
import { expect, it } from 'vitest'
import { createMadeUpWorld, type MadeUpWorld } from '../support/made-up-provider/talk-world.ts'
import {
  type Answer,
  type Entry,
  type Instrument,
  TALK_PATH,
  type Talk,
  type Want,
} from '../support/made-up-provider/words.ts'

const WINDOW = 20_000
const ADDRESS = `http://made-up.example${TALK_PATH}`

/** A program of its own: it keeps its entries, runs the instruments, and knows nothing of Tidemark. */
async function runClient({ coder }: MadeUpWorld, send: typeof fetch): Promise<readonly Entry[]> {
  const instruments = coder.tools.map(
    ({ name, description, input_schema }): Instrument => ({
      label: String(name),
      purpose: String(description),
      shape: input_schema as JsonObject,
    }),
  )
  const entries: Entry[] = [{ who: 'person', says: ['Fix the sum of orders.'] }]
  for (;;) {
    const talk: Talk = { engine: 'lumen-2', ceiling: 1_000, instruments, charter: ['Be careful.'], entries }
    const headers = { 'x-pass': 'north', 'x-talk': 'orders', 'content-type': 'application/json' }
    const response = await send(ADDRESS, { method: 'POST', headers, body: JSON.stringify(talk) })
    if (!response.ok) throw new Error(await response.text())
    const wants = takeAnswer(entries, (await response.json()) as Answer)
    if (wants.length === 0) return entries
    for (const { ref, label, given } of wants) {
      const call = { id: ref, name: label, input: JSON.parse(given) as JsonObject }
      entries.push({ who: 'instrument', ref, gave: String(coder.toolResult(call).content), went: 'well' })
    }
  }
}

function takeAnswer(entries: Entry[], { lines }: Answer): readonly Want[] {
  const says: string[] = []
  const mused = lines.flatMap((line) => (line.is === 'mused' ? [{ seal: line.seal, house: line.house }] : []))
  const wants: { ref: string; label: string; given: string }[] = []
  for (const line of lines) {
    if (line.is === 'says') says.push(line.piece)
    if (line.is === 'want') wants.push({ ref: line.ref, label: line.label, given: '' })
    const last = wants.at(-1)
    if (line.is === 'given' && last !== undefined) last.given += line.piece
  }
  entries.push({
    who: 'engine',
    ...(mused.length === 0 ? {} : { mused }),
    ...(says.length === 0 ? {} : { says: [says.join('')] }),
    ...(wants.length === 0 ? {} : { wants }),
  })
  return wants
}

function listTroubles({ server }: MadeUpWorld): readonly unknown[] {
  return server.records.flatMap(({ trouble }) => (trouble === null ? [] : [trouble]))
}

it('a client alone ends where its window is full', async () => {
  const world = createMadeUpWorld({ turns: 60, window: WINDOW })
  await expect(runClient(world, world.server.fetch)).rejects.toThrow(/brimful/)
})

it('a client goes on in a full window, and what it costs is reported', async () => {
  const world = createMadeUpWorld({ turns: 60, window: WINDOW })
  const events: SessionEvent[] = []
  const onEvent = (event: SessionEvent): void => void events.push(event)
  const tide = createTidemark({ model: world.choose(), memory: true, env: {}, onEvent })
  const entries = await runClient(world, tide.fetch({ fetch: world.server.fetch }))
  expect(entries.length).toBeGreaterThan(100)
  expect(listTroubles(world)).toEqual([])
  expect(events.filter(({ type }) => type === 'compact').length).toBeGreaterThan(0)
  expect(events.filter(({ type }) => type === 'request-passed')).toEqual([])
  expect(await tide.sessions()).toEqual(['orders'])
  const session = await tide.open('orders')
  expect(session.money()).toMatchObject({ calls: world.server.records.length, unpricedCalls: 0 })
  expect(session.money().spent.total).toBeCloseTo(world.server.bill(), 9)
  await tide.close()
})

it('a run that fits is sent as the client alone would send it', async () => {
  const [alone, managed] = [createMadeUpWorld({ turns: 8 }), createMadeUpWorld({ turns: 8 })]
  await runClient(alone, alone.server.fetch)
  const tide = createTidemark({ model: managed.choose(), memory: true, env: {} })
  await runClient(managed, tide.fetch({ fetch: managed.server.fetch }))
  const listTalks = ({ server }: MadeUpWorld): readonly Talk[] => server.records.map(({ talk }) => talk)
  expect(listTalks(managed)).toEqual(listTalks(alone))
  await tide.close()
})
