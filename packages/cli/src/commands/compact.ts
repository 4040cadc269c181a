/** `tidemark compact`: plan, draft and receipt of a compaction; written where the person says so, and taken back. */
import { performance } from 'node:perf_hooks'
import { TidemarkError } from '@tidemark/core'
import {
  type CompactLogOptions,
  compactLog,
  createOneLogJournal,
  type ReadLog,
  undoLog,
  type WrittenLog,
  writeSession,
} from 'tidemark'
import { createProgressLine } from '../progress.ts'
import { compactPage, footer } from '../render/compact/compact-page.ts'
import { fallbackWords } from '../render/compact/draft.ts'
import { progressText } from '../render/compact/progress-text.ts'
import { undoPage } from '../render/compact/undo-page.ts'
import { shownPath } from '../render/inspect/shown.ts'
import { screenFor } from '../render/screen.ts'
import type { Terminal } from '../terminal.ts'
import { type CompactChoices, wrongChoice } from './compact-choices.ts'
import { jsonOf, undoJson } from './compact-json.ts'
import { type CompactMode, modeFor } from './compact-mode.ts'
import { failed, INTERRUPTED, refusedBy, wrongUse } from './compact-refusals.ts'
import { summariserFor } from './compact-summariser.ts'
import { signalOf } from './found-sessions.ts'
import { openedLog } from './opened-log.ts'

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
