/**
 * The tour: the same job without and with Tidemark, on the simulator and on real files in a temporary folder. Needs no
 * API key, server or network.
 */

import {
  formatCount,
  formatTokenLimit,
  formatTokens,
  formatWholePercent,
} from '@tidemark/terminal/render/format-numbers'
import { lookUpModel, modelCatalogue, pricesAtDate } from 'tidemark/catalogue'
import { type PlainRun, runPlainLoop } from './plain-loop.ts'
import { openTidemarkRun, type TidemarkRun, type TourSession } from './tidemark-run.ts'
import type { RunBill } from './tour-bill.ts'
import { checkSurvivors } from './tour-checks.ts'
import { createEventDescriber, type EventDescriber } from './tour-events.ts'
import { FIRST_PROMPT, TOUR_SETTINGS, type TourJobSettings } from './tour-job.ts'
import {
  createKeepableTourFolder,
  createTourFolder,
  runProjectTests,
  type TestRunResult,
  type TourFolder,
  type TourProject,
} from './tour-project.ts'
import {
  type BillRow,
  createTourEventStep,
  createTourHeading,
  createTourLine,
  formatCentsOrDollars,
  type TourStep,
} from './tour-steps.ts'

const TOUR_WINDOW = TOUR_SETTINGS.window
const LARGE_WINDOW = 200_000

/** Lets the user try the session of the tour after the last step. */
export interface TourTrial {
  /** Tidemark's data folder. The session is in a subfolder, which is removed unless it is kept. */
  readonly dataHome: string
  /** `keep` keeps the folder and returns its path; null if the folder could not be created in the data folder. */
  run(session: TourSession, keep: (() => Promise<string>) | null): Promise<void>
}

/**
 * Plays the tour, and removes its folders at the end, even after a failure or interruption. `trial` gets the session after the last step.
 */
export async function* playTour(signal?: AbortSignal, trial?: TourTrial): AsyncGenerator<TourStep, void> {
  const folder = await createTourFolder()
  const settings = { ...TOUR_SETTINGS, signal }
  const keepable =
    trial === undefined ? null : await createKeepableTourFolder(trial.dataHome).catch(() => null)
  let run: TidemarkRun | null = null
  try {
    yield* introduce(await folder.copyProject('start'))
    const stopped = yield* playWithoutTidemark(folder, settings)
    const project = await (keepable ?? folder).copyProject('with')
    run = await openTidemarkRun(project, settings)
    const teller = createEventDescriber()
    const isFinished = yield* playWithTidemark({ run, teller }, project)
    yield* showSurvivors({ run, teller, stopped }, project)
    const large = await folder.copyProject('large')
    const plain = await runPlainLoop(large, { ...settings, window: LARGE_WINDOW })
    yield* showMoney({ run, isFinished, stopped, plain })
    yield* showNextSteps()
    if (keepable !== null) folder.remove()
    await trial?.run(await run.handOver(), keepable?.keep ?? null)
  } finally {
    await run?.close()
    folder.remove()
    keepable?.remove()
  }
}

async function* introduce(project: TourProject): AsyncGenerator<TourStep, void> {
  yield createTourHeading('Tidemark: agents that do not run out of context')
  yield createTourLine(
    'A model reads at most one context window of text per request. An agent that works for hours fills it; then the provider refuses, and the work stops. Tidemark decides what stays in view, so the work goes on.',
  )
  yield createTourLine('You will see the same job twice: without Tidemark, and with it.')
  yield createTourLine(
    'The model is simulated: its replies are a script, and you pay nothing. Prices are what the same requests would cost at list prices. Files, edits and test runs are real, in copies of a small project. There is no network.',
  )
  yield createTourLine(
    `Real windows hold 200k to 1M tokens (a token is about 4 letters). This one holds ${formatTokenLimit(TOUR_WINDOW)}, so that it fills up in a minute.`,
  )
  const tests = await runProjectTests(project)
  yield createTourLine(
    `The project: invoices of a small shop. Its tests: ${describeTests(tests)}. One that fails: "${tests.firstFailure}".`,
    { tests },
  )
  yield createTourLine(`The user: "${FIRST_PROMPT}"`)
}

