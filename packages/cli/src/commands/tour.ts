/**
 * `tidemark tour`: the sample session inspected, then continued past its context window on a simulated model, with every
 * clearing, cache break and compaction printed as it happens. No API key, no server, no network.
 */
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
import { cost, count, dollars, whole } from '../render/figures.ts'
import { screenFor } from '../render/screen.ts'
import { firstWords, wrap } from '../render/text.ts'
import { SAMPLE_PATH } from '../sample-session.ts'
import type { Terminal } from '../terminal.ts'
import { EXIT } from './exit-codes.ts'
import { inspect } from './inspect.ts'
import {
  act,
  callsStep,
  line,
  NO_CALLS,
  scene,
  stepOf,
  stepText,
  type TourStep,
  withCall,
} from './tour-steps.ts'

const INTRODUCTION =
  'A tour of Tidemark on a sample session and a simulated model: no API key, no network, no cost.'
const NEXT =
  'This ran on a simulator: nothing was charged, and nothing left this machine. Next: tidemark inspect shows your own sessions, tidemark compact FILE compacts one, docs/library.md explains how to use Tidemark in your agent.'

export async function tour(options: { readonly json?: boolean }, terminal: Terminal): Promise<number> {
  if (options.json === true) {
    const steps: TourStep[] = []
    for await (const step of playTour()) steps.push(step)
    terminal.write(`${JSON.stringify({ steps }, null, 2)}\n`)
    return EXIT.done
  }
  const screen = screenFor(terminal)
  terminal.write(`${wrap(INTRODUCTION, screen.columns).join('\n')}\n`)
  terminal.write(`${stepText(scene('1. A recorded session, as tidemark inspect shows it'), screen)}\n`)
  const code = await inspect([SAMPLE_PATH], {}, terminal)
  for await (const step of playTour()) {
    terminal.write(stepText(step, screen))
    if (terminal.interrupted?.aborted === true) break
  }
  terminal.write(`\n${wrap(NEXT, screen.columns).join('\n')}\n`)
  return code
}

/** Removes its temporary folder, however it ends. */
async function* playTour(): AsyncGenerator<TourStep, void> {
  const stage = await setStage()
  try {
    const session = await stage.tide.open(SESSION, { tools: stage.tools })
    yield scene(
      `2. The session goes on, with a simulated model and a context window of ${whole(WINDOW)} tokens`,
    )
    yield* runPrompts(stage, session)
    yield scene('3. A compaction step by step: plan, prepare, commit, undo')
    yield* compactStepwise(session)
    yield scene('4. A compaction without a model call')
    yield* compactLocally(session)
    yield scene('5. The bill')
    yield billStep(session)
  } finally {
    await stage.tide.close()
    await stage.clear()
  }
}

const PAUSE_MS = 20 * 60_000
const PROMPTS = 3
const PROMPT = 'Look at the rest of it as well.'

async function* runPrompts(stage: Stage, session: Session): AsyncGenerator<TourStep, void> {
  for (let turn = 1; turn <= PROMPTS; turn += 1) {
    yield line(`Prompt ${turn}: “${PROMPT}”`)
    yield* runTurn(session)
    if (turn > 1) continue
    yield line('… 20 minutes pass …')
    await stage.pass(PAUSE_MS)
  }
}

async function* runTurn(session: Session): AsyncGenerator<TourStep, void> {
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
  if (!outcome.ok) yield act(`Stopped: ${outcome.message}`)
}

async function* compactStepwise(session: Session): AsyncGenerator<TourStep, void> {
  const before = JSON.stringify(session.messages())
  const plan = await session.planCompaction({ instructions: 'Keep every file name.' })
  if (!plan.ok) return yield line(`Not compacted: ${plan.message}`)
  const records = count(plan.span.summarised.length, 'record')
  const { price } = plan
  yield line(
    `Plan: summarize ${records}; the context has ${wholeTokens(plan.before.expected)}.${priceText(price)}`,
    { price },
  )
  const draft = await session.prepare(plan)
  if (!draft.ok) return yield line(`Not compacted: ${draft.message}`)
  yield line(
    `Draft: ${wholeTokens(draft.after.expected)} afterwards. It begins: “${firstWords(draft.summary.text, 60)}”`,
  )
  const collected = collectSteps(session)
  const committed = await session.commit(draft)
  yield* collected()
  if (!committed.ok) return yield line(`Not committed: ${committed.message}`)
  const undone = await session.undo()
  const isSame = JSON.stringify(session.messages()) === before
  const comparison = isSame ? 'byte for byte the same as before' : 'NOT the same as before'
  yield act(undone.ok ? `Undone: the next request is ${comparison}.` : `Not undone: ${undone.message}`, {
    isSame,
  })
}

function priceText(price: { readonly cost: number; readonly breakEvenCalls: number | null } | null): string {
  if (price === null) return ''
  const { breakEvenCalls } = price
  const pays =
    breakEvenCalls === null
      ? 'Does not pay for itself.'
      : `Pays for itself in ${count(Math.round(breakEvenCalls), 'call')}.`
  return ` Cost: about ${dollars(price.cost)}. ${pays}`
}

async function* compactLocally(session: Session): AsyncGenerator<TourStep, void> {
  const collected = collectSteps(session)
  const done = await session.compact({ summarizer: 'local' })
  yield* collected()
  if (!done.ok) yield line(`Not compacted: ${done.message}`)
  const { tokens, percentLeft } = session.contextRemaining()
  yield line(
    `${wholeTokens(tokens)} in use; ${percentLeft ?? '?'}% left before the next clearing or compaction.`,
  )
}

/** Collects the steps of the session's events until the function returned is called. */
function collectSteps(session: Session): () => readonly TourStep[] {
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

function billStep(session: Session): TourStep {
  const money = session.money()
  const { spent, savedByCache, lostToBreaks, spentOnCompaction, spentOnClearing } = money
  const [lost, clearing, compaction] = [lostToBreaks, spentOnClearing, spentOnCompaction].map(({ total }) =>
    cost(total, 0),
  )
  return line(
    `Total: ${cost(spent.total, 0)}. Of that, ${lost} was lost to cache breaks, ${clearing} was spent on clearing and ${compaction} on compaction. The prompt cache saved ${cost(savedByCache.total, 0)}.`,
    { money },
  )
}

function wholeTokens(tokens: number): string {
  return `${whole(Math.round(tokens))} tokens`
}

// The setting: a copy of the sample session in a temporary folder, a simulated model with a small context window, and a
// clock that moves only when `advanceClock` is called.

const WINDOW = 40_000
const SESSION = 'login-bug'

interface Stage {
  readonly tools: Tools
  readonly tide: Tidemark
  /** Advances the clock. */
  pass(ms: number): Promise<void>
  clear(): Promise<void>
}

async function setStage(): Promise<Stage> {
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
