/**
 * The request for the provider's own summary: what was sent last, as far as the summary goes, with the task in its
 * field. It carries no edits of the context, which the provider refuses beside it.
 */
import { isObject } from '../../conversation/json.ts'
import { List } from '../../conversation/list.ts'
import type { AssembledRequest } from '../../prompt/assemble.ts'
import { countMessages } from '../../prompt/count.ts'
import type { BlockAsk } from '../../summarize/ask.ts'
import type { FlatMessage } from '../../view/draft.ts'
import { flatMessagesOf } from '../../view/flatten.ts'
import type { SessionState } from '../session-state.ts'

/** Null where nothing was sent yet, or the record is nowhere among the messages. */
export function blockRequest({ sent, flat }: SessionState, ask: BlockAsk): AssembledRequest | null {
  if (sent === null) return null
  const messages = flatMessagesOf(flat)
  const end = messages.findLastIndex(({ origins }) => origins.includes(ask.through))
  if (end === -1) return null
  const list = { frozen: List.of<FlatMessage>(), tail: messages.slice(0, end + 1) }
  const { parameters } = sent.front
  return {
    ...sent,
    front: { ...sent.front, parameters: withBeta(parameters, ask.beta) },
    messages: list,
    counted: countMessages(list, sent.counted.collapses),
    markers: sent.markers.filter(({ place }) => place.zone !== 'messages' || place.index <= end),
    extra: { compaction: { type: 'summarize', instructions: ask.instructions } },
  }
}

function withBeta(parameters: AssembledRequest['front']['parameters'], beta: string | null) {
  const { context_management: _, ...rest } = parameters
  if (beta === null || !isObject(rest)) return rest
  const betas = Array.isArray(rest.betas) ? rest.betas : []
  return betas.includes(beta) ? rest : { ...rest, betas: [...betas, beta] }
}
