/**
 * `tidemark tour`: inspects the sample session, then continues it beyond its context window with a simulated model.
 * Prints every clearing, cache break and compaction. Needs no API key, server or network.
 */
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createCoder, createManualClock, createSimulator, withSummaries } from '@tidemark/simulator'
import {
  anthropic,
  createTidemark,
  type Session,
  type Tidemark,
  type ToolContext,
  type Tools,
} from 'tidemark'
import { createDeadlines, sessionPaths } from 'tidemark/internal'
import { formatCost, formatCount, formatDollars, formatInteger } from '../render/format-numbers.ts'
import { createScreen } from '../render/screen.ts'
import { toOneLinePreview, wrapText } from '../render/text.ts'
import { SAMPLE_PATH } from '../sample-session.ts'
import type { Terminal } from '../terminal.ts'
import { EXIT_CODES } from './exit-codes.ts'
import { runInspectCommand } from './inspect.ts'
import {
  addModelCall,
  headingStep,
  NO_MODEL_CALLS,
  renderTourStep,
  rewriteStep,
  type TourStep,
  textStep,
  toCallsStep,
  toTourStep,
} from './tour-steps.ts'

const INTRODUCTION =
  'A tour of Tidemark on a sample session and a simulated model: no API key, no network, no cost.'
const NEXT_STEPS =
  'This ran on a simulator: nothing was charged, and nothing left this machine. Next: tidemark inspect shows your own sessions, tidemark compact FILE --dry-run shows a compaction of one, docs/library.md explains how to use Tidemark in your agent.'

export async function runTourCommand(
  options: { readonly json?: boolean },
  terminal: Terminal,
): Promise<number> {
  if (options.json === true) {
    const steps: TourStep[] = []
    for await (const step of playTour()) {
      if (terminal.interrupted?.aborted === true) return EXIT_CODES.interrupted
      steps.push(step)
    }
    terminal.write(`${JSON.stringify({ steps }, null, 2)}\n`)
    return EXIT_CODES.done
  }
  const screen = createScreen(terminal)
  terminal.write(`${wrapText(INTRODUCTION, screen.columns).join('\n')}\n`)
  terminal.write(
    `${renderTourStep(headingStep('1. A recorded session, as tidemark inspect shows it'), screen)}\n`,
  )
  const code = await runInspectCommand([SAMPLE_PATH], {}, terminal)
  for await (const step of playTour()) {
    if (terminal.interrupted?.aborted === true) return EXIT_CODES.interrupted
    terminal.write(renderTourStep(step, screen))
  }
  terminal.write(`\n${wrapText(NEXT_STEPS, screen.columns).join('\n')}\n`)
  return code
}

/** Runs the tour and removes its temporary folder, even after a failure. */
async function* playTour(): AsyncGenerator<TourStep, void> {
  const stage = await openTourSession()
  try {
    const session = await stage.tidemark.open(TOUR_SESSION_ID, { tools: stage.tools })
    yield headingStep(
      `2. The session goes on, with a simulated model and a context window of ${formatInteger(TOUR_WINDOW)} tokens`,
    )
    yield* runPrompts(stage, session)
    yield headingStep('3. A compaction step by step: plan, prepare, commit, undo')
    yield* compactStepwise(session)
    yield headingStep('4. A compaction without a model call')
    yield* compactLocally(session)
    yield headingStep('5. The bill')
    yield toBillStep(session)
  } finally {
    await stage.tidemark.close()
    await stage.removeFolder()
  }
}

const PAUSE_MS = 20 * 60_000
const PROMPT_COUNT = 3
const PROMPT = 'Look at the rest of it as well.'

async function* runPrompts(stage: TourSession, session: Session): AsyncGenerator<TourStep, void> {
  for (let turn = 1; turn <= PROMPT_COUNT; turn += 1) {
    yield textStep(`Prompt ${turn}: "${PROMPT}"`)
    yield* runTurn(session)
    if (turn > 1) continue
    yield textStep('… 20 minutes pass …')
    await stage.advanceClock(PAUSE_MS)
  }
}

async function* runTurn(session: Session): AsyncGenerator<TourStep, void> {
  const run = session.run(PROMPT)
  let calls = NO_MODEL_CALLS
  for await (const event of run) {
    calls = addModelCall(calls, event)
    const step = toTourStep(event)
    if (step === null) continue
    yield* toCallsStep(calls)
    yield step
    calls = NO_MODEL_CALLS
  }
  yield* toCallsStep(calls)
  const outcome = await run.outcome
  if (!outcome.ok) yield rewriteStep(`Stopped: ${outcome.message}`)
}

