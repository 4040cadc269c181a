/** `tidemark chat`: opens the screen in a terminal. With `-p PROMPT`, runs the agent without a screen and prints its answer. */

import { realpath, stat } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { formatCount } from '@tidemark/terminal/render/format-numbers'
import { printError, printMisuse } from '@tidemark/terminal/render/print-errors'
import { createProgressLine } from '@tidemark/terminal/render/progress-line'
import { toSafeLine } from '@tidemark/terminal/render/text'
import type { Terminal } from '@tidemark/terminal/terminal'
import { EXIT_CODES } from '@tidemark/terminal/terminal'
import { type RunOutcome, type SessionEvent, TidemarkError } from 'tidemark'
import { tidemarkHome } from 'tidemark/logs'
import { openAgent } from '../agent/agent.ts'
import type { UsageLimits } from '../agent/agent-limits.ts'
import type { Agent, AgentOptions } from '../agent/agent-options.ts'
import {
  chooseModel,
  chooseSessionId,
  formatResumeCommand,
  storeWorkingFolder,
} from '../agent/agent-sessions.ts'
import {
  type ChatOutput,
  createChatOutput,
  describeProgress,
  type OutputFormat,
} from '../agent/chat-output.ts'
import { findRuleProblem, type PermissionMode, PLAN_TOOL } from '../agent/permissions.ts'
import { type AgentSettings, readSettings } from '../agent/settings.ts'
import type { ScreenDevice, UndoInChat } from '../chat/chat-context.ts'
import { startWatchdog } from '../threads/watchdog.ts'
import { pickSimilarNames } from '../tools/file-content.ts'
import { offerTrust } from './trust.ts'

export interface ChatCommandOptions {
  /** The prompt; true if it is read from standard input. */
  readonly prompt?: string | true
  readonly outputFormat: OutputFormat
  readonly inputFormat: 'text' | 'stream-json'
  readonly resume?: string
  readonly continue?: boolean
  readonly maxTurns?: number
  /** What the session and its subagents may use. */
  readonly limit?: UsageLimits
  /** What one run of a subagent may use. */
  readonly subagentLimit?: UsageLimits
  readonly model?: string
  readonly baseUrl?: string
  readonly window?: number
  readonly allowedTools?: readonly string[]
  readonly permissionMode?: PermissionMode
  readonly appendSystemPrompt?: string
  readonly cwd?: string
  /** What the screen draws to, as in `ChatStartOptions`. */
  readonly device?: ScreenDevice
  /** Called with this chat's undo function, for the page that is served beside it. */
  readonly onUndo?: (undo: UndoInChat) => void
}

/** Runs the command. `input`: standard input, for prompts without a screen. Returns the exit code. */
export async function runChatCommand(
  choices: ChatCommandOptions,
  terminal: Terminal,
  input: Readable,
): Promise<number> {
  const isOnScreen = choices.prompt === undefined && choices.inputFormat === 'text'
  const noScreen = isOnScreen ? findScreenProblem(choices, terminal) : null
  if (noScreen !== null) {
    return printMisuse(
      `${noScreen} Give a prompt with -p, as in tidemark chat -p "Fix the failing test."`,
      terminal,
    )
  }
  const wrongRule = (choices.allowedTools ?? []).map(findRuleProblem).find((problem) => problem !== null)
  if (wrongRule !== undefined) {
    return printMisuse(`--allowed-tools: ${wrongRule}.`, terminal)
  }
  const folder = await findFolder(choices.cwd ?? process.cwd())
  if (folder === null) return printMisuse(`--cwd: ${choices.cwd} is not a folder.`, terminal)
  const found = await readSettings(folder, terminal.env)
  const settings = canAskUser(choices, terminal) ? await offerTrust(folder, found, terminal) : found
  if (terminal.interrupted?.aborted === true) return EXIT_CODES.interrupted
  for (const notice of settings.notices) terminal.warn(`tidemark: ${toSafeLine(notice)}\n`)
  const home = tidemarkHome(terminal.env)
  const chosen = await chooseSessionId(choices, home, folder)
  if ('problem' in chosen)
    return printError(await explainMissingSession(choices, chosen.problem, home), terminal)
  if (chosen.notice !== null) terminal.warn(`tidemark: ${toSafeLine(chosen.notice)}\n`)
  const { id: sessionId } = chosen
  const resumeCommand = formatResumeCommand(sessionId, choices, terminal)
  const watchdog = terminal.isProcess === true ? startWatchdog({ resumeCommand, isOnScreen }) : null
  const onWork = (work: string): void => watchdog?.report(work)
  try {
    if (!isOnScreen)
      return await runPrompts({ choices, terminal, input, folder, home, settings, sessionId, onWork })
    // The screen and its library are loaded only here.
    const { runChat } = await import('../chat/run-chat.ts')
    const notices = [...settings.notices, ...(chosen.notice === null ? [] : [chosen.notice])]
    const shown = { ...settings, notices }
    return await runChat({ ...choices, terminal, folder, home, settings: shown, sessionId, onWork })
  } finally {
    watchdog?.stop()
  }
}

