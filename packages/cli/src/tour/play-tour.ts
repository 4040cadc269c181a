/** The tour: the sample session goes on past its window, and everything that is done about it is shown as it happens. */

import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createCoder, createSimulator, manualClock, withSummaries } from '@tidemark/simulator'
import {
  anthropic,
  createDeadlines,
  createTidemark,
  type Session,
  sessionPaths,
  type Tidemark,
  type ToolContext,
  type Tools,
} from 'tidemark'
import { SAMPLE_PATH } from '../sample-session.ts'
import {
  act,
  callsStep,
  count,
  dollars,
  line,
  NO_CALLS,
  scene,
  stepOf,
  type TourStep,
  withCall,
} from './tour-steps.ts'

/** Removes its folder however it ends. */
export async function* playTour(): AsyncGenerator<TourStep, void> {
  const stage = await setStage()
  try {
    const session = await stage.tide.open(SESSION, { tools: stage.tools })
    yield* goesOn(stage, session)
    yield scene('A compaction by hand: planned, prepared, committed, undone')
    yield* byHand(session)
    yield scene('The same without a model: the summary that cannot fail')
    yield* withoutModel(session)
    yield scene('The bill')
    yield billOf(session)
  } finally {
    await stage.tide.close()
    await stage.clear()
  }
}

const PAUSE_MS = 20 * 60_000
const PROMPTS = 3
const PROMPT = 'Look at the rest of it as well.'

async function* goesOn(stage: Stage, session: Session): AsyncGenerator<TourStep, void> {
  yield scene(`The same session goes on, with a simulated model and a window of ${count(WINDOW)} tokens`)
  for (let turn = 1; turn <= PROMPTS; turn += 1) {
    yield line(`prompt ${turn}: “${PROMPT}”`)
    yield* turnOf(session)
    if (turn > 1) continue
    yield line('… twenty minutes pass …')
    await stage.pass(PAUSE_MS)
  }
}

async function* turnOf(session: Session): AsyncGenerator<TourStep, void> {
  const run = session.run(PROMPT)
  let calls = NO_CALLS
  for await (const event of run) {
    calls = withCall(calls, event)
    const step = stepOf(event)
    if (step === null) continue
    yield* callsStep(calls)
    yield step
    calls = NO_CALLS
  }
  yield* callsStep(calls)
  const outcome = await run.outcome
  if (!outcome.ok) yield act(`halted: ${outcome.message}`)
}

async function* byHand(session: Session): AsyncGenerator<TourStep, void> {
  const before = JSON.stringify(session.messages())
  const plan = await session.planCompaction({ instructions: 'Keep every file name.' })
  if (!plan.ok) return yield line(`not now: ${plan.message}`)
  const { summarised } = plan.span
  yield line(
    `plan: ${summarised.length} records of ${count(plan.before.expected)} tokens would be summarised${priceWords(plan.price)}`,
    { price: plan.price },
  )
  const draft = await session.prepare(plan)
  if (!draft.ok) return yield line(`not now: ${draft.message}`)
  yield line(
    `draft: ${count(draft.after.expected)} tokens after it; it begins “${firstWords(draft.summary.text)}”`,
  )
  const steps = listening(session)
  const committed = await session.commit(draft)
  yield* steps()
  if (!committed.ok) return yield line(`not committed: ${committed.message}`)
  const undone = await session.undo()
  const isSame = JSON.stringify(session.messages()) === before
  const words = isSame ? 'byte for byte what it was' : 'NOT what it was'
  yield act(undone.ok ? `undone: the next request is ${words}` : `not undone: ${undone.message}`, { isSame })
}

type Price = { readonly cost: number; readonly breakEvenCalls: number | null } | null

function priceWords(price: Price): string {
  if (price === null) return ''
  const paid =
    price.breakEvenCalls === null ? 'never paid back' : `paid back in ${count(price.breakEvenCalls)} calls`
  return `, for about ${dollars(price.cost)}, ${paid}`
}

function firstWords(text: string): string {
  return text.replace(/\s+/g, ' ').slice(0, 60)
}

async function* withoutModel(session: Session): AsyncGenerator<TourStep, void> {
  const steps = listening(session)
  const done = await session.compact({ summarizer: 'local' })
  yield* steps()
  if (!done.ok) yield line(`not now: ${done.message}`)
  const { tokens, percentLeft } = session.contextRemaining()
  yield line(
    `${count(tokens)} tokens in use, ${percentLeft ?? '?'}% left before something must be done again`,
  )
}

/** What is told until it is asked for. */
function listening(session: Session): () => readonly TourStep[] {
  const steps: TourStep[] = []
  const off = session.on('*', (event) => {
    const step = stepOf(event)
    if (step !== null && event.type !== 'undone') steps.push(step)
  })
  return () => {
    off()
    return steps
  }
}

function billOf(session: Session): TourStep {
  const money = session.money()
  const { spent, savedByCache, lostToBreaks, spentOnCompaction, spentOnClearing } = money
  return line(
    `spent ${dollars(spent.total)}, of it ${dollars(lostToBreaks.total)} lost to breaks, ${dollars(spentOnClearing.total)} on clearings, ${dollars(spentOnCompaction.total)} on compaction; saved by the cache ${dollars(savedByCache.total)}`,
    { money },
  )
}

// Where the tour is played: the sample session in a folder of its own, a simulated model with a small window, and
// time that passes as it is told to. No key, no server, no network.

export const WINDOW = 40_000
export const SESSION = 'login-bug'

export interface Stage {
  readonly tools: Tools
  readonly tide: Tidemark
  /** Time goes by. */
  pass(ms: number): Promise<void>
  clear(): Promise<void>
}

export async function setStage(): Promise<Stage> {
  const home = await mkdtemp(join(tmpdir(), 'tidemark-tour-'))
  const { log } = sessionPaths(home, SESSION)
  await mkdir(dirname(log), { recursive: true })
  await copyFile(SAMPLE_PATH, log)
  const clock = manualClock(Date.now())
  const coder = createCoder({ turns: 30, resultTokens: 1_200, thinkingTokens: 0 })
  const { fetch } = createSimulator({ script: withSummaries(coder.script), clock, window: WINDOW })
  const model = anthropic('claude-sonnet-4-5', { apiKey: 'none-needed', fetch, window: WINDOW })
  return {
    tools: toolsOf(coder),
    tide: createTidemark({
      model,
      home,
      env: {},
      clock,
      deadlines: createDeadlines(clock),
      system: 'You are a careful engineer. You look before you change anything.',
      history: true,
    }),
    pass: (ms) => clock.advance(ms),
    clear: () => rm(home, { recursive: true, force: true }),
  }
}

function toolsOf(coder: ReturnType<typeof createCoder>): Tools {
  return Object.fromEntries(
    coder.tools.map(({ name, description, input_schema }) => [
      String(name),
      {
        description: String(description),
        inputSchema: Object(input_schema),
        run: (input: never, { id, name: tool }: ToolContext) =>
          String(coder.toolResult({ type: 'tool_use', id, name: tool, input }).content),
      },
    ]),
  )
}
