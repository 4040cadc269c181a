/**
 * `tidemark compact`: shows plan, draft and receipt of a compaction, writes it to the session or to a copy, and undoes it.
 * Logs of other programs are never written. Nothing is left half-written if interrupted.
 */
import { existsSync, realpathSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { TidemarkError } from '@tidemark/core'
import {
  anthropic,
  type CompactionReport,
  type CompactLogOptions,
  type CompactLogRefusal,
  chooseSession,
  compactLog,
  createOneLogJournal,
  findNamedLogs,
  inspectFiles,
  type ModelChoice,
  type NamedLog,
  outProblem,
  type ReadLog,
  readLog,
  type UndoReport,
  undoLog,
  type WrittenLog,
  writeSession,
} from 'tidemark'
import {
  compactPage,
  fallbackWords,
  footer,
  progressText,
  undoPage,
  type Went,
} from '../pages/compact-page.ts'
import { bytes, count } from '../render/figures.ts'
import { screenFor } from '../render/screen.ts'
import { shown, shownPath } from '../render/text.ts'
import { SAMPLE_PATH } from '../sample-session.ts'
import { createProgressLine, isYes, signalOf, type Terminal } from '../terminal.ts'
import { type CompactChoices, wrongChoice } from './compact-options.ts'
import { EXIT, printError } from './exit-codes.ts'

export async function compact(path: string, choices: CompactChoices, terminal: Terminal): Promise<number> {
  const conflict = wrongChoice(choices, terminal.env)
  if (conflict !== null) return wrongUse(conflict, terminal)
  const opened = await openedLog(path, choices, terminal)
  if (!opened.ok)
    return opened.isWrongUse ? wrongUse(opened.message, terminal) : printError(opened.message, terminal)
  const { log } = opened
  const mode = await modeFor(log, choices, terminal)
  if (!mode.ok) return wrongUse(mode.message, terminal)
  const work: Work = { log, choices, terminal, mode }
  return choices.undo === undefined ? compacted(work) : undone(work, choices.undo)
}

interface Work {
  readonly log: ReadLog
  readonly choices: CompactChoices
  readonly terminal: Terminal
  readonly mode: Went
}

// The log to compact: a file, or a folder and the session in it.

type OpenedLog =
  | { readonly ok: true; readonly log: ReadLog }
  | { readonly ok: false; readonly isWrongUse: boolean; readonly message: string }

async function openedLog(path: string, choices: CompactChoices, terminal: Terminal): Promise<OpenedLog> {
  const { logs, unreadable } = await findNamedLogs([path], terminal.interrupted)
  const [first] = logs
  if (first === undefined)
    return { ok: false, isWrongUse: false, message: unreadable[0]?.why ?? `${path} is not a log.` }
  if (logs.length === 1 && choices.session === undefined) return read(first, terminal)
  const refuse = (message: string) => ({ ok: false as const, isWrongUse: true, message })
  if (choices.session === undefined)
    return refuse(
      `${shownPath(path)} has ${count(logs.length, 'session')}: choose one with --session, or give its file.`,
    )
  const { sessions } = await inspectFiles(logs, signalOf(terminal))
  const choice = chooseSession(sessions, choices.session)
  if (!choice.ok) return refuse(`${choice.why}.`)
  const chosen = logs.find(({ file }) => file === choice.report.file)
  return chosen === undefined ? refuse(`no session is ${choices.session}.`) : read(chosen, terminal)
}

async function read(log: NamedLog, terminal: Terminal): Promise<OpenedLog> {
  const line = createProgressLine(terminal, () => performance.now())
  try {
    const found = await readLog(log, {
      ...signalOf(terminal),
      withAgents: false,
      onProgress: ({ readBytes }) =>
        line.show(`reading ${bytes(readBytes)} of ${bytes(log.sizeBytes)}  ${shownPath(log.file)}`),
    })
    return found.ok ? { ok: true, log: found } : { ok: false, isWrongUse: false, message: found.message }
  } finally {
    line.clear()
  }
}

// Where the result goes: into the session's own log, into a copy, or nowhere.

async function modeFor(
  log: ReadLog,
  choices: CompactChoices,
  terminal: Terminal,
): Promise<(Went & { readonly ok: true }) | { readonly ok: false; readonly message: string }> {
  const { output, force = false } = choices
  if (output !== undefined) {
    const problem = await outProblem(output, log.path, { force })
    return problem === null ? { ok: true, kind: 'copy', path: output } : { ok: false, message: `${problem}.` }
  }
  if (choices.dryRun === true) return { ok: true, kind: 'dry', why: null }
  const why = onlyRead(log, choices)
  if (why !== null) return { ok: true, kind: 'dry', why }
  if (choices.yes !== true && terminal.isInputTty !== true)
    return {
      ok: false,
      message: `${shownPath(log.path)} would be changed, and there is no terminal to confirm it: give --yes, --dry-run, or -o for a copy.`,
    }
  return { ok: true, kind: 'in-place', path: log.path }
}

function onlyRead({ format, path }: ReadLog, { at }: CompactChoices): string | null {
  if (format !== 'tidemark') return 'logs of other programs are only read'
  if (existsSync(path) && realpathSync(path) === realpathSync(SAMPLE_PATH)) return 'the sample is only read'
  if (/\.gz$/i.test(path)) return 'compressed logs are only read'
  return at === undefined ? null : 'with --at the later records stay in the log'
}

// Compacting and undoing.

async function compacted(work: Work): Promise<number> {
  const { log, choices, terminal, mode } = work
  let isShown = false
  const outcome = await atWork(work, (options) =>
    compactLog(log, {
      ...options,
      ...optionsOf(choices, terminal),
      ...asking(work, async (preview) => {
        isShown = true
        if (choices.json !== true) terminal.write(compactPage(preview, screenFor(terminal), choices))
        return (await isYes(`Compact ${shownPath(log.path)}?`, terminal)) === true
      }),
    }),
  )
  if ('code' in outcome) return outcome.code
  if (!outcome.ok) return refusedBy(outcome, terminal)
  const { report, written } = outcome
  const code = await write(written, work)
  if (code !== EXIT.done) return code
  const screen = screenFor(terminal)
  if (choices.json === true) {
    if (report.fallbackReason !== null) terminal.warn(`tidemark: ${fallbackWords(report)}\n`)
    terminal.write(`${JSON.stringify(jsonOf(report, mode))}\n`)
  } else {
    if (!isShown) terminal.write(compactPage(report, screen, choices))
    terminal.write(footer(report, mode, screen))
  }
  return EXIT.done
}

function optionsOf(choices: CompactChoices, { env }: Terminal): CompactLogOptions {
  const { at, from, upTo, instructions, target, ledger } = choices
  return {
    ...(at === undefined ? {} : { at }),
    ...(from === undefined ? {} : { from }),
    ...(upTo === undefined ? {} : { upTo }),
    ...(instructions === undefined ? {} : { instructions }),
    ...(target === undefined ? {} : { target }),
    ...(ledger === undefined ? {} : { ledger }),
    ...(choices.summarizer === 'local' ? {} : { summariser: summariserFor(choices, env) }),
  }
}

/** The model that writes the summary, with the user's own key. */
function summariserFor(
  { model, window, baseUrl }: CompactChoices,
  env: Terminal['env'],
): (sessionModel: string) => ModelChoice {
  const url = baseUrl ?? env.ANTHROPIC_BASE_URL
  const { ANTHROPIC_API_KEY: apiKey, ANTHROPIC_AUTH_TOKEN: authToken } = env
  const isSet = (value: string | undefined): value is string => value !== undefined && value !== ''
  const credentials = isSet(apiKey) ? { apiKey } : isSet(authToken) ? { authToken } : {}
  return (sessionModel) =>
    anthropic(model ?? sessionModel, {
      ...credentials,
      ...(isSet(url) ? { baseUrl: url } : {}),
      ...(window === undefined ? {} : { window }),
    })
}

async function undone(work: Work, id: string): Promise<number> {
  const { log, choices, terminal, mode } = work
  const outcome = await atWork(work, (options) =>
    undoLog(log, id, {
      ...options,
      force: choices.force === true,
      ...asking(work, async ({ kind }) => {
        const what = kind === 'compact' ? 'compaction' : 'clearing'
        return (await isYes(`Undo the ${what} ${id}?`, terminal)) === true
      }),
    }),
  )
  if ('code' in outcome) return outcome.code
  if (!outcome.ok) return refusedBy(outcome, terminal)
  const code = await write(outcome.written, work)
  if (code !== EXIT.done) return code
  const { report } = outcome
  if (choices.json === true) terminal.write(`${JSON.stringify(undoJson(report, mode))}\n`)
  else terminal.write(undoPage(report, mode, screenFor(terminal)))
  return EXIT.done
}

type Common = Pick<CompactLogOptions, 'model' | 'window' | 'journal' | 'transcript' | 'onEvent' | 'signal'>

/** Runs `act` with a progress line and, if the log itself is written, with its journal, which is released at the end. */
async function atWork<End>(
  { log, choices, terminal, mode }: Work,
  act: (options: Common) => Promise<End>,
): Promise<End | { readonly code: number }> {
  const line = createProgressLine(terminal, () => performance.now())
  const journal = mode.kind === 'in-place' ? createOneLogJournal(log.path) : null
  const beat = setInterval(() => line.show(progressText(null)), 250)
  try {
    return await act({
      ...(choices.model === undefined ? {} : { model: choices.model }),
      ...(choices.window === undefined ? {} : { window: choices.window }),
      ...(journal === null ? {} : { journal }),
      ...(mode.kind === 'dry' ? {} : { transcript: mode.path }),
      ...signalOf(terminal),
      onEvent: (event) => line.show(progressText(event)),
    })
  } catch (error) {
    if (error instanceof TidemarkError && (error.code === 'bad-option' || error.code === 'bad-policy'))
      return { code: wrongUse(error.message, terminal) }
    throw error
  } finally {
    clearInterval(beat)
    line.clear()
    await journal?.release('')
  }
}

function asking<Preview>(
  { mode, choices }: Work,
  confirm: (preview: Preview) => Promise<boolean>,
): { readonly confirm?: (preview: Preview) => Promise<boolean> } {
  return mode.kind === 'in-place' && choices.yes !== true ? { confirm } : {}
}

async function write(written: WrittenLog, { mode, choices, terminal }: Work): Promise<number> {
  if (mode.kind !== 'copy') return EXIT.done
  if (terminal.interrupted?.aborted === true) return EXIT.interrupted
  const outcome = await writeSession(mode.path, written, { force: choices.force === true })
  return outcome.ok ? EXIT.done : printError(outcome.message, terminal)
}

function refusedBy(refusal: CompactLogRefusal, terminal: Terminal): number {
  if (refusal.reason === 'aborted' || terminal.interrupted?.aborted === true) {
    terminal.warn('tidemark: interrupted; nothing was changed.\n')
    return EXIT.interrupted
  }
  if (refusal.reason === 'declined') {
    terminal.warn('Nothing was changed.\n')
    return EXIT.failed
  }
  return refusal.reason === 'bad-record'
    ? wrongUse(refusal.message, terminal)
    : printError(refusal.message, terminal)
}

function wrongUse(message: string, terminal: Terminal): number {
  terminal.warn(`tidemark: ${shown(message)} See tidemark compact --help.\n`)
  return EXIT.wrongUse
}

/** The JSON value of a compaction: the fields of the contract first. */
function jsonOf(report: CompactionReport, mode: Went): object {
  const { tokensBefore, tokensAfter, summary, ledger, messages, receipt, trace, ...rest } = report
  const written = mode.kind === 'dry' ? null : mode.path
  return { tokensBefore, tokensAfter, summary, ledger, messages, receipt, trace, ...rest, written }
}

function undoJson(report: UndoReport, mode: Went): object {
  const { id, kind, tokensBefore, tokensAfter, messages, file } = report
  const written = mode.kind === 'dry' ? null : mode.path
  return { undone: id, kind, tokensBefore, tokensAfter, messages, file, written }
}
