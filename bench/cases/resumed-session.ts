/** What a turn costs must not grow with the conversation, however it was opened: all through the face of the library. */
import type { Session } from 'tidemark'
import type { BenchCase, Contest } from '../harness/bench-case.ts'
import { requestNext, responseAt, resultAt, resumeLongSession } from '../harness/long-session.ts'

const ROUNDS = 15
const LONG = 20_000
const SHORT = 1_000

/** One side of a contest: what is timed, and what is done before it. */
interface Side {
  timed(): unknown
  before(): unknown
}

/** Each session has taken a few turns beforehand: the first one after reopening looks at all of it. */
const TURNS_BEFORE = 3

function contestOf(subject: Side, baseline: Side): Contest {
  return {
    subject: () => subject.timed(),
    baseline: () => baseline.timed(),
    before: { subject: () => subject.before(), baseline: () => baseline.before() },
    calls: { subject: 1, baseline: 1 },
  }
}

/** The turns of a session from here on, in order. */
function createTurns(session: Session, messages: number) {
  let turn = messages
  const appendTurn = async (): Promise<void> => {
    await session.append(responseAt(turn))
    await session.append(resultAt(turn))
    turn += 1
  }
  return { appendTurn, request: () => requestNext(session) }
}

async function appending(size: 'small' | 'large', messages: number): Promise<Side> {
  const { appendTurn, request } = createTurns(await resumeLongSession(size, messages), messages)
  for (let turn = 0; turn < TURNS_BEFORE; turn += 1) {
    await request()
    await appendTurn()
  }
  return { before: request, timed: appendTurn }
}

async function encoding(messages: number): Promise<Side> {
  const { appendTurn, request } = createTurns(await resumeLongSession('small', messages), messages)
  let ready = await request()
  const side = {
    async before() {
      await appendTurn()
      ready = await request()
    },
    timed: () => ready.text,
  }
  for (let turn = 0; turn < TURNS_BEFORE; turn += 1) {
    await side.before()
    side.timed()
  }
  return side
}

async function running(messages: number): Promise<Side> {
  const session = await resumeLongSession('small', messages)
  const run = async (): Promise<void> => {
    const outcome = await session.run('And now?', { tools: {} }).outcome
    if (!outcome.ok) throw new Error(outcome.reason)
  }
  for (let turn = 0; turn < TURNS_BEFORE; turn += 1) await run()
  return { before: () => {}, timed: run }
}

/** Opens a session, and builds its first request. Reading a log from the disk is in the case `load-session`. */
async function reopen(messages: number): Promise<void> {
  await requestNext(await resumeLongSession('small', messages))
}

async function reopenOften(messages: number, times: number): Promise<void> {
  for (let time = 0; time < times; time += 1) await reopen(messages)
}

const sizes = ['small', 'large'] as const

export const benchCases: readonly BenchCase[] = [
  ...sizes.map(
    (size): BenchCase => ({
      name: `append-after-reopening-${size}-prefix`,
      compares: `append of a response and a result at ${LONG} messages with the same at ${SHORT}`,
      bound: { atMost: 1.5 },
      rounds: ROUNDS,
      prepare: async () => contestOf(await appending(size, LONG), await appending(size, SHORT)),
    }),
  ),
  {
    name: 'run-after-reopening',
    compares: `a turn of \`run\` at ${LONG} messages with the same at ${SHORT}, apart from the network`,
    bound: { atMost: 1.5 },
    rounds: ROUNDS,
    prepare: async () => contestOf(await running(LONG), await running(SHORT)),
  },
  {
    name: 'request-text',
    compares: '`request.text` at 5,000 messages with the same at 500',
    bound: { atMost: 1.5 },
    rounds: ROUNDS,
    prepare: async () => contestOf(await encoding(5_000), await encoding(500)),
  },
  {
    name: 'reopening',
    compares: `open and first \`next\` at ${LONG} messages with the same ${LONG / SHORT} times at ${SHORT}`,
    bound: { atMost: 1.5 },
    rounds: 5,
    async prepare() {
      await reopen(LONG)
      return {
        subject: () => reopen(LONG),
        baseline: () => reopenOften(SHORT, LONG / SHORT),
        calls: { subject: 1, baseline: 1 },
      }
    },
  },
]
