/**
 * `tidemark tour`: prints the tour, one screen at a time in a terminal, or as one JSON value. In a terminal, the user can then continue its
 * session in chat.
 */

import { formatJson } from '@tidemark/terminal/render/json-output'
import { printError, printMisuse } from '@tidemark/terminal/render/print-errors'
import { createScreen } from '@tidemark/terminal/render/screen'
import { toSafeLine } from '@tidemark/terminal/render/text'
import type { Terminal } from '@tidemark/terminal/terminal'
import { EXIT_CODES } from '@tidemark/terminal/terminal'
import { tidemarkHome } from 'tidemark/logs'
import { NO_RULES } from '../agent/permissions.ts'
import { reopenTourSession, type TourSession } from '../tour/tidemark-run.ts'
import { playTour, type TourTrial } from '../tour/tour.ts'
import { findKeptTourProject } from '../tour/tour-project.ts'
import { renderTourStep, type TourStep } from '../tour/tour-steps.ts'

export interface TourCommandOptions {
  readonly json?: boolean
  /** Open chat instead, if there is a terminal, and a key in the environment. */
  readonly orChat?: boolean
  /** Open the session of the last tour again. */
  readonly resume?: boolean
}

/** Runs the tour. Returns the exit code: `failed` if a statement about what survived turned out to be false. */
export async function runTourCommand(options: TourCommandOptions, terminal: Terminal): Promise<number> {
  const isJson = options.json === true
  if (options.resume === true) return await resumeTour(isJson, terminal)
  if (options.orChat === true && !isJson && canShowScreen(terminal) && hasKey(terminal)) {
    const { runChatCommand } = await import('./chat.ts')
    return await runChatCommand({ outputFormat: 'text', inputFormat: 'text' }, terminal, process.stdin)
  }
  const steps: TourStep[] = []
  const printer = createStepPrinter(terminal)
  const show = isJson ? async () => 'next' as const : printer.show
  let lastAnswer: UserAnswer = 'next'
  const canTry = !isJson && canShowScreen(terminal)
  const trial: TourTrial = {
    dataHome: tidemarkHome(terminal.env),
    async run(session, keep) {
      const earlier = await findKeptTourProject(trial.dataHome)
      const question = earlier === null ? TRY_QUESTION : TRY_QUESTION_AGAIN
      if (!printer.isSkipped()) lastAnswer = await waitForUser(terminal, question)
      if (lastAnswer !== 'next' && lastAnswer !== 'skip') return
      await openOnScreen({ session, root: (await keep?.()) ?? null, greeting: GREETING }, terminal)
    },
  }
  if (canTry) clearScreen(terminal)
  for await (const step of playTour(terminal.interrupted, canTry ? trial : undefined)) {
    if (terminal.interrupted?.aborted === true) return EXIT_CODES.interrupted
    const answer = await show(step)
    if (answer !== 'next') return answer === 'stop' ? EXIT_CODES.done : EXIT_CODES.interrupted
    steps.push(step)
  }
  if ((lastAnswer as UserAnswer) === 'interrupted') return EXIT_CODES.interrupted
  if (isJson) terminal.write(`${formatJson({ steps }, 2)}\n`)
  return steps.every((step) => step.kind !== 'check' || step.isTrue) ? EXIT_CODES.done : EXIT_CODES.failed
}

function canShowScreen({ isTty, isInputTty, askKey, env }: Terminal): boolean {
  return isTty && isInputTty === true && askKey !== undefined && env.TERM !== 'dumb'
}

function hasKey({ env }: Terminal): boolean {
  return [env.ANTHROPIC_API_KEY, env.ANTHROPIC_AUTH_TOKEN].some((key) => key !== undefined && key !== '')
}

/** Begins an empty screen. Earlier output can still be reached by scrolling. */
function clearScreen({ rows = 0, write }: Terminal): void {
  if (rows > 0) write(`${'\n'.repeat(rows)}\u001b[H\u001b[J`)
}

const GREETING =
  'This is the session of the tour, on the screen of tidemark chat. Type anything, or a command: /help lists them.'
