/**
 * Sessions on a provider that does not exist and shares no word with a real one. What holds here holds because the engine
 * is neutral, and not because it knows the provider.
 */
import type { JsonObject } from '@tidemark/core/log/json'
import {
  createTidemark,
  type PolicyOverrides,
  type Session,
  type SessionEvent,
  toolResult,
  user,
} from 'tidemark'
import { createMemoryJournal, type MemoryStore } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import {
  createMadeUpWorld,
  type MadeUpOptions,
  type MadeUpWorld,
} from '../support/made-up-provider/talk-world.ts'
import type { Answer, Entry, Seal } from '../support/made-up-provider/words.ts'

const PROMPT = 'Fix the sum of orders.'
const SYSTEM = 'You repair programs, and you say what you changed.'

interface OpenWorld extends MadeUpWorld {
  readonly session: Session
  readonly store: MemoryStore
  readonly events: readonly SessionEvent[]
  readonly reopen: (account?: string) => Promise<Session>
}

async function open(options: MadeUpOptions & { readonly policy?: PolicyOverrides } = {}): Promise<OpenWorld> {
  const { policy = {}, ...given } = options
  const world = createMadeUpWorld(given)
  const store: MemoryStore = new Map()
  const events: SessionEvent[] = []
  const reopen = (account?: string): Promise<Session> =>
    createTidemark({
      model: world.choose(account),
      journal: createMemoryJournal(store),
      blobs: null,
      system: SYSTEM,
      env: {},
      policy,
      onEvent: (event) => void events.push(event),
    }).open('a')
  return { ...world, store, events, reopen, session: await reopen() }
}

async function work({ session, tools }: OpenWorld, prompt: string | null = PROMPT): Promise<void> {
  expect(await session.run(prompt, tools).outcome).toMatchObject({ ok: true })
}

function listTroubles({ server }: OpenWorld): readonly unknown[] {
  return server.records.flatMap(({ trouble }) => (trouble === null ? [] : [trouble]))
}

function listSeals(entry: Entry): readonly Seal[] {
  return entry.who === 'engine' ? (entry.mused ?? []) : []
}

function listWants({ lines }: Answer): readonly { id: string; name: string; input: JsonObject }[] {
  return lines.flatMap((line, at) => {
    if (line.is !== 'want') return []
    const rest = lines.slice(at + 1)
    const end = rest.findIndex(({ is }) => is !== 'given')
    const given = rest.slice(0, end).map((piece) => (piece.is === 'given' ? piece.piece : ''))
    return [{ id: line.ref, name: line.label, input: JSON.parse(given.join('')) }]
  })
}

async function readNext({ session, coder }: Pick<OpenWorld, 'session' | 'coder'>): Promise<string> {
  const next = await session.next({ tools: coder.tools })
  if (!next.ok) throw new Error(next.message)
  return next.text
}

describe('a run that fills the window several times', () => {
  it('is never refused, costs what the provider bills, and reads what was foreseen, to the step', async () => {
    const world = await open({ turns: 60 })
    await work(world)
    expect(listTroubles(world)).toEqual([])
    expect(world.events.filter(({ type }) => type === 'compact').length).toBeGreaterThan(1)
    const { spent, calls, unpricedCalls } = world.session.money()
    expect({ calls, unpricedCalls }).toEqual({ calls: world.server.records.length, unpricedCalls: 0 })
    expect(spent.total).toBeCloseTo(world.server.bill(), 9)
    const answered = world.events.filter((event) => event.type === 'answered')
    const differing = answered.filter(({ usage, forecast }) => usage?.recalled !== forecast.read)
    expect(differing).toEqual([])
    expect(answered.filter(({ forecast }) => forecast.read > 0 && forecast.isCertain).length).toBeGreaterThan(
      50,
    )
    expect(world.events.filter(({ type }) => type === 'cache-break')).toEqual([])
  })

  it('only appends to the bytes of a request, unless the context was rewritten', async () => {
    const world = await open({ turns: 30 })
    await work(world)
    const texts = world.server.records.map(({ text }) => text)
    const changed = texts
      .slice(1)
      .filter((text, index) => !text.startsWith(String(texts[index]).slice(0, -2)))
    expect(changed.length).toBe(world.events.filter(({ type }) => type === 'compact').length)
    expect(texts.length).toBeGreaterThan(changed.length * 5)
  })

  it('sends sealed items back as they came, all of an answer or none', async () => {
    const world = await open({ turns: 30 })
    await work(world)
    const entries = world.server.records.flatMap(({ talk }) => talk.entries)
    const sent = entries.map((entry) => listSeals(entry).map(({ seal }) => seal))
    expect(sent.filter((seals) => seals.length > 0).length).toBeGreaterThan(100)
    for (const seals of sent)
      if (seals.length > 0) expect(seals).toEqual(world.server.sealed.get(String(seals[0])))
  })

  it('gives the same bytes every time', async () => {
    const [one, other] = [await open({ turns: 30 }), await open({ turns: 30 })]
    await work(one)
    await work(other)
    expect(other.server.records.map(({ text }) => text)).toEqual(one.server.records.map(({ text }) => text))
  })

  it('goes on in the log with the same next request and the same money', async () => {
    const world = await open({ turns: 30 })
    await work(world)
    await world.session.append(user('And the tests?'))
    const [text, money] = [await readNext(world), world.session.money()]
    const remaining = world.session.contextRemaining()
    await world.session.close()
    const session = await world.reopen()
    expect(await readNext({ session, coder: world.coder })).toBe(text)
    expect(session.money()).toEqual(money)
    expect(session.contextRemaining()).toEqual(remaining)
  })
})