/** Runs the agent without a screen. Returns the exit code. */
async function runPrompts(talk: Omit<Conversation, 'prompt'>): Promise<number> {
  const { choices, terminal, input } = talk
  const isPiped = choices.prompt === true && choices.inputFormat !== 'stream-json'
  const prompt = isPiped ? await readAll(input) : typeof choices.prompt === 'string' ? choices.prompt : null
  if (prompt !== null && prompt.trim() === '' && choices.resume === undefined && choices.continue !== true)
    return printMisuse('the prompt is empty: give one after -p, or on standard input.', terminal)
  return await converse({ ...talk, prompt })
}

/** Explains that the session of the tour, which needs its own model, is opened by another command. */
async function explainMissingSession(
  { resume }: ChatCommandOptions,
  problem: string,
  home: string,
): Promise<string> {
  if (resume !== 'tour') return problem
  const { findKeptTourProject } = await import('../tour/tour-project.ts')
  return (await findKeptTourProject(home)) === null
    ? problem
    : 'the session of the tour, with its simulated model, is opened by: tidemark tour --resume'
}

/** Returns why the screen cannot be shown; null if it can. */
function findScreenProblem({ outputFormat }: ChatCommandOptions, terminal: Terminal): string | null {
  if (!terminal.isTty || terminal.isInputTty !== true)
    return 'The screen of chat needs a terminal for input and output.'
  if (terminal.env.TERM === 'dumb') return 'The screen of chat cannot be shown in this terminal (TERM=dumb).'
  return outputFormat === 'text' ? null : `The screen of chat has no output format ${outputFormat}.`
}

interface Conversation {
  readonly choices: ChatCommandOptions
  readonly terminal: Terminal
  readonly input: Readable
  readonly folder: string
  readonly home: string
  readonly settings: AgentSettings
  readonly sessionId: string
  readonly prompt: string | null
  readonly onWork: (work: string) => void
}

/** Opens the agent and runs the prompts. Returns the exit code. */
async function converse(talk: Conversation): Promise<number> {
  const { choices, terminal, folder, home, settings, sessionId, prompt } = talk
  const output = createChatOutput(choices.outputFormat, terminal)
  const progress = createProgressLine(terminal, () => performance.now())
  const unanswered = new AbortController()
  const stopped = AbortSignal.any([
    unanswered.signal,
    ...(terminal.interrupted === undefined ? [] : [terminal.interrupted]),
  ])
  let agent: Agent | null = null
  const eventsOfOpening: SessionEvent[] = []
  agent = await openAgent({
    folder,
    home,
    sessionId,
    model: chooseModel(choices, settings, terminal),
    settings,
    env: terminal.env,
    ...toAgentChoices(choices),
    ...createQuestions(talk, progress, () => unanswered.abort()),
    onUnread: (kind, { path, why }) =>
      terminal.warn(`tidemark: ${toSafeLine(`The ${kind} ${path} was not read: ${why}.`)}\n`),
    onNotice: (message) => terminal.warn(`tidemark: ${toSafeLine(message)}\n`),
    onSubagent(event) {
      if (event.text !== undefined) progress.show(toSafeLine(`${event.agent.type}: ${event.text}`))
      output.subagent(event, sessionId)
    },
    onEvent(event) {
      const line = describeProgress(event)
      if (line !== null) {
        progress.show(line)
        talk.onWork(line)
      }
      if (line !== null && event.type === 'retrying' && terminal.isErrorTty !== true)
        terminal.warn(`tidemark: ${line}\n`)
      if (agent === null) eventsOfOpening.push(event)
      else output.event(event, agent)
    },
  })
  choices.onUndo?.(createUndo(agent, sessionId))
  try {
    await storeWorkingFolder(home, sessionId, folder)
    output.begin(agent, folder)
    for (const event of eventsOfOpening) output.event(event, agent)
    let code: number = EXIT_CODES.done
    for await (const next of listPrompts(talk, prompt)) {
      const outcome = await runPrompt(agent, next, talk, { output, stopped })
      progress.clear()
      code = outcome.ok ? EXIT_CODES.done : EXIT_CODES.failed
      if (terminal.interrupted?.aborted === true) return EXIT_CODES.interrupted
      if (stopped.aborted) return code
    }
    return code
  } finally {
    progress.clear()
    await agent.close()
  }
}

