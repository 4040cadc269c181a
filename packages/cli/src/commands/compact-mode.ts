/** Where a compaction goes: into the session's own log, into a copy of it, or nowhere. */
import { existsSync, realpathSync } from 'node:fs'
import { outProblem, type ReadLog } from 'tidemark'
import { shownPath } from '../render/inspect/shown.ts'
import { SAMPLE_PATH } from '../sample.ts'
import type { Terminal } from '../terminal.ts'
import type { CompactChoices } from './compact-choices.ts'

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
