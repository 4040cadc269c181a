/** A model's summary with what no model was shown in front of it, told by the local extractor. */
import { SUMMARY_HEADING } from './parse-summary.ts'

export interface LocalCover {
  /** What the local extractor made of the records. */
  readonly text: string
  /** How many they were. */
  readonly records: number
}

/** Where nothing had to be covered the summary stays as it is. */
export function composeSummary(summary: string, cover: LocalCover | null): string {
  if (cover === null || cover.records === 0) return summary
  const body = withoutHeading(summary)
  const told = withoutHeading(cover.text)
  const many = cover.records === 1 ? 'One record' : `${cover.records} records`
  return [
    SUMMARY_HEADING,
    `${many} did not fit into the summariser's window. This was taken from the log without a model:`,
    '',
    told,
    '',
    'The rest, summarised by the model:',
    '',
    body,
  ].join('\n')
}

function withoutHeading(text: string): string {
  const trimmed = text.trim()
  return trimmed.startsWith(SUMMARY_HEADING) ? trimmed.slice(SUMMARY_HEADING.length).trim() : trimmed
}