function createUndo({ session }: Agent, sessionId: string): UndoInChat {
  return async (id, target) => {
    if (id !== sessionId) return null
    const undone = await session.undo(target)
    return { ok: undone.ok, message: undone.ok ? 'It is undone.' : undone.message }
  }
}

/** Returns the options of the agent that the command line gives. */
function toAgentChoices(choices: ChatCommandOptions): Partial<AgentOptions> {
  return {
    ...(choices.allowedTools === undefined ? {} : { allowed: choices.allowedTools }),
    ...(choices.limit === undefined ? {} : { limits: choices.limit }),
    ...(choices.subagentLimit === undefined ? {} : { subagentLimits: choices.subagentLimit }),
    ...(choices.permissionMode === undefined ? {} : { mode: choices.permissionMode }),
    ...(choices.appendSystemPrompt === undefined ? {} : { appendedPrompt: choices.appendSystemPrompt }),
  }
}

/** Returns true if the user can be asked: there is a terminal, the output is text, and no prompts come from standard input. */
function canAskUser({ outputFormat, prompt, inputFormat }: ChatCommandOptions, terminal: Terminal): boolean {
  const { isInputTty = false, isErrorTty = false } = terminal
  return isInputTty && isErrorTty && outputFormat === 'text' && prompt !== true && inputFormat === 'text'
}

/**
 * Returns the functions that ask the user for permissions and answers; empty if nobody can be asked. `stop` is called if a question stays
 * unanswered, because of Ctrl-C or the end of the input.
 */
function createQuestions(
  { choices, terminal, folder }: Conversation,
  progress: ReturnType<typeof createProgressLine>,
  stop: () => void,
): Pick<AgentOptions, 'askPermission' | 'askUser'> {
  const { ask } = terminal
  if (ask === undefined || !canAskUser(choices, terminal)) return {}
  const askLine = async (text: string, keys: string, signal: AbortSignal | undefined) => {
    const answer = await progress.hideDuring(() => {
      // The line editor redraws its prompt with each key, so only the last line is passed to it.
      terminal.warn(`${text}\n`)
      return ask.call(terminal, keys, signal)
    })
    if (answer === null && signal?.aborted !== true) stop()
    return answer?.trim() ?? ''
  }
  return {
    async askPermission(request) {
      const isPlan = request.tool === PLAN_TOOL
      const keys = `[y/N, or ${isPlan ? 'what to change' : 'why not'}] `
      const { formatPermissionQuestion } = await import('../screen/permission-view.ts')
      const said = await askLine(formatPermissionQuestion(request, folder), keys, request.signal)
      if (/^y(es)?$/i.test(said)) return { isAllowed: true }
      return /^(no?)?$/i.test(said) ? { isAllowed: false } : { isAllowed: false, reason: said }
    },
    askUser: async (questions, signal) => {
      const answers: string[][] = []
      for (const { question, options } of questions) {
        const rows = options.map(({ label }, index) => `\n  ${index + 1}. ${toSafeLine(label)}`).join('')
        const said = await askLine(`${toSafeLine(question)}${rows}`, '> ', signal)
        const chosen = options[Number(said) - 1]?.label
        answers.push(said === '' ? [] : [chosen ?? said])
      }
      return answers
    },
  }
}

