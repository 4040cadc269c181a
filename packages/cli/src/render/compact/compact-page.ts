/** A compaction on one page: plan, draft, receipt; and what became of it. */
import type { CompactionPreview, CompactionReport } from 'tidemark'
import { shownPath } from '../inspect/shown.ts'
import { stacked } from '../layout.ts'
import type { Screen } from '../screen.ts'
import { wrap } from '../wrap.ts'
import { draftLines } from './draft.ts'
import { planLines } from './plan.ts'
import { receiptLines } from './receipt.ts'

export function compactPage(
  preview: CompactionPreview,
  screen: Screen,
  { full = false }: { readonly full?: boolean },
): string {
  const blocks = [
    planLines(preview, screen),
    draftLines(preview, screen, full),
    receiptLines(preview, screen),
  ]
  return `${stacked(blocks).join('\n')}\n`
}

/** Where it went. */
export type Went =
  | { readonly kind: 'in-place' | 'copy'; readonly path: string }
  | { readonly kind: 'dry'; readonly why: string | null }

export interface FooterSetting {
  readonly mode: Went
  readonly screen: Screen
}

export function footer({ id }: CompactionReport, { mode, screen }: FooterSetting): string {
  const words =
    mode.kind === 'dry'
      ? dryWords(mode.why)
      : `Written to ${shownPath(mode.path)}. tidemark compact ${shownPath(mode.path)} --undo ${id} takes it back.`
  return `\n${wrap(words, screen.columns).map(screen.colors.bold).join('\n')}\n`
}

export function dryWords(why: string | null): string {
  const because = why === null ? '' : `: ${why}`
  return `Dry run${because}. Nothing was written; -o FILE writes a session that goes on from here.`
}