async function* compactStepwise(session: Session): AsyncGenerator<TourStep, void> {
  const before = JSON.stringify(session.messages())
  const plan = await session.planCompaction({ instructions: 'Keep every file name.' })
  if (!plan.ok) return yield textStep(`Not compacted: ${plan.message}`)
  const records = formatCount(plan.span.summarised.length, 'record')
  const { price } = plan
  yield textStep(
    `Plan: summarize ${records}; the context has ${formatWholeTokens(plan.before.expected)}.${formatPrice(price)}`,
    { price },
  )
  const draft = await session.prepare(plan)
  if (!draft.ok) return yield textStep(`Not compacted: ${draft.message}`)
  yield textStep(
    `Draft: ${formatWholeTokens(draft.after.expected)} afterwards. It begins: "${toOneLinePreview(draft.summary.text, 60)}"`,
  )
  const collected = collectSteps(session)
  const committed = await session.commit(draft)
  yield* collected()
  if (!committed.ok) return yield textStep(`Not committed: ${committed.message}`)
  const undone = await session.undo()
  const isSame = JSON.stringify(session.messages()) === before
  const comparison = isSame ? 'byte for byte the same as before' : 'NOT the same as before'
  yield rewriteStep(
    undone.ok ? `Undone: the next request is ${comparison}.` : `Not undone: ${undone.message}`,
    {
      isSame,
    },
  )
}

function formatPrice(
  price: { readonly cost: number; readonly breakEvenCalls: number | null } | null,
): string {
  if (price === null) return ''
  const { breakEvenCalls } = price
  const pays =
    breakEvenCalls === null
      ? 'Does not pay for itself.'
      : `Pays for itself in ${formatCount(Math.round(breakEvenCalls), 'call')}.`
  return ` Cost: about ${formatDollars(price.cost)}. ${pays}`
}

async function* compactLocally(session: Session): AsyncGenerator<TourStep, void> {
  const collected = collectSteps(session)
  const done = await session.compact({ summarizer: 'local' })
  yield* collected()
  if (!done.ok) yield textStep(`Not compacted: ${done.message}`)
  const { tokens, percentLeft } = session.contextRemaining()
  yield textStep(
    `${formatWholeTokens(tokens)} in use; ${percentLeft ?? '?'}% left before the next clearing or compaction.`,
  )
}

/**
 * Converts session events to tour steps and collects them. The returned function stops collecting and returns the
 * steps.
 */
function collectSteps(session: Session): () => readonly TourStep[] {
  const steps: TourStep[] = []
  const off = session.on('*', (event) => {
    const step = toTourStep(event)
    if (step !== null && event.type !== 'undone') steps.push(step)
  })
  return () => {
    off()
    return steps
  }
}

function toBillStep(session: Session): TourStep {
  const money = session.money()
  const { spent, savedByCache, lostToBreaks, spentOnCompaction, spentOnClearing } = money
  const [lost, clearing, compaction] = [lostToBreaks, spentOnClearing, spentOnCompaction].map(({ total }) =>
    formatCost(total, 0),
  )
  return textStep(
    `Total: ${formatCost(spent.total, 0)}. Of that, ${lost} was lost to cache breaks, ${clearing} was spent on clearing and ${compaction} on compaction. The prompt cache saved ${formatCost(savedByCache.total, 0)}.`,
    { money },
  )
}

function formatWholeTokens(tokens: number): string {
  return `${formatInteger(Math.round(tokens))} tokens`
}

// Prepares the tour: a copy of the sample session in a temporary folder, a simulated model with a small context window,
// and a clock that moves only when `advanceClock` is called.

const TOUR_WINDOW = 40_000
const TOUR_SESSION_ID = 'login-bug'

interface TourSession {
  readonly tools: Tools
  readonly tidemark: Tidemark
  /** Moves the tour's clock forward. */
  advanceClock(ms: number): Promise<void>
  removeFolder(): Promise<void>
}

async function openTourSession(): Promise<TourSession> {
  const home = await mkdtemp(join(tmpdir(), 'tidemark-tour-'))
  const { log } = sessionPaths(home, TOUR_SESSION_ID)
  await mkdir(dirname(log), { recursive: true })
  await copyFile(SAMPLE_PATH, log)
  const clock = createManualClock(Date.now())
  const coder = createCoder({ turns: 30, resultTokens: 1_200, thinkingTokens: 0 })
  const { fetch } = createSimulator({ script: withSummaries(coder.script), clock, window: TOUR_WINDOW })
  const model = anthropic('claude-sonnet-4-5', { apiKey: 'none-needed', fetch, window: TOUR_WINDOW })
  return {
    tools: toTools(coder),
    tidemark: createTidemark({
      model,
      home,
      env: {},
      clock,
      deadlines: createDeadlines(clock),
      system: 'You are a careful engineer. You look before you change anything.',
      history: true,
    }),
    advanceClock: (ms) => clock.advance(ms),
    removeFolder: () => rm(home, { recursive: true, force: true }),
  }
}

function toTools(coder: ReturnType<typeof createCoder>): Tools {
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
