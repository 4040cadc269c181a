/** What `tidemark compact --json` prints. */
import type { CompactionReport, UndoReport } from 'tidemark'
import type { CompactMode } from './compact-mode.ts'

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
