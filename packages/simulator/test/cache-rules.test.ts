import { createManualClock } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import {
  assistant,
  call,
  HOUR,
  MARK,
  postMessage,
  readUsageFigures,
  result,
  simulate,
  TOOL,
  text,
  tokens,
  user,
} from './ask.ts'

/** One message with this many blocks and a marker on the last. */
function blocks(count: number, marked: readonly number[] = [count]): object {
  return user(
    ...Array.from({ length: count }, (_, index) =>
      text(tokens(100, `block ${index + 1}`), marked.includes(index + 1) ? MARK : {}),
    ),
  )
}

describe('look-back', () => {
  const cases = [
    { name: 'an entry at 16 is found from 35', written: 16, asked: [35], read: 16 },
    { name: 'an entry at 15 is missed from 35', written: 15, asked: [35], read: 0 },
    { name: 'a second breakpoint starts a second window', written: 15, asked: [15, 35], read: 15 },
    { name: 'the entry itself', written: 35, asked: [35], read: 35 },
  ]
  it.each(cases)('$name', async ({ written, asked, read }) => {
    const simulator = simulate()
    await postMessage(simulator, { messages: [blocks(written)] })
    const told = await postMessage(simulator, { messages: [blocks(35, asked)] })
    // A message costs 4 tokens on top of its blocks.
    const expected = read === 0 ? 0 : read * 100 + 4
    expect(readUsageFigures(told)).toEqual({
      read: expected,
      write5m: 3_504 - expected,
      write1h: 0,
      input: 0,
    })
  })

  it('finds only prefixes that had a breakpoint', async () => {
    const simulator = simulate()
    await postMessage(simulator, { messages: [blocks(6)] })
    const changed = user(
      ...Array.from({ length: 6 }, (_, index) =>
        text(tokens(100, index === 5 ? 'another' : `block ${index + 1}`), index === 5 ? MARK : {}),
      ),
    )
    expect(readUsageFigures(await postMessage(simulator, { messages: [changed] })).read).toBe(0)
  })

  it('counts consecutive calls as one position, and consecutive results', async () => {
    const simulator = simulate()
    const ids = Array.from({ length: 30 }, (_, index) => `toolu_${index}`)
    const start = [user(text(tokens(600), MARK))]
    await postMessage(simulator, { tools: [TOOL], messages: start })
    const answered = (marked: boolean): readonly object[] => [
      user(text(tokens(600))),
      assistant(...ids.map((id) => call(id))),
      user(...ids.map((id, index) => result(id, 'seen', marked && index === 29 ? MARK : {}))),
    ]
    const told = await postMessage(simulator, { tools: [TOOL], messages: answered(true) })
    expect(readUsageFigures(told).read).toBeGreaterThan(600)
  })

  it('finds an entry in the middle of a run', async () => {
    const simulator = simulate()
    const turn = (marked: number): readonly object[] => [
      user(tokens(600)),
      assistant(call('a'), call('b')),
      user(result('a', 'one', marked === 0 ? MARK : {}), result('b', 'two', marked === 1 ? MARK : {})),
    ]
    await postMessage(simulator, { tools: [TOOL], messages: turn(0) })
    const told = readUsageFigures(await postMessage(simulator, { tools: [TOOL], messages: turn(1) }))
    expect(told).toMatchObject({ write5m: 9, input: 0 })
  })
})

describe('minimum', () => {
  it.each([
    { model: 'claude-opus-5', minimum: 512 },
    { model: 'claude-opus-4-8', minimum: 1_024 },
    { model: 'claude-opus-4-7', minimum: 2_048 },
    { model: 'claude-haiku-4-5', minimum: 4_096 },
  ])('$model caches from $minimum tokens on, and silently not below', async ({ model, minimum }) => {
    const simulator = simulate()
    const system = (count: number): object => ({
      model,
      system: [text(tokens(count), MARK)],
      messages: [user('hi')],
    })
    expect(readUsageFigures(await postMessage(simulator, system(minimum - 1)))).toEqual({
      read: 0,
      write5m: 0,
      write1h: 0,
      input: minimum - 1 + 5,
    })
    const figures = { read: 0, write5m: minimum, write1h: 0, input: 5 }
    expect(readUsageFigures(await postMessage(simulator, system(minimum)))).toEqual(figures)
    expect(readUsageFigures(await postMessage(simulator, system(minimum))).read).toBe(minimum)
  })
})