async function* playWithoutTidemark(
  folder: TourFolder,
  settings: TourJobSettings,
): AsyncGenerator<TourStep, PlainRun> {
  const project = await folder.copyProject('without')
  yield createTourHeading('1. Without Tidemark: a plain loop that sends the whole conversation every time')
  const run = await runPlainLoop(project, settings)
  const tests = await runProjectTests(project)
  const { requests, dollars } = run.bill
  yield chartStep('Size of each prompt', run.bill.promptSizes, run.refusal !== null)
  yield createTourLine(
    `${formatCount(requests, 'request')} went well, with ${formatCount(run.toolCalls, 'tool call')}: it read files, edited one, and ran the tests.`,
  )
  if (run.refusal !== null)
    yield createTourEventStep(
      `Request ${requests + 1} was refused: "${run.refusal}". The agent is stuck, since every further request would be longer still.`,
      { refusal: run.refusal, request: requests + 1 },
    )
  yield createTourLine(
    `Price so far: ${formatCentsOrDollars(dollars)}. Tests now: ${describeTests(tests)}. ${tests.failed > 0 ? 'The job is not done.' : ''}`.trim(),
    { tests, dollars },
  )
  return run
}

async function* playWithTidemark(
  { run, teller }: Pick<TourRuns, 'run' | 'teller'>,
  project: TourProject,
): AsyncGenerator<TourStep, boolean> {
  yield createTourHeading('2. With Tidemark: same script, same tools, same small window')
  let isFinished = true
  for await (const news of run.play()) {
    if (news.type === 'failed') {
      isFinished = false
      yield createTourEventStep(`The run stopped: ${news.message}`)
    } else if (news.type === 'event') yield* teller.describe(news.event, run.bill().requests)
    else if (news.minutesBefore > 0) {
      yield createTourHeading(`3. Lunch: ${news.minutesBefore} minutes pass, then the user is back`)
      yield createTourLine(`The user: "${news.text}"`)
    }
  }
  const tests = await runProjectTests(project)
  const requests = formatCount(run.bill().requests, 'request')
  yield createTourLine(
    `The agent ${isFinished ? 'is done' : 'stopped'} after ${requests}, those for summaries included. Tests now: ${describeTests(tests)}.`,
    { tests },
  )
  return isFinished
}

async function* showSurvivors(
  { run, teller, stopped }: Pick<TourRuns, 'run' | 'teller' | 'stopped'>,
  project: TourProject,
): AsyncGenerator<TourStep, void> {
  yield createTourHeading('4. What survived, checked just now')
  yield* await checkSurvivors(run, project, TOUR_WINDOW)
  yield createTourLine(teller.summarize())
  yield chartStep('Size of each prompt, without Tidemark', stopped.bill.promptSizes, stopped.refusal !== null)
  yield chartStep('The same job, with Tidemark', run.bill().promptSizes, false)
}

interface TourRuns {
  readonly run: TidemarkRun
  /** False if the run with Tidemark ended before the job did. */
  readonly isFinished: boolean
  readonly teller: EventDescriber
  readonly stopped: PlainRun
  /** The plain loop on a window that is large enough for the job. */
  readonly plain: PlainRun
}

