/** The compactions and clearings of a session, in order. */
import type { ClearingFound, CompactionFound, SessionReport } from 'tidemark'
import { count, tokens, whole } from '../figures.ts'
import { heading } from '../layout.ts'
import type { Screen } from '../screen.ts'
import { cutEnd, left, right } from '../width.ts'
import type { PlotMark } from './plot.ts'
import { shown } from './shown.ts'

export function marksOf({ compactions, clearings }: SessionReport): readonly PlotMark[] {
  return [
    ...compactions.map(({ afterCall }) => ({ afterCall, kind: 'compacted' as const })),
    ...clearings.map(({ afterCall }) => ({ afterCall, kind: 'cleared' as const })),
  ]
}

export function acts(report: SessionReport, screen: Screen): readonly string[] {
  const { compactions, clearings } = report
  const rows = [
    ...compactions.map((act) => ({ act, text: compactionLine(act, screen) })),
    ...clearings.map((act) => ({ act, text: clearingLine(act, screen) })),
  ].sort((one, other) => one.act.afterCall - other.act.afterCall || earlier(one.act.at, other.act.at))
  if (rows.length === 0) return []
  return [heading('Rewrites', told(report), screen), ...rows.map(({ text }) => text)]
}

function earlier(one: string | null, other: string | null): number {
  return (one ?? '') < (other ?? '') ? -1 : 1
}

function told({ compactions, clearings }: SessionReport): string {
  const parts = [
    ...(compactions.length > 0 ? [count(compactions.length, 'compaction')] : []),
    ...(clearings.length > 0 ? [count(clearings.length, 'clearing')] : []),
  ]
  return parts.join(', ')
}

function compactionLine(act: CompactionFound, screen: Screen): string {
  const how = act.trigger === null ? 'compacted' : `compacted (${shown(act.trigger)})`
  const sizes = `${size(act.preTokens)} ${screen.symbols.arrow} ${size(act.postTokens)}`
  return actLine({ mark: screen.symbols.compacted, how, sizes }, act, screen)
}

/** What a host counts before a clearing is not always the whole context; what it saved is plain. */
function clearingLine(act: ClearingFound, screen: Screen): string {
  const how = act.results > 0 ? `cleared ${count(act.results, 'result')}` : 'cleared'
  const sizes = `${size(act.savedTokens)} saved`
  return actLine({ mark: screen.symbols.cleared, how, sizes }, act, screen)
}

interface ActWords {
  readonly mark: string
  readonly how: string
  readonly sizes: string
}

interface Place {
  readonly afterCall: number
  readonly at: string | null
}

const HOW = 20
const SIZES = 16

function actLine({ mark, how, sizes }: ActWords, at: Place, screen: Screen): string {
  const { symbols, colors, columns } = screen
  const where = cutEnd(place(at, screen), columns - HOW - SIZES - 6, symbols.more)
  const words = left(cutEnd(how, HOW, symbols.more), HOW)
  return `  ${colors.yellow(mark)} ${words}${right(sizes, SIZES)}  ${colors.dim(where)}`
}

function size(amount: number | null): string {
  return amount === null ? '?' : tokens(amount)
}

function place({ afterCall, at }: Place, { moments }: Screen): string {
  return `after call ${whole(afterCall)}${at === null ? '' : `, ${moments.full(at)}`}`
}
