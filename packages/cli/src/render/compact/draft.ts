/** The draft of a summary, line by line as the model will read it. */
import type { CompactionPreview } from 'tidemark'
import { count, whole } from '../figures.ts'
import { shown } from '../inspect/shown.ts'
import { heading } from '../layout.ts'
import type { Screen } from '../screen.ts'
import { wrap } from '../wrap.ts'

/** Lines that are shown unless all are asked for. */
const MOST_LINES = 40

export function draftLines(preview: CompactionPreview, screen: Screen, isFull: boolean): readonly string[] {
  const { summary } = preview
  const lines = summary.trimEnd().split('\n')
  const more = isFull ? 0 : Math.max(0, lines.length - MOST_LINES)
  const aside = `${by(preview)}, ${whole(summary.length)} characters`
  return [
    heading('Draft', aside, screen),
    ...lines.slice(0, lines.length - more).flatMap((line) => wrap(plain(line), screen.columns, '  ')),
    ...(more > 0
      ? [screen.colors.dim(`  ${screen.symbols.more} ${count(more, 'more line')}: --full shows them`)]
      : []),
    ...(preview.fallbackReason === null
      ? []
      : wrap(fallbackWords(preview), screen.columns, '  ').map(screen.colors.yellow)),
  ]
}

/** Why no model wrote a summary that one was asked for. */
export function fallbackWords({ trace, fallbackReason }: CompactionPreview): string {
  const last = trace.findLast(
    ({ tier, outcome }) => tier === 'summary' && outcome !== 'accepted' && outcome !== 'skipped',
  )
  const why = shown(last?.why ?? fallbackReason ?? '')
  return `No model wrote the summary (${why}): it was made without one.`
}

function by({ summarizer, model }: CompactionPreview): string {
  if (summarizer === 'local') return 'made without a model'
  return summarizer === 'block' ? 'by the provider' : `by ${shown(model)}`
}

/** Unable to drive the terminal, its indent kept. */
function plain(line: string): string {
  const indent = /^[ \t]*/.exec(line)?.[0] ?? ''
  return `${indent.replaceAll('\t', '  ')}${shown(line)}`
}
