/** What it came to that an act was taken back. */
import type { UndoReport } from 'tidemark'
import { tokens } from '../figures.ts'
import { shown, shownPath } from '../inspect/shown.ts'
import { dryWords, type FooterSetting } from './compact-page.ts'

export function undoPage(
  { id, kind, tokensBefore, tokensAfter }: UndoReport,
  { mode, screen }: FooterSetting,
): string {
  const what = kind === 'compact' ? 'compaction' : 'clearing'
  const sizes = `${tokens(tokensBefore)} ${screen.symbols.arrow} ${tokens(tokensAfter)} tokens`
  const where = mode.kind === 'dry' ? dryWords(mode.why) : `Written to ${shownPath(mode.path)}.`
  return `${screen.colors.bold(`The ${what} ${shown(id)} is taken back`)}: ${sizes}.\n${where}\n`
}