async function* showMoney({
  run,
  isFinished,
  stopped,
  plain,
}: Omit<TourRuns, 'teller'>): AsyncGenerator<TourStep, void> {
  const bill = run.bill()
  yield createTourHeading("5. The money, from the simulator's bill at list prices")
  const uncached = { ...plain.bill, hitRate: 0, dollars: plain.bill.dollarsUncached }
  const isPlainDone = plain.refusal === null
  const rows: readonly BillRow[] = [
    { ...stopped.bill, name: 'without Tidemark', window: TOUR_WINDOW, isFinished: stopped.refusal === null },
    { ...bill, name: 'with Tidemark', window: TOUR_WINDOW, isFinished },
    { ...plain.bill, name: 'without Tidemark', window: LARGE_WINDOW, isFinished: isPlainDone },
    { ...uncached, name: 'the same, no cache', window: LARGE_WINDOW, isFinished: isPlainDone },
  ]
  yield { kind: 'bills', text: 'The same job', rows }
  yield createTourLine(
    `Tokens: all prompts together. Cached: the provider remembers the beginning of a prompt for some minutes, and what it reads from there costs ${describeCacheDiscount()}. Tidemark builds its requests so that this works, and clears when the shorter prompts of the calls it expects save more than that costs, or when the window would be full otherwise.`,
  )
  const verdict = isFinished ? compareBills(bill, plain.bill) : 'The run with Tidemark did not finish.'
  yield createTourLine(verdict, {
    withTidemark: bill.dollars,
    plainCached: plain.bill.dollars,
    plainUncached: uncached.dollars,
  })
  const { savedByCache, lostToBreaks, spentOnCompaction, spentOnClearing } = run.session.money()
  const toMoney = (amount: { readonly total: number | null }): string =>
    formatCentsOrDollars(amount.total ?? 0)
  yield createTourLine(
    `Tidemark's own account: the cache saved ${toMoney(savedByCache)}; the cache break cost ${toMoney(lostToBreaks)}, clearing ${toMoney(spentOnClearing)}, summaries ${toMoney(spentOnCompaction)}.`,
  )
}

/** Describes the price of a cached token as a share of the usual price, and whether that price is uncertain. */
function describeCacheDiscount(): string {
  const found = lookUpModel(modelCatalogue, TOUR_SETTINGS.model)
  const prices = found.found ? pricesAtDate(found.model, new Date().toISOString()) : null
  if (!found.found || prices?.cacheRead == null || !prices.input)
    throw new Error('The model of the tour has no price.')
  const share = `${formatWholePercent(prices.cacheRead / prices.input)} of the usual price`
  const doubt = found.model.doubts.find(({ field }) => field === 'prices.cacheRead')
  return doubt === undefined ? share : `${share}, which is in doubt (dollars a million: ${doubt.note})`
}

/** Says which of the two finished runs was cheaper, and why. */
function compareBills(ours: RunBill, plain: RunBill): string {
  const costs = [ours.dollars, plain.dollars].map(formatCentsOrDollars)
  const [last, lastPlain] = [ours, plain].map(({ promptSizes }) => formatTokens(promptSizes.at(-1) ?? 0))
  return ours.dollars < plain.dollars
    ? `Tidemark did the job for ${costs[0]} in the small window. Without it, on a window of ${formatTokenLimit(LARGE_WINDOW)}, it cost ${costs[1]}: each request carries all that came before, the last one ${lastPlain} tokens instead of ${last}.`
    : `Here Tidemark was not cheaper: ${costs[0]} against ${costs[1]}. Clearing and summaries cost something, and this job is short; what they buy is that it gets done in the small window, where the plain loop cannot go on.`
}

function* showNextSteps(): Generator<TourStep, void> {
  yield createTourHeading('In one sentence')
  yield createTourLine(
    "Tidemark keeps a long-running agent inside its model's context window, cheaply, and without losing what the user said, what is left to do, or what was changed.",
  )
  yield createTourLine('What next:')
  yield* [
    ['npx tidemark inspect', 'where context and money of your own sessions of Claude Code or Codex went'],
    ['npx tidemark ui', 'the same on a page, with what left the context and other policies'],
    ['docs/library.md', 'how to put Tidemark into your agent, in a few lines'],
    ['npx tidemark chat -p TEXT', 'the agent you just saw, on a real model (docs/chat.md)'],
  ].map(([label = '', text = '']): TourStep => ({ kind: 'line', label, text }))
}

function chartStep(text: string, sizes: readonly number[], isStopped: boolean): TourStep {
  const title = `${text} (full height: the window of ${formatTokenLimit(TOUR_WINDOW)} tokens)`
  return { kind: 'chart', text: title, sizes, window: TOUR_WINDOW, isStopped }
}

function describeTests({ passed, failed }: TestRunResult): string {
  return `${passed} pass, ${failed} fail`
}