describe('lifetime', () => {
  const prompt = (marker: object): object => ({ messages: [user(text(tokens(600), marker))] })
  it.each([
    { name: '5 minutes, after 299 s', marker: MARK, seconds: 299, alive: true },
    { name: '5 minutes, after 301 s', marker: MARK, seconds: 301, alive: false },
    { name: '1 hour, after 301 s', marker: HOUR, seconds: 301, alive: true },
    { name: '1 hour, after 3599 s', marker: HOUR, seconds: 3_599, alive: true },
    { name: '1 hour, after 3601 s', marker: HOUR, seconds: 3_601, alive: false },
  ])('$name: alive is $alive', async ({ marker, seconds, alive }) => {
    const simulator = simulate({ clock: createManualClock() })
    await postMessage(simulator, prompt(marker))
    simulator.advance(seconds * 1_000)
    expect(readUsageFigures(await postMessage(simulator, prompt(marker))).read).toBe(alive ? 604 : 0)
  })

  it('restarts with each use', async () => {
    const simulator = simulate({ clock: createManualClock() })
    await postMessage(simulator, prompt(MARK))
    for (const _ of [1, 2, 3]) {
      simulator.advance(299_000)
      expect(readUsageFigures(await postMessage(simulator, prompt(MARK))).read).toBe(604)
    }
    simulator.advance(301_000)
    expect(readUsageFigures(await postMessage(simulator, prompt(MARK))).read).toBe(0)
  })

  it('restarts for an entry that was found by look-back', async () => {
    const simulator = simulate({ clock: createManualClock() })
    const on = (mark: string): object => ({ messages: [user(tokens(600), text(tokens(100, mark), MARK))] })
    await postMessage(simulator, prompt(MARK))
    for (const mark of ['one', 'two', 'three']) {
      simulator.advance(200_000)
      expect(readUsageFigures(await postMessage(simulator, on(mark))).read).toBe(604)
    }
  })

  it('is not changed by a marker with another TTL', async () => {
    const simulator = simulate({ clock: createManualClock() })
    await postMessage(simulator, prompt(HOUR))
    expect(readUsageFigures(await postMessage(simulator, prompt(MARK)))).toEqual({
      read: 604,
      write5m: 0,
      write1h: 0,
      input: 0,
    })
    simulator.advance(3_599_000)
    expect(readUsageFigures(await postMessage(simulator, prompt(MARK))).read).toBe(604)
  })

  it('runs from the start of the request, not from its answer', async () => {
    const clock = createManualClock()
    const slow = simulate({
      clock,
      script: (request) => ({
        blocks: [{ type: 'text', text: 'ok' }],
        delays: { startMs: request.body.metadata === undefined ? 0 : 240_000 },
      }),
    })
    const first = postMessage(slow, { ...prompt(MARK), metadata: { user_id: 'slow' } })
    await settled()
    await clock.advance(240_000)
    await first
    await clock.advance(59_000)
    expect(readUsageFigures(await postMessage(slow, prompt(MARK))).read).toBe(604)
    await clock.advance(301_000)
    const again = postMessage(slow, { ...prompt(MARK), metadata: { user_id: 'slow' } })
    await settled()
    await clock.advance(240_000)
    await again
    await clock.advance(61_000)
    expect(readUsageFigures(await postMessage(slow, prompt(MARK))).read).toBe(0)
  })
})

function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

describe('visibility', () => {
  const prompt = { messages: [user(text(tokens(600), MARK))] }
  it('lets parallel first requests all miss', async () => {
    const simulator = simulate()
    const both = await Promise.all([postMessage(simulator, prompt), postMessage(simulator, prompt)])
    expect(both.map((told) => readUsageFigures(told).read)).toEqual([0, 0])
    expect(readUsageFigures(await postMessage(simulator, prompt)).read).toBe(604)
  })

  it('begins with the first byte of the answer', async () => {
    const clock = createManualClock()
    const simulator = simulate({ clock, firstByteMs: 1_000 })
    const first = postMessage(simulator, prompt)
    await settled()
    await clock.advance(999)
    const second = postMessage(simulator, prompt)
    await settled()
    await clock.advance(1_000)
    expect([readUsageFigures(await first).read, readUsageFigures(await second).read]).toEqual([0, 0])
    const third = postMessage(simulator, prompt)
    await settled()
    await clock.advance(1_000)
    expect(readUsageFigures(await third).read).toBe(604)
  })

  it('never begins for a request that was rejected', async () => {
    const simulator = simulate()
    simulator.queueFaults({ type: 'status', status: 529 })
    expect((await postMessage(simulator, prompt)).status).toBe(529)
    expect(readUsageFigures(await postMessage(simulator, prompt)).read).toBe(0)
  })
})

