/**
 * `tidemark compact`: compacts a session, or undoes a compaction. Prints the plan, the draft of the summary and a
 * receipt, and writes the result to the session's log or to a copy. Logs of other programs are never changed. An
 * interruption leaves no half-written file.
 */
import { existsSync, realpathSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { TidemarkError } from '@tidemark/core/errors'
import { formatBytes, formatCount } from '@tidemark/terminal/render/format-numbers'
import { formatJson } from '@tidemark/terminal/render/json-output'
import { printError } from '@tidemark/terminal/render/print-errors'
import { createProgressLine, type ProgressLine } from '@tidemark/terminal/render/progress-line'
import { createScreen } from '@tidemark/terminal/render/screen'
import { formatPath, toSafeLine } from '@tidemark/terminal/render/text'
import { askYesNo, EXIT_CODES, type Terminal, toSignalOption } from '@tidemark/terminal/terminal'
import { anthropic, type ModelChoice } from 'tidemark'
import {
  type BlobCopyReport,
  type CompactLogRefusal,
  chooseSession,
  createSingleLogJournal,
  findNamedLogs,
  findOutputProblem,
  findRecordIdProblem,
  type LogCopy,
  type NamedLog,
  resolveLogPath,
  tidemarkHome,
  writeLogAndBlobs,
} from 'tidemark/internal'
import {
  type CompactionReport,
  type CompactLogOptions,
  compactLog,
  inspectFiles,
  type LogContents,
  readLog,
  type UndoReport,
  undoLog,
} from 'tidemark/logs'
import {
  type CompactDestination,
  describeSummaryFallback,
  formatCompactProgress,
  renderCompactFooter,
  renderCompactPage,
  renderUndoPage,
} from '../pages/compact-page.ts'
import { SAMPLE_LOG_PATH } from '../sample-session.ts'
import { type CompactCommandOptions, findOptionProblem } from './compact-options.ts'
import { describeBlobCopy } from './repair.ts'

export async function runCompactCommand(
  path: string,
  choices: CompactCommandOptions,
  terminal: Terminal,
): Promise<number> {
  const conflict = findOptionProblem(choices, terminal.env)
  if (conflict !== null) return printUsageError(conflict, terminal)
  const opened = await openSessionLog(path, choices, terminal)
  if (!opened.ok)
    return opened.isWrongUse
      ? printUsageError(opened.message, terminal)
      : printError(opened.message, terminal)
  const { log } = opened
  const unknown = choices.undo === undefined ? null : findRecordIdProblem(log, choices.undo)
  if (unknown !== null) return printUsageError(unknown, terminal)
  const mode = await chooseCompactDestination(log, choices, terminal)
  if (!mode.ok) return printUsageError(mode.message, terminal)
  const work: CompactWork = { log, choices, terminal, mode }
  return choices.undo === undefined ? compactSession(work) : undoCompaction(work, choices.undo)
}

interface CompactWork {
  readonly log: LogContents
  readonly choices: CompactCommandOptions
  readonly terminal: Terminal
  readonly mode: CompactDestination
}

// The log to compact: a file, or one session of a folder.

type OpenSessionLogResult =
  | { readonly ok: true; readonly log: LogContents }
  | { readonly ok: false; readonly isWrongUse: boolean; readonly message: string }

async function openSessionLog(
  given: string,
  choices: CompactCommandOptions,
  terminal: Terminal,
): Promise<OpenSessionLogResult> {
  const path = await resolveLogPath(given, terminal.env)
  const { logs, unreadable } = await findNamedLogs([path], terminal.interrupted)
  const [first] = logs
  if (first === undefined)
    return { ok: false, isWrongUse: false, message: unreadable[0]?.why ?? `${path} is not a log.` }
  if (logs.length === 1 && choices.session === undefined) return readSessionLog(first, terminal)
  const refuse = (message: string) => ({ ok: false as const, isWrongUse: true, message })
  if (choices.session === undefined)
    return refuse(
      `${formatPath(path)} has ${formatCount(logs.length, 'session')}: choose one with --session, or give its file.`,
    )
  const { sessions } = await inspectFiles(logs, toSignalOption(terminal))
  const choice = chooseSession(sessions, choices.session)
  if (!choice.ok) return refuse(`${choice.why}.`)
  const chosen = logs.find(({ file }) => file === choice.report.file)
  return chosen === undefined ? refuse(`no session is ${choices.session}.`) : readSessionLog(chosen, terminal)
}

async function readSessionLog(log: NamedLog, terminal: Terminal): Promise<OpenSessionLogResult> {
  const line = createProgressLine(terminal, () => performance.now())
  try {
    const found = await readLog(log, {
      ...toSignalOption(terminal),
      withAgents: false,
      onProgress: ({ readBytes }) =>
        line.show(
          `reading ${formatBytes(readBytes)} of ${formatBytes(log.sizeBytes)}  ${formatPath(log.file)}`,
        ),
    })
    return found.ok ? { ok: true, log: found } : { ok: false, isWrongUse: false, message: found.message }
  } finally {
    line.clear()
  }
}

// Where the result is written: to the session's own log, to a copy, or nowhere.

async function chooseCompactDestination(
  log: LogContents,
  choices: CompactCommandOptions,
  terminal: Terminal,
): Promise<(CompactDestination & { readonly ok: true }) | { readonly ok: false; readonly message: string }> {
  const { output, force = false } = choices
  if (output !== undefined) {
    const problem = await findOutputProblem(output, log.path, { force })
    return problem === null ? { ok: true, kind: 'copy', path: output } : { ok: false, message: `${problem}.` }
  }
  if (choices.dryRun === true) return { ok: true, kind: 'dry', why: null }
  const why = findReadOnlyReason(log, choices)
  if (why !== null) return { ok: true, kind: 'dry', why }
  if (choices.yes !== true && terminal.isInputTty !== true)
    return {
      ok: false,
      message: `${formatPath(log.path)} would be changed, and there is no terminal to confirm it: give --yes, --dry-run, or -o for a copy.`,
    }
  return { ok: true, kind: 'in-place', path: log.path }
}

function findReadOnlyReason({ format, path }: LogContents, { at }: CompactCommandOptions): string | null {
  if (format !== 'tidemark') return 'logs of other programs are only read'
  if (existsSync(path) && realpathSync(path) === realpathSync(SAMPLE_LOG_PATH))
    return 'the sample is only read'
  if (/\.gz$/i.test(path)) return 'compressed logs are only read'
  return at === undefined ? null : 'with --at the later records stay in the log'
}

// Compaction and undo.

async function compactSession(work: CompactWork): Promise<number> {
  const { log, choices, terminal, mode } = work
  let isShown = false
  const outcome = await runWithProgress(work, (options, line) =>
    compactLog(log, {
      ...options,
      ...toCompactOptions(choices, terminal),
      ...toConfirmOption(work, line, async (preview) => {
        isShown = true
        if (choices.json !== true) terminal.write(renderCompactPage(preview, createScreen(terminal), choices))
        return (await askYesNo(`Compact ${formatPath(log.path)}?`, terminal)) === true
      }),
    }),
  )
  if ('code' in outcome) return outcome.code
  if (!outcome.ok) return printRefusal(outcome, terminal)
  const { report, written } = outcome
  const copy = await writeCopy(written, work)
  if (copy.code !== EXIT_CODES.done) return copy.code
  const screen = createScreen(terminal)
  if (choices.json === true) {
    if (report.fallbackReason !== null) terminal.warn(`tidemark: ${describeSummaryFallback(report)}\n`)
    terminal.write(`${formatJson({ ...toCompactJson(report, mode), ...toBlobsField(copy) })}\n`)
  } else {
    if (!isShown) terminal.write(renderCompactPage(report, screen, choices))
    terminal.write(renderCompactFooter(report, mode, screen) + formatCopiedBlobs(copy.blobs))
  }
  return EXIT_CODES.done
}

function toCompactOptions(choices: CompactCommandOptions, { env }: Terminal): CompactLogOptions {
  const { at, from, upTo, instructions, target, maxPercent, ledger } = choices
  return {
    ...(at === undefined ? {} : { at }),
    ...(from === undefined ? {} : { from }),
    ...(upTo === undefined ? {} : { upTo }),
    ...(instructions === undefined ? {} : { instructions }),
    ...(target === undefined ? {} : { target }),
    ...(maxPercent === undefined ? {} : { maximumPercent: maxPercent }),
    ...(ledger === undefined ? {} : { ledger }),
    ...(choices.summarizer === 'local' ? {} : { summariser: createSummarizer(choices, env) }),
  }
}

/** Returns a function from the session's model to the model for the summary, which is called with the user's own API key. */
function createSummarizer(
  { model, window, baseUrl }: CompactCommandOptions,
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

async function undoCompaction(work: CompactWork, id: string): Promise<number> {
  const { log, choices, terminal, mode } = work
  const outcome = await runWithProgress(work, (options, line) =>
    undoLog(log, id, {
      ...options,
      force: choices.force === true,
      ...toConfirmOption(work, line, async ({ kind }) => {
        const what = kind === 'compact' ? 'compaction' : 'clearing'
        return (await askYesNo(`Undo the ${what} ${id}?`, terminal)) === true
      }),
    }),
  )
  if ('code' in outcome) return outcome.code
  if (!outcome.ok) return printRefusal(outcome, terminal)
  const copy = await writeCopy(outcome.written, work)
  if (copy.code !== EXIT_CODES.done) return copy.code
  const { report } = outcome
  if (choices.json === true)
    terminal.write(`${formatJson({ ...toUndoJson(report, mode), ...toBlobsField(copy) })}\n`)
  else terminal.write(renderUndoPage(report, mode, createScreen(terminal)) + formatCopiedBlobs(copy.blobs))
  return EXIT_CODES.done
}

type SharedOptions = Pick<
  CompactLogOptions,
  'model' | 'window' | 'journal' | 'transcript' | 'onEvent' | 'signal'
>

/**
 * Runs `act` while a progress line is shown. If the session's own log is to be written, `act` gets a journal for it,
 * whose lock is released when `act` ends. Prints an error about a wrong option, and returns its exit code.
 */
async function runWithProgress<End>(
  { log, choices, terminal, mode }: CompactWork,
  act: (options: SharedOptions, line: ProgressLine) => Promise<End>,
): Promise<End | { readonly code: number }> {
  const line = createProgressLine(terminal, () => performance.now())
  const journal = mode.kind === 'in-place' ? createSingleLogJournal(log.path) : null
  const beat = setInterval(() => line.show(formatCompactProgress(null)), 250)
  try {
    const options: SharedOptions = {
      ...(choices.model === undefined ? {} : { model: choices.model }),
      ...(choices.window === undefined ? {} : { window: choices.window }),
      ...(journal === null ? {} : { journal }),
      ...(mode.kind === 'dry' ? {} : { transcript: mode.path }),
      ...toSignalOption(terminal),
      onEvent: (event) => line.show(formatCompactProgress(event)),
    }
    return await act(options, line)
  } catch (error) {
    if (error instanceof TidemarkError && (error.code === 'bad-option' || error.code === 'bad-policy'))
      return { code: printUsageError(error.message, terminal) }
    throw error
  } finally {
    clearInterval(beat)
    line.clear()
    await journal?.release('')
  }
}

/** Returns the option that asks the user before the session's own log is changed; the progress line is hidden meanwhile. */
function toConfirmOption<Preview>(
  { mode, choices }: CompactWork,
  line: ProgressLine,
  confirm: (preview: Preview) => Promise<boolean>,
): { readonly confirm?: (preview: Preview) => Promise<boolean> } {
  if (mode.kind !== 'in-place' || choices.yes === true) return {}
  return { confirm: (preview) => line.hideDuring(() => confirm(preview)) }
}

interface CopyOutcome {
  readonly code: number
  /** What happened to the large results of the session; null if no copy was written. */
  readonly blobs: BlobCopyReport | null
}

async function writeCopy(written: LogCopy, { mode, choices, terminal }: CompactWork): Promise<CopyOutcome> {
  if (mode.kind !== 'copy') return { code: EXIT_CODES.done, blobs: null }
  if (terminal.interrupted?.aborted === true) return { code: EXIT_CODES.interrupted, blobs: null }
  const home = tidemarkHome(terminal.env)
  const outcome = await writeLogAndBlobs(mode.path, written, { force: choices.force === true, home })
  if (outcome.ok) return { code: EXIT_CODES.done, blobs: outcome.blobs }
  return { code: printError(outcome.message, terminal), blobs: null }
}

function formatCopiedBlobs(blobs: BlobCopyReport | null): string {
  return blobs === null
    ? ''
    : describeBlobCopy(blobs)
        .map((line) => `${line}\n`)
        .join('')
}

function printRefusal(refusal: CompactLogRefusal, terminal: Terminal): number {
  if (refusal.reason === 'aborted' || terminal.interrupted?.aborted === true) {
    terminal.warn('tidemark: interrupted; nothing was changed.\n')
    return EXIT_CODES.interrupted
  }
  if (refusal.reason === 'declined') {
    terminal.warn('Nothing was changed.\n')
    return EXIT_CODES.failed
  }
  if (refusal.reason === 'bad-record') return printUsageError(refusal.message, terminal)
  const more = refusal.reason === 'not-smaller' ? ' --max-percent allows more.' : ''
  return printError(`${refusal.message}${more}`, terminal)
}

function printUsageError(message: string, terminal: Terminal): number {
  terminal.warn(`tidemark: ${toSafeLine(message)} See tidemark compact --help.\n`)
  return EXIT_CODES.wrongUse
}

/** Returns the JSON value that `tidemark compact --json` prints. The documented fields come first. */
function toCompactJson(report: CompactionReport, mode: CompactDestination): object {
  const { tokensBefore, tokensAfter, summary, ledger, messages, receipt, trace, ...rest } = report
  const written = mode.kind === 'dry' ? null : mode.path
  return { tokensBefore, tokensAfter, summary, ledger, messages, receipt, trace, ...rest, written }
}

function toUndoJson(report: UndoReport, mode: CompactDestination): object {
  const { id, kind, tokensBefore, tokensAfter, messages, file } = report
  const written = mode.kind === 'dry' ? null : mode.path
  return { undone: id, kind, tokensBefore, tokensAfter, messages, file, written }
}

/** Returns the field `blobs` of the JSON value, which only the report of a written copy has. */
function toBlobsField({ blobs }: CopyOutcome): { readonly blobs?: BlobCopyReport } {
  return blobs === null ? {} : { blobs }
}