const GREETING_AGAIN =
  'This is the session of the tour again. The simulated provider has started anew, so the first request fills its prompt cache.'
const RESUME_COMMAND = 'npx tidemark tour --resume'

/** Opens the session of the last tour again. Returns the exit code. */
async function resumeTour(isJson: boolean, terminal: Terminal): Promise<number> {
  if (isJson || !canShowScreen(terminal))
    return printMisuse(
      '--resume opens the session of the tour on a screen, which needs a terminal.',
      terminal,
    )
  const kept = await findKeptTourProject(tidemarkHome(terminal.env))
  if (kept === null)
    return printError(
      'there is no session of a tour. tidemark tour runs one; at its end its session can be tried.',
      terminal,
    )
  const session = reopenTourSession(kept)
  await openOnScreen({ session, root: kept.root, greeting: GREETING_AGAIN }, terminal)
  return EXIT_CODES.done
}

interface OpenedTour {
  readonly session: TourSession
  /** The folder in which project and session are kept; null if they are removed at the end. */
  readonly root: string | null
  readonly greeting: string
}

/** Opens the session of the tour in chat. As in a real session, nothing is allowed beforehand. */
async function openOnScreen({ session, root, greeting }: OpenedTour, terminal: Terminal): Promise<void> {
  const { id, folder, home, env, toolNames, createModel } = session
  // The screen and its library are loaded only here.
  const { runChat } = await import('../chat/run-chat.ts')
  await runChat({
    terminal,
    folder,
    home,
    sessionId: id,
    settings: { permissions: NO_RULES, env: {}, notices: [] },
    simulation: { greeting, createModel, toolNames, env },
  })
  terminal.write(
    root === null
      ? 'The files of the tour are removed: they could not be kept in the data folder.\n'
      : `To go on with this session: ${RESUME_COMMAND}\nDelete its folder when you no longer need it: ${toSafeLine(root)}\n`,
  )
}

type UserAnswer = 'next' | 'skip' | 'stop' | 'interrupted'

const NEXT_QUESTION = '\n  Enter: next screen   s: skip to the session, to try it   q: stop  '
const NEXT_QUESTION_WITHOUT_SCREEN = '\n  Enter: next screen   q: stop  '
const TRY_QUESTION = '\n  Enter: try this session yourself; it is kept, to come back to   q: stop  '
const TRY_QUESTION_AGAIN = '\n  Enter: try this session; it replaces the one you kept before   q: stop  '

interface StepPrinter {
  /** Prints a step. Before each screen but the first, it waits for the user. */
  show(step: TourStep): Promise<Exclude<UserAnswer, 'skip'>>
  /** Returns true if the user wants to try the session without reading on. */
  isSkipped(): boolean
}

function createStepPrinter(terminal: Terminal): StepPrinter {
  const screen = createScreen(terminal)
  const question = canShowScreen(terminal) ? NEXT_QUESTION : NEXT_QUESTION_WITHOUT_SCREEN
  let isFirst = true
  let isSkipped = false
  return {
    async show(step) {
      if (isSkipped) return 'next'
      const isScene = step.kind === 'scene' && !isFirst
      const answer = isScene ? await waitForUser(terminal, question) : 'next'
      isFirst = false
      if (answer === 'skip') {
        isSkipped = true
        terminal.write('\n  The job runs to its end …\n')
        return 'next'
      }
      if (answer === 'next') terminal.write(renderTourStep(step, screen))
      return answer
    },
    isSkipped: () => isSkipped,
  }
}

const ANSWERS: Readonly<Record<string, UserAnswer>> = { enter: 'next', s: 'skip', q: 'stop' }

/** Waits for the key with which the user continues or stops. Without a terminal, continues at once. */
async function waitForUser(terminal: Terminal, question: string): Promise<UserAnswer> {
  if (!terminal.isTty || terminal.isInputTty !== true || terminal.askKey === undefined) return 'next'
  const keys = Object.keys(ANSWERS).filter((key) => key !== 's' || question === NEXT_QUESTION)
  const key = await terminal.askKey(question, keys)
  return key === null ? 'interrupted' : (ANSWERS[key] ?? 'next')
}
