/**
 * `tidemark tour`: prints the tour, one screen at a time in a terminal, or as one JSON value. In a terminal the user can
 * then go on with its session on the screen of chat.
 */
import { NO_RULES } from '../agent/permissions.ts'
import { createScreen } from '../render/screen.ts'
import type { Terminal } from '../terminal.ts'
import type { TourSession } from '../tour/tidemark-run.ts'
import { playTour } from '../tour/tour.ts'
import { renderTourStep, type TourStep } from '../tour/tour-steps.ts'
import { EXIT_CODES } from './exit-codes.ts'

export interface TourCommandOptions {
  readonly json?: boolean
  /** Open chat instead, if there is a terminal, and a key in the environment. */
  readonly orChat?: boolean
}

/** Returns the exit code: `failed` if a statement about what survived turned out to be false. */
export async function runTourCommand(options: TourCommandOptions, terminal: Terminal): Promise<number> {
  const isJson = options.json === true
  if (options.orChat === true && !isJson && canShowScreen(terminal) && hasKey(terminal)) {
    const { runChatCommand } = await import('./chat.ts')
    return await runChatCommand({ outputFormat: 'text', inputFormat: 'text' }, terminal, process.stdin)
  }
  const steps: TourStep[] = []
  const printer = createStepPrinter(terminal)
  const show = isJson ? async () => 'next' as const : printer.show
  let lastAnswer: UserAnswer = 'next'
  const tryOut = async (session: TourSession): Promise<void> => {
    if (!printer.isSkipped()) lastAnswer = await waitForUser(terminal, TRY_QUESTION)
    if (lastAnswer === 'next' || lastAnswer === 'skip') await openOnScreen(session, terminal)
  }
  const canTry = !isJson && canShowScreen(terminal)
  for await (const step of playTour(terminal.interrupted, canTry ? tryOut : undefined)) {
    if (terminal.interrupted?.aborted === true) return EXIT_CODES.interrupted
    const answer = await show(step)
    if (answer !== 'next') return answer === 'stop' ? EXIT_CODES.done : EXIT_CODES.interrupted
    steps.push(step)
  }
  if ((lastAnswer as UserAnswer) === 'interrupted') return EXIT_CODES.interrupted
  if (isJson) terminal.write(`${JSON.stringify({ steps }, null, 2)}\n`)
  return steps.every((step) => step.kind !== 'check' || step.isTrue) ? EXIT_CODES.done : EXIT_CODES.failed
}

function canShowScreen({ isTty, isInputTty, ask, env }: Terminal): boolean {
  return isTty && isInputTty === true && ask !== undefined && env.TERM !== 'dumb'
}

function hasKey({ env }: Terminal): boolean {
  return [env.ANTHROPIC_API_KEY, env.ANTHROPIC_AUTH_TOKEN].some((key) => key !== undefined && key !== '')
}

const GREETING =
  'This is the session of the tour, on the screen of tidemark chat. Type anything, or a command: /help lists them.'

/** Opens the session of the tour on the screen of chat. What it asks for is not allowed beforehand, as in a real one. */
async function openOnScreen(session: TourSession, terminal: Terminal): Promise<void> {
  const { id, folder, home, env, toolNames, createModel } = session
  // The screen and its library are loaded only here.
  const { runChat } = await import('../chat/run-chat.ts')
  await runChat({
    terminal,
    folder,
    home,
    sessionId: id,
    settings: { permissions: NO_RULES, env: {}, notices: [] },
    simulation: { greeting: GREETING, createModel, toolNames, env },
  })
}

type UserAnswer = 'next' | 'skip' | 'stop' | 'interrupted'

const NEXT_QUESTION = '\n  Enter: next screen   s: skip to the session, to try it   q: stop  '
const NEXT_QUESTION_WITHOUT_SCREEN = '\n  Enter: next screen   q: stop  '
const TRY_QUESTION = '\n  Enter: try this session yourself   q: stop  '

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

/** Waits until the user wants to go on. Without a terminal, nobody is asked. */
async function waitForUser(terminal: Terminal, question: string): Promise<UserAnswer> {
  if (!terminal.isTty || terminal.isInputTty !== true || terminal.ask === undefined) return 'next'
  const answer = await terminal.ask(question)
  if (answer === null) return 'interrupted'
  const key = answer.trim().slice(0, 1).toLowerCase()
  if (key === 's' && canShowScreen(terminal)) return 'skip'
  return key === 'q' ? 'stop' : 'next'
}
