/** Renders the compactions and clearings of a session, in the order in which they happened, and who made them. */
import type { ClearingActor, LoggedClearing, LoggedCompaction } from 'tidemark/internal'
import type { SessionReport } from 'tidemark/logs'
import { formatCount, formatInteger, formatTokens } from '../render/format-numbers.ts'
import { renderHeading } from '../render/layout.ts'
import type { Screen } from '../render/screen.ts'
import { alignLeft, alignRight, cutTextEnd, sanitizeText } from '../render/text.ts'

/** Renders one row for each compaction and clearing. A rewrite that was undone stays listed and says so. */
export function renderRewrites(report: SessionReport, screen: Screen): readonly string[] {
  const { compactions, clearings } = report
  const rows = [
    ...compactions.map((act) => ({ act, text: renderCompaction(act, screen) })),
    ...clearings.map((act) => ({ act, text: renderClearing(act, screen) })),
  ].sort((one, other) => one.act.afterCall - other.act.afterCall || compareTime(one.act.at, other.act.at))
  if (rows.length === 0) return []
  const undone = [...compactions, ...clearings].filter(({ isUndone }) => isUndone).length
  const counts = [
    ...(compactions.length > 0 ? [formatCount(compactions.length, 'compaction')] : []),
    ...(clearings.length > 0 ? [formatClearings(clearings)] : []),
    ...(undone > 0 ? [`${formatInteger(undone)} undone`] : []),
  ]
  return [renderHeading('Rewrites', counts.join(', '), screen), ...rows.map(({ text }) => text)]
}

function compareTime(one: string | null, other: string | null): number {
  return Number((one ?? '') > (other ?? '')) - Number((one ?? '') < (other ?? ''))
}

function renderCompaction(act: LoggedCompaction, screen: Screen): string {
  const how = act.trigger === null ? 'compacted' : `compacted (${sanitizeText(act.trigger)})`
  const sizes = `${formatSize(act.preTokens)} ${screen.symbols.arrow} ${formatSize(act.postTokens)}`
  return renderRewrite(act, { mark: screen.symbols.compacted, how, sizes }, screen)
}

/**
 * Renders a clearing and the tokens that it saved. The context size before it is not shown, because hosts log it in
 * different ways.
 */
function renderClearing(act: LoggedClearing, screen: Screen): string {
  const how = act.results > 0 ? `cleared ${formatCount(act.results, 'result')}` : 'cleared'
  const sizes = `${formatSize(act.savedTokens)} saved`
  return renderRewrite(act, { mark: screen.symbols.cleared, how, sizes }, screen)
}

const KIND_WIDTH = 20
const SIZES_WIDTH = 16

function renderRewrite(
  { afterCall, at, isUndone }: LoggedCompaction | LoggedClearing,
  { mark, how, sizes }: { readonly mark: string; readonly how: string; readonly sizes: string },
  screen: Screen,
): string {
  const { symbols, colors, columns, time } = screen
  const place = `${isUndone ? 'undone, ' : ''}after call ${formatInteger(afterCall)}${at === null ? '' : `, ${time.full(at)}`}`
  const where = cutTextEnd(place, columns - KIND_WIDTH - SIZES_WIDTH - 6, symbols.more)
  const what = alignLeft(cutTextEnd(how, KIND_WIDTH, symbols.more), KIND_WIDTH)
  return `  ${colors.yellow(mark)} ${what}${alignRight(sizes, SIZES_WIDTH)}  ${colors.dim(where)}`
}

function formatSize(amount: number | null): string {
  return amount === null ? '?' : formatTokens(amount)
}

const ACTOR_NAMES: Readonly<Record<ClearingActor, string>> = {
  host: 'the host',
  tidemark: 'Tidemark',
  provider: 'the provider',
}

/** Counts clearings by who made them: `3 clearings by the provider`, `1 clearing by Tidemark, 2 by the provider`. */
export function formatClearings(clearings: readonly { readonly by: ClearingActor }[]): string {
  const groups = [...Map.groupBy(clearings, ({ by }) => by)]
  return groups
    .map(([by, { length }], index) =>
      index === 0
        ? `${formatCount(length, 'clearing')} by ${ACTOR_NAMES[by]}`
        : `${formatInteger(length)} by ${ACTOR_NAMES[by]}`,
    )
    .join(', ')
}
