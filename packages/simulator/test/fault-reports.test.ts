/** How faults are reported: in the record, on the request line, and in the error for an invalid fault. */
import {
  createManualClock,
  createSimulator,
  formatRequestLine,
  loadScenario,
  type Script,
  type SimulatorOptions,
} from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { parseScenario } from '../src/scripts/parse-scenario.ts'
import { playScenario } from '../src/scripts/scenario.ts'
import { postMessage, user } from './ask.ts'

function scenario(text: string): Script {
  const parsed = parseScenario(text, 'tour.yaml')
  if (!parsed.ok) throw new Error(parsed.problems.join())
  return playScenario(parsed.scenario)
}

async function lines(options: SimulatorOptions, headers: readonly Record<string, string>[]) {
  const clock = createManualClock(Date.UTC(2026, 10, 15))
  const simulator = createSimulator({ ...options, clock })
  for (const each of headers) await postMessage(simulator, { messages: [user('x')] }, { headers: each })
  return simulator.requests.map(formatRequestLine)
}

const HEAD = (number: number): string => `#${number} 00:00:00 claude-opus-5`

describe('the line of a request', () => {
  it('shows an error of a scenario like one of a header, and why a scenario has ended', async () => {
    const script = scenario('turns: [{ fault: status=529 }]')
    expect(await lines({ script }, [{}, {}, { 'x-simulator-fault': '529' }])).toEqual([
      `${HEAD(1)} 529 fault: answered with 529 on demand`,
      `${HEAD(2)} 400 fault: tour.yaml has no answer left: its 1 turns in order are used up. Add turns, "repeat" or "otherwise".`,
      `${HEAD(3)} 529 fault: answered with 529 on demand`,
    ])
  })

  it('shows what is wrong with a header', async () => {
    expect(await lines({}, [{ 'x-simulator-fault': 'drip=fast' }])).toEqual([
      `${HEAD(1)} 400 invalid_request_error: x-simulator-fault: "drip" needs a time, such as 50ms or 2s, not "fast"`,
    ])
  })

  it('shows that a fault could not be applied', async () => {
    expect(await lines({}, [{ 'x-simulator-fault': 'cut=3' }])).toEqual([
      expect.stringMatching(/ {2}end_turn {2}\$[\d.]+ {2}fault: cut \(not applied: no stream\)$/),
    ])
  })

  it('shows that a fault came too late, and how long the answer was', async () => {
    const simulator = createSimulator()
    const headers = { 'x-simulator-fault': 'cut=99' }
    await postMessage(simulator, { messages: [user('x')], stream: true }, { headers })
    const note = /^not applied: the answer ends after \d+ events$/
    expect(simulator.requests).toMatchObject([{ fault: 'cut', faultNote: expect.stringMatching(note) }])
    expect(simulator.requests.map(formatRequestLine)).toEqual([
      expect.stringMatching(/fault: cut \(not applied: the answer ends after \d+ events\)$/),
    ])
  })

  it('has no usage, cost or stop reason for requests without an answer', async () => {
    const simulator = createSimulator({ script: scenario('turns: [{ fault: status=529 }]') })
    await postMessage(simulator, { messages: [user('x')] })
    expect(simulator.requests).toMatchObject([
      { status: 529, fault: 'status', usage: null, cost: null, stopReason: null, cache: null },
    ])
  })
})

it.each(['cut=3', 'reset-after=3', 'hang-after=3'])('%s needs a stream, and says so', async (fault) => {
  const told = await postMessage(
    createSimulator(),
    { messages: [user('x')] },
    { headers: { 'x-simulator-fault': fault } },
  )
  expect([told.status, told.headers.get('x-simulator-fault-applied'), told.body.type]).toEqual([
    200,
    'not applied: no stream',
    'message',
  ])
})

describe('a scheduled fault', () => {
  it.each([
    { body: 'status=529', status: 200, told: { waiting: [{ fault: { type: 'status', status: 529 } }] } },
    { body: ' 529\n', status: 200, told: { waiting: [{ fault: { type: 'status', status: 529 } }] } },
    { body: '"cut"', status: 200, told: { waiting: [{ fault: { type: 'cut' } }] } },
    { body: '{bad', status: 400, told: { error: 'the body looks like JSON and is none' } },
    {
      body: '',
      status: 400,
      told: { error: 'expected a fault, such as "status=429; retry-after=2", found nothing' },
    },
  ])('as $body: $status', async ({ body, status, told }) => {
    const init = { method: 'POST', body, headers: { 'content-type': 'application/json' } }
    const response = await createSimulator().fetch('http://simulator/_simulator/faults', init)
    expect([response.status, await response.json()]).toEqual([status, told])
  })
})

it('the result of loadScenario is not accepted as a script', async () => {
  const loaded = await loadScenario('echo')
  expect(() => createSimulator({ script: loaded as unknown as Script })).toThrow(
    'script: expected a function (request, context) => reply. loadScenario returns { ok, script }: pass its script.',
  )
})