describe('figures', () => {
  it('are those of the provider after an answer, and never old after a rewrite', async () => {
    const world = await open({ turns: 12 })
    await work(world)
    const { heard = 0, spoken = 0 } = world.server.records.at(-1)?.tally ?? {}
    const before = world.session.contextRemaining().tokens
    expect(before).toBe(heard + spoken)
    expect((await world.session.compact()).ok).toBe(true)
    const after = world.session.contextRemaining().tokens
    expect(after).toBeLessThan(before)
    expect((await world.session.undo()).ok).toBe(true)
    expect(world.session.contextRemaining().tokens).toBeGreaterThan(after)
    expect(listTroubles(world)).toEqual([])
  })
})

describe('a rewrite', () => {
  it('by a summary of the model is undone to the byte', async () => {
    const world = await open({ turns: 12, policy: { notes: { enabled: false } } })
    await work(world)
    await world.session.append(user('And the tests?'))
    const before = JSON.stringify(world.session.messages())
    expect(await world.session.compact()).toMatchObject({ ok: true })
    const compacted = JSON.stringify(world.session.messages())
    expect(compacted.length).toBeLessThan(before.length)
    expect(compacted).toContain(PROMPT)
    await world.session.undo()
    expect(JSON.stringify(world.session.messages()).startsWith(before.slice(0, -3))).toBe(true)
    await work(world, null)
    expect(listTroubles(world)).toEqual([])
    expect(world.session.money().spent.total).toBeCloseTo(world.server.bill(), 9)
  })

  it('by clearing results leaves the rest, and is undone to the byte', async () => {
    const world = await open({ turns: 12, resultTokens: 600, window: 60_000 })
    await work(world)
    const before = JSON.stringify(world.session.messages())
    const [largest] = world.session.breakdown().messages.toSorted((one, other) => other.tokens - one.tokens)
    expect(await world.session.clearResults([String(largest?.uuid)])).toMatchObject({ ok: true })
    const cleared = JSON.stringify(world.session.messages())
    expect(cleared.length).toBeLessThan(before.length - 1_000)
    await work(world, 'And the tests?')
    expect(listTroubles(world)).toEqual([])
    expect((await world.session.undo()).ok).toBe(true)
    expect(JSON.stringify(world.session.messages()).startsWith(before.slice(0, -3))).toBe(true)
  })

  it('is made when the provider says that no more fits', async () => {
    const world = createMadeUpWorld({ turns: 30, window: 9_000 })
    const model = { ...world.choose(), window: 40_000 }
    const session = await createTidemark({ model, memory: true, env: {} }).open('a')
    expect(await session.run(PROMPT, world.tools).outcome).toMatchObject({ ok: true })
    const troubles = world.server.records.flatMap(({ trouble }) => trouble?.name ?? [])
    expect(new Set(troubles)).toEqual(new Set(['brimful']))
    expect(troubles.length).toBeLessThan(5)
  })
})

describe('with everything off', () => {
  it('every request repeats the one before it, until the provider refuses', async () => {
    const world = createMadeUpWorld({ turns: 60, window: 12_000 })
    const env = { DISABLE_COMPACT: '1', DISABLE_MICROCOMPACT: '1' }
    const session = await createTidemark({ model: world.choose(), memory: true, env }).open('a')
    expect(await session.run(PROMPT, world.tools).outcome).toMatchObject({ ok: false })
    const texts = world.server.records.map(({ text }) => text)
    const changed = texts.slice(1).filter((text, at) => !text.startsWith(String(texts[at]).slice(0, -2)))
    expect(changed).toEqual([])
    expect(texts.length).toBeGreaterThan(20)
  })
})

describe('a loop of one’s own', () => {
  it('appends answers in the provider’s own shape, with their cost and their sealed items', async () => {
    const world = await open({ turns: 6 })
    const { session, coder, server } = world
    await session.append(user(PROMPT))
    for (;;) {
      const next = await session.next({ tools: coder.tools })
      if (!next.ok) throw new Error(next.message)
      const headers = { 'x-pass': 'north' }
      const response = await server.fetch('http://made-up.example', {
        method: 'POST',
        body: next.text,
        headers,
      })
      const answer = (await response.json()) as Answer
      await session.append(answer)
      const wants = listWants(answer)
      if (wants.length === 0) break
      const results = wants.map((call) => toolResult(call.id, String(coder.toolResult(call).content)))
      await session.append(...results)
    }
    expect(listTroubles(world)).toEqual([])
    expect(server.records.length).toBeGreaterThan(6)
    expect(session.money()).toMatchObject({ calls: server.records.length, unpricedCalls: 0 })
    expect(session.money().spent.total).toBeCloseTo(server.bill(), 9)
    expect(server.records.at(-1)?.talk.entries.flatMap(listSeals).length).toBeGreaterThan(3)
  })
})
