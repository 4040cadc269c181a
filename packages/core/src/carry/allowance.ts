/** What a carrier may still bring: its limit, less what it has brought. */
import type { Attachment } from '../conversation/record.ts'
import { headWithin, type Measure } from '../retrieve/fit-text.ts'
import { textOfAttachment } from '../view/attachment-text.ts'
import type { Limit, Rendering } from './carrier.ts'

export interface Fitted {
  readonly attachment: Attachment
  readonly tokens: number
}

export const NO_LIMIT: Limit = {
  each: Number.POSITIVE_INFINITY,
  total: Number.POSITIVE_INFINITY,
  count: Number.POSITIVE_INFINITY,
}

/** The attachment as it fits into `each`, cut where that is allowed; a sentence where it does not fit into what is left. */
export function fit(rendering: Rendering, { each, total }: Limit, measure: Measure): Fitted | string {
  const { attachment } = rendering
  const tokens = measure(textOfAttachment(attachment))
  const fitted = tokens <= each ? { attachment, tokens } : cut(rendering, each, measure)
  if (fitted === null) return `takes ${tokens} tokens, and one may take ${each}`
  return fitted.tokens <= total ? fitted : `takes ${fitted.tokens} tokens, and ${total} are left`
}

function cut({ attachment, cutNote }: Rendering, each: number, measure: Measure): Fitted | null {
  const { content: whole } = attachment
  if (cutNote === undefined || typeof whole !== 'string') return null
  const withHead = (head: string): Attachment => ({
    ...attachment,
    content: `${ended(head)}${cutNote(head, whole)}`,
    truncated: true,
  })
  const measured = (head: string): number => measure(textOfAttachment(withHead(head)))
  const head = headWithin(whole, each, measured)
  const tokens = measured(head)
  return head === '' || tokens > each ? null : { attachment: withHead(head), tokens }
}

function ended(head: string): string {
  return head.endsWith('\n') ? head : `${head}\n`
}
