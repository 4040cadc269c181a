/**
 * The request for the provider's own summary: what was sent last, as far as the summary goes, with the task in its
 * field. It carries no edits of the context, which the provider refuses beside it.
 */
import { isObject } from '../../conversation/json.ts'
import { List } from '../../conversation/list.ts'
import type { CacheRules } from '../../policy/profile.ts'
import type { AssembledRequest } from '../../prompt/assemble.ts'
import { countMessages, type MessageList } from '../../prompt/count.ts'
import type { PlannedMarker } from '../../prompt/markers.ts'
import { comparePlaces, lastMarkable, lastResponse } from '../../prompt/place.ts'
import type { BlockAsk } from '../../summarize/ask.ts'
import type { FlatMessage } from '../../view/draft.ts'
import { flatMessagesOf } from '../../view/flatten.ts'
import type { SessionState } from '../session-state.ts'

/** `cache` is null where it is cold. Null where nothing was sent yet, or the record is nowhere among the messages. */
export function blockRequest(
  { sent, flat }: SessionState,
  ask: BlockAsk,
  cache: CacheRules | null,
): AssembledRequest | null {
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
    markers: markersFor(sent, { list, end, cache }),
    extra: { compaction: { type: 'summarize', instructions: ask.instructions } },
  }
}

interface Cut {
  readonly list: MessageList
  /** Index of its last message. */
  readonly end: number
  readonly cache: CacheRules | null
}

/** Those that still have a place; in that of the last, one where the request ended that the newest response answered. */
function markersFor({ markers }: AssembledRequest, { list, end, cache }: Cut): readonly PlannedMarker[] {
  const left = markers.filter(({ place }) => place.zone !== 'messages' || place.index <= end)
  const last = markers.at(-1)
  const response = cache === null ? null : lastResponse(list)
  if (cache === null || last === undefined || response === null || left.length === markers.length) return left
  const place = lastMarkable(list, cache, { index: response, block: 0 })
  if (place === null || left.some((marker) => comparePlaces(marker.place, place) === 0)) return left
  return [...left, { ...last, place }].toSorted((one, other) => comparePlaces(one.place, other.place))
}

function withBeta(parameters: AssembledRequest['front']['parameters'], beta: string | null) {
  const { context_management: _, ...rest } = parameters
  if (beta === null || !isObject(rest)) return rest
  const betas = Array.isArray(rest.betas) ? rest.betas : []
  return betas.includes(beta) ? rest : { ...rest, betas: [...betas, beta] }
}
