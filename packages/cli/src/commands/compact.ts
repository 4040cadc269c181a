/** `tidemark compact`: plan, draft and receipt of a compaction; written where the person says so, and taken back. */

import { existsSync, realpathSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { TidemarkError } from '@tidemark/core'
import {
  anthropic,
  type CompactionReport,
  type CompactLogOptions,
  type CompactLogRefusal,
  compactLog,
  createOneLogJournal,
  type ModelChoice,
  outProblem,
  type ReadLog,
  type UndoReport,
  undoLog,
  type WrittenLog,
  writeSession,
} from 'tidemark'
import { compactPage, fallbackWords, footer, progressText, undoPage } from '../pages/compact-page.ts'
import { screenFor } from '../render/screen.ts'
import { shown, shownPath } from '../render/text.ts'
import { SAMPLE_PATH } from '../sample-session.ts'
import { createProgressLine, type Terminal } from '../terminal.ts'
import { type CompactChoices, wrongChoice } from './compact-options.ts'
import { openedLog, signalOf } from './find-sessions.ts'

const DONE = 0

export async function compact(path: string, choices: CompactChoices, terminal: Terminal): Promise<number> {
  const wrong = wrongChoice(choices, terminal.env)
  if (wrong !== null) return wrongUse(wrong, terminal)
  const opened = await openedLog(path, choices, terminal)
  if (!opened.ok)
    return opened.isWrongUse ? wrongUse(opened.message, terminal) : failed(opened.message, terminal)
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
  readonly mode: CompactMode
}

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
        return isYes(`Compact ${shownPath(log.path)}?`, terminal)
      }),
    }),
  )
  if ('code' in outcome) return outcome.code
  if (!outcome.ok) return refusedBy(outcome, terminal)
  const { report, written } = outcome
  const code = await write(written, work)
  if (code !== DONE) return code
  const screen = screenFor(terminal)
  if (choices.json === true) {
    if (report.fallbackReason !== null) terminal.warn(`tidemark: ${fallbackWords(report)}\n`)
    terminal.write(`${JSON.stringify(jsonOf(report, mode))}\n`)
  } else {
    if (!isShown) terminal.write(compactPage(report, screen, choices))
    terminal.write(footer(report, { mode, screen }))
  }
  return DONE
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

async function undone(work: Work, id: string): Promise<number> {
  const { log, choices, terminal, mode } = work
  const outcome = await atWork(work, (options) =>
    undoLog(log, id, {
      ...options,
      force: choices.force === true,
      ...asking(work, ({ kind }) =>
        isYes(`Take the ${kind === 'compact' ? 'compaction' : 'clearing'} ${id} back?`, terminal),
      ),
    }),
  )
  if ('code' in outcome) return outcome.code
  if (!outcome.ok) return refusedBy(outcome, terminal)
  const code = await write(outcome.written, work)
  if (code !== DONE) return code
  const { report } = outcome
  if (choices.json === true) terminal.write(`${JSON.stringify(undoJson(report, mode))}\n`)
  else terminal.write(undoPage(report, { mode, screen: screenFor(terminal) }))
  return DONE
}

type Common = Pick<CompactLogOptions, 'model' | 'window' | 'journal' | 'transcript' | 'onEvent' | 'signal'>

/** With the log's own journal where it is written, let go of at the end; with a line that says how far it has come. */
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

async function isYes(question: string, terminal: Terminal): Promise<boolean> {
  const answer = await terminal.ask?.(`${question} [y/N] `)
  return answer != null && /^y(es)?$/i.test(answer.trim())
}

async function write(written: WrittenLog, { mode, choices, terminal }: Work): Promise<number> {
  if (mode.kind !== 'copy') return DONE
  if (terminal.interrupted?.aborted === true) return INTERRUPTED
  const outcome = await writeSession(mode.path, written, { force: choices.force === true })
  return outcome.ok ? DONE : failed(outcome.message, terminal)
}

// Where a compaction goes: into the session's own log, into a copy of it, or nowhere.

export type CompactMode =
  | { readonly ok: true; readonly kind: 'in-place' | 'copy'; readonly path: string }
  /** `why` it is one, where that was not asked for. */
  | { readonly ok: true; readonly kind: 'dry'; readonly why: string | null }

export type ModeRefusal = { readonly ok: false; readonly message: string }

export async function modeFor(
  log: ReadLog,
  choices: CompactChoices,
  terminal: Terminal,
): Promise<CompactMode | ModeRefusal> {
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
      message: `${shownPath(log.path)} would be written, and nobody is there to be asked: say --yes, --dry-run, or -o for a copy.`,
    }
  return { ok: true, kind: 'in-place', path: log.path }
}

function onlyRead({ format, path }: ReadLog, { at }: CompactChoices): string | null {
  if (format !== 'tidemark') return 'the log of another program is only read'
  if (isSample(path)) return 'the sample is only read'
  if (/\.gz$/i.test(path)) return 'a packed log is only read'
  return at === undefined ? null : 'what was said since then stays in the log'
}

function isSample(path: string): boolean {
  return existsSync(path) && realpathSync(path) === realpathSync(SAMPLE_PATH)
}

// How `tidemark compact` ends where nothing was done: one line, and the code that says why.

const FAILED = 1
const WRONG_USE = 2
/** As a shell reports a process that Ctrl-C ended. */
export const INTERRUPTED = 130

export function refusedBy(refusal: CompactLogRefusal, terminal: Terminal): number {
  if (refusal.reason === 'aborted' || terminal.interrupted?.aborted === true) {
    terminal.warn('tidemark: called off; nothing was changed.\n')
    return INTERRUPTED
  }
  if (refusal.reason === 'declined') {
    terminal.warn('Nothing was changed.\n')
    return FAILED
  }
  return refusal.reason === 'bad-record'
    ? wrongUse(refusal.message, terminal)
    : failed(refusal.message, terminal)
}

export function failed(message: string, terminal: Terminal): number {
  terminal.warn(`tidemark: ${shown(message)}\n`)
  return FAILED
}

export function wrongUse(message: string, terminal: Terminal): number {
  terminal.warn(`tidemark: ${shown(message)} See tidemark compact --help.\n`)
  return WRONG_USE
}

// The model that writes a summary, reached with the person's own key.

export function summariserFor(
  { model, window, baseUrl }: CompactChoices,
  env: Terminal['env'],
): (sessionModel: string) => ModelChoice {
  const url = baseUrl ?? env.ANTHROPIC_BASE_URL
  const { ANTHROPIC_API_KEY: apiKey, ANTHROPIC_AUTH_TOKEN: authToken } = env
  const credentials = isSet(apiKey) ? { apiKey } : isSet(authToken) ? { authToken } : {}
  return (sessionModel) =>
    anthropic(model ?? sessionModel, {
      ...credentials,
      ...(isSet(url) ? { baseUrl: url } : {}),
      ...(window === undefined ? {} : { window }),
    })
}

function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== ''
}

// What `tidemark compact --json` prints.

/** The fields of the contract first. */
export function jsonOf(report: CompactionReport, mode: CompactMode): object {
  const { tokensBefore, tokensAfter, summary, ledger, messages, receipt, trace, ...rest } = report
  const written = mode.kind === 'dry' ? null : mode.path
  return { tokensBefore, tokensAfter, summary, ledger, messages, receipt, trace, ...rest, written }
}

export function undoJson(
  { id, kind, tokensBefore, tokensAfter, messages, file }: UndoReport,
  mode: CompactMode,
): object {
  const written = mode.kind === 'dry' ? null : mode.path
  return { undone: id, kind, tokensBefore, tokensAfter, messages, file, written }
}