async function runPrompt(
  agent: Agent,
  prompt: string | readonly object[],
  { choices, terminal }: Conversation,
  { output, stopped }: { readonly output: ChatOutput; readonly stopped: AbortSignal },
): Promise<RunOutcome> {
  const startedAt = performance.now()
  const { maxTurns } = choices
  // An empty prompt continues a session whose turn was interrupted.
  const isEmpty = typeof prompt === 'string' && prompt.trim() === ''
  const expanded = isEmpty ? null : await agent.expandPrompt(prompt, stopped)
  const unknown = expanded?.unknownCommand
  if (unknown !== undefined && choices.inputFormat !== 'stream-json')
    throw badInput(await describeUnknownCommand(unknown, agent))
  const attached = (expanded?.attached ?? []).map((label) => `attached ${label}`)
  if (unknown !== undefined) attached.push(`There is no command /${unknown}: the text was sent as a prompt.`)
  for (const notice of [...attached, ...(expanded?.notices ?? [])])
    terminal.warn(`tidemark: ${toSafeLine(notice)}\n`)
  const run = agent.run(expanded?.prompt ?? null, {
    signal: stopped,
    ...(maxTurns === undefined ? {} : { maxCalls: maxTurns }),
    ...(expanded?.typed === undefined ? {} : { typed: expanded.typed }),
  })
  // The output gets events from `onEvent`. The events of the run must be read, too, because unread events stay in memory.
  for await (const _ of run);
  const outcome = describeForCommand(await run.outcome, agent, choices, terminal)
  output.end(outcome, agent, performance.now() - startedAt)
  return outcome
}

async function describeUnknownCommand(name: string, agent: Agent): Promise<string> {
  const names = (await agent.listPromptFiles()).filter(({ isForUser }) => isForUser).map((file) => file.name)
  const near = pickSimilarNames(name, names).map((each) => `/${each}`)
  const hint = near.length === 0 ? '' : ` Did you mean ${near.join(' or ')}?`
  return `there is no command /${name} for -p; nothing was sent.${hint} With a space before it, it is sent as a prompt.`
}

/** Adds how to continue on the command line, where the library's message refers to code or says nothing. */
function describeForCommand(
  outcome: RunOutcome,
  { session }: Agent,
  choices: ChatCommandOptions,
  terminal: Terminal,
): RunOutcome {
  if (outcome.ok) return outcome
  const goOn = `To go on: ${formatResumeCommand(session.id, choices, { more: '-p ""', env: terminal.env })}`
  switch (outcome.reason) {
    case 'call-limit':
      return {
        ...outcome,
        message: `Stopped after ${formatCount(outcome.calls, 'call')} to the model, the limit of --max-turns. ${goOn}`,
      }
    case 'limit':
      return { ...outcome, message: `${outcome.message} ${goOn}` }
    case 'aborted':
      return { ...outcome, message: `Interrupted. ${goOn}` }
    case 'failed':
      return { ...outcome, message: `${outcome.message.replace(/\.?$/, '.')} ${goOn}` }
    case 'invalid':
      return session.messages().at(-1)?.role === 'user'
        ? outcome
        : {
            ...outcome,
            message: 'There is nothing to continue: the last answer is complete. Give a prompt after -p.',
          }
    default:
      return outcome
  }
}

/** Yields the prompt of the command line, or the prompts that arrive on standard input as JSON lines. */
async function* listPrompts(
  { choices, input }: Conversation,
  prompt: string | null,
): AsyncGenerator<string | readonly object[], void> {
  if (prompt !== null) yield prompt
  if (choices.inputFormat !== 'stream-json') return
  let number = 0
  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    number += 1
    if (line.trim() !== '') yield parsePromptLine(line, number)
  }
}

function parsePromptLine(line: string, number: number): string | readonly object[] {
  const expected = '{"type":"user","message":{"role":"user","content":"…"}}'
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    throw badInput(`line ${number} of the input is not JSON; expected ${expected}.`)
  }
  const { type, message } = (value ?? {}) as { type?: unknown; message?: { content?: unknown } }
  const content = message?.content
  if (type === 'user' && (typeof content === 'string' || (Array.isArray(content) && content.length > 0)))
    return content as string | readonly object[]
  throw badInput(`line ${number} of the input is no prompt; expected ${expected}.`)
}

function badInput(message: string): TidemarkError {
  return new TidemarkError('bad-option', message)
}

async function readAll(input: Readable): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of input) chunks.push(Buffer.from(chunk as Uint8Array))
  return Buffer.concat(chunks).toString('utf8')
}

/** Returns the folder without symbolic links; null if it is not a folder. */
async function findFolder(path: string): Promise<string | null> {
  try {
    return (await stat(path)).isDirectory() ? await realpath(path) : null
  } catch {
    return null
  }
}