describe('the bill', () => {
  const [a, b, c, d] = [tokens(600, 'a'), tokens(600, 'b'), tokens(600, 'c'), tokens(100, 'd')]
  it.each([
    {
      name: 'nothing there: everything up to the last breakpoint is written',
      before: null,
      now: [text(a, HOUR), text(b, MARK), text(d)],
      figures: { read: 0, write1h: 604, write5m: 600, input: 100 },
    },
    {
      name: 'read to A, an hour to B, five minutes to C, the rest is input',
      before: [text(a, MARK)],
      now: [text(a), text(b, HOUR), text(c, MARK), text(d)],
      figures: { read: 604, write1h: 600, write5m: 600, input: 100 },
    },
    {
      name: 'B before A costs nothing',
      before: [text(a), text(b, MARK)],
      now: [text(a, HOUR), text(b, MARK), text(c, MARK), text(d)],
      figures: { read: 1_204, write1h: 0, write5m: 600, input: 100 },
    },
    {
      name: 'a marker on what is there already writes nothing',
      before: [text(a), text(b, MARK)],
      now: [text(a), text(b, MARK), text(c), text(d)],
      figures: { read: 1_204, write1h: 0, write5m: 0, input: 700 },
    },
    {
      name: 'no marker, no cache',
      before: [text(a, MARK)],
      now: [text(a), text(b)],
      figures: { read: 0, write1h: 0, write5m: 0, input: 1_204 },
    },
  ])('$name', async ({ before, now, figures }) => {
    const simulator = simulate()
    if (before !== null) await postMessage(simulator, { messages: [user(...before)] })
    expect(readUsageFigures(await postMessage(simulator, { messages: [user(...now)] }))).toEqual(figures)
  })

  it('adds up to the result of count_tokens', async () => {
    const simulator = simulate()
    const messages = [user(text(a, HOUR), text(b, MARK), text(d))]
    const told = await postMessage(simulator, { messages })
    const { usage } = told.body
    const { read, write5m, write1h, input } = readUsageFigures(told)
    const counted = await postMessage(simulator, { messages }, { path: '/v1/messages/count_tokens' })
    expect(counted.body).toEqual({ input_tokens: read + write5m + write1h + input })
    expect(usage.cache_creation_input_tokens).toBe(write5m + write1h)
  })

  it('has an additional breakpoint on results of server tools', async () => {
    const simulator = simulate()
    const search = [
      { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } },
      { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
    ]
    const messages = [user(text(a)), assistant(...search, 'found'), user('and?')]
    const system = [text(tokens(600), HOUR)]
    const told = readUsageFigures(await postMessage(simulator, { system, messages }))
    expect(told.write1h).toBe(600)
    expect(told.write5m).toBeGreaterThan(600)
  })
})

describe('breakpoints that the provider sets itself', () => {
  it('write entries, and nothing is searched from them', async () => {
    const simulator = simulate()
    const search = [
      { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } },
      { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
    ]
    const asked = (positions: number): object => ({
      messages: [
        user(tokens(600)),
        assistant(...search),
        user(
          ...Array.from({ length: positions }, (_, at) => text(`${at}`, at === positions - 1 ? MARK : {})),
        ),
      ],
    })
    await postMessage(simulator, asked(25))
    expect(readUsageFigures(await postMessage(simulator, asked(24))).read).toBe(0)
    expect(readUsageFigures(await postMessage(simulator, asked(19))).read).toBeGreaterThan(600)
  })
})

describe('isolation', () => {
  const prompt = { messages: [user(text(tokens(600), MARK))] }
  const accounts = {
    one: { organization: 'org_1', workspace: 'w_1' },
    same: { organization: 'org_1', workspace: 'w_1' },
    workspace: { organization: 'org_1', workspace: 'w_2' },
    organization: { organization: 'org_2', workspace: 'w_1' },
  }
  it.each([
    { key: 'same', read: 604 },
    { key: 'workspace', read: 0 },
    { key: 'organization', read: 0 },
  ])('a key of $key reads $read', async ({ key, read }) => {
    const simulator = simulate({ accounts })
    await postMessage(simulator, prompt, { headers: { 'x-api-key': 'one' } })
    expect(
      readUsageFigures(await postMessage(simulator, prompt, { headers: { 'x-api-key': key } })).read,
    ).toBe(read)
  })
})
