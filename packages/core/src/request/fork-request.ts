/**
 * Builds a cache-sharing fork: a side request that reads the cached prefix of another API request, its parent. A fork
 * copies everything that the parent actually sent and adds its own messages. Overriding a field is refused, because it
 * could change the cache key.
 */
import { joinMessages, listTracedMessages, type TracedMessage } from '../context/flatten-context.ts'
import type { ApiMessage } from '../context/payload.ts'
import { AppendList } from '../log/persistent-collections.ts'
import type { TokenUsage } from '../log/reply-report.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import { replaceLoneSurrogates } from '../text/truncate-text.ts'
import { listBilledModelRuns } from '../tokens/usage.ts'
import {
  countMessages,
  findFirstChangedBlock,
  findMessageAt,
  indexBlocks,
  type MessageList,
  toMessageBlocks,
} from './block-index.ts'
import {
  type AssembledRequest,
  stripMarkers,
  stripMessageMarkers,
  toUnmarkedMessages,
} from './build-request.ts'
import { type PlannedMarker, toMarkerTtl } from './cache-markers.ts'

/** A new message that the fork adds, or a message of the conversation together with the log records it comes from. */
export type ForkMessage = ApiMessage | TracedMessage

/**
 * Creates a fork: all messages of `sent`, followed by those in `added`. `sent` must be the request that was actually sent, not
 * the next one. The fork declares the same tools as `sent`, but must not use them: the host must deny the calls, because setting
 * `tool_choice` would miss the cache. `ttl`: cache lifetime for the caller of the fork (`chooseRequestTtl`); null if caching is off.
 */
export function createForkRequest(
  sent: AssembledRequest,
  added: readonly ForkMessage[],
  { profile, ttl }: { readonly profile: ProviderProfile; readonly ttl: string | null },
): AssembledRequest {
  const own = added.map(toFlatMessage)
  const messages = withAddedMessages(
    sent.messages,
    sent.ttl === null ? own : own.map(stripMessageMarkers),
    profile,
  )
  const blockIndex = indexBlocks(messages, profile.cache.collapsesToolRuns, sent.blockIndex)
  const markers = ttl === null ? [] : selectReadMarker(sent, profile, ttl)
  return { ...sent, messages, blockIndex, markers, ttl }
}

/**
 * Returns one cache marker, at the position of the parent's last marker. With it the fork reads the cached prefix and
 * writes nothing to the cache.
 */
function selectReadMarker(
  { markers }: AssembledRequest,
  { cache, spelling }: ProviderProfile,
  ttl: string,
): readonly PlannedMarker[] {
  const last = markers.at(-1)
  if (last === undefined) return []
  const { kind, place } = last
  const asked = toMarkerTtl(ttl, cache)
  return [{ kind, place, ttl: asked, control: spelling.spellMarker({ ttl: asked }) }]
}

/**
 * Appends messages to those of the parent. If the provider refuses consecutive messages of the same role, the first
 * added message is merged into the parent's last message.
 */
function withAddedMessages(
  parent: MessageList,
  added: readonly TracedMessage[],
  profile: ProviderProfile,
): MessageList {
  const [first, ...rest] = added
  const last = parent.tail.at(-1)
  const joins = profile.roles.consecutive === 'refused' && last?.message.role === first?.message.role
  if (first === undefined || last === undefined || !joins)
    return { ...parent, tail: [...parent.tail, ...added] }
  return { ...parent, tail: [...parent.tail.slice(0, -1), joinMessages(last, first), ...rest] }
}

/**
 * Returns the part of the request that comes from `records`: messages and markers up to the last block of these
 * records. Returns null if that part is empty, or if a block of another record comes before one of theirs, so that the
 * part is no prefix of the request.
 */
export function cutRequestToRecords(
  sent: AssembledRequest,
  records: ReadonlySet<string>,
  profile: ProviderProfile,
): AssembledRequest | null {
  const messages = listTracedMessages(sent.messages)
  const isOther = (origin: string): boolean => !records.has(origin)
  const end = messages.findIndex(({ origins }) => origins.some(isOther))
  const last = messages[end]
  if (last === undefined) return sent
  const blocks = last.origins.findIndex(isOther)
  const behind = [last.origins.slice(blocks), ...messages.slice(end + 1).map(({ origins }) => origins)]
  if (end + blocks === 0 || behind.flat().some((origin) => records.has(origin))) return null
  const tail = [...messages.slice(0, end), ...(blocks === 0 ? [] : [takeFirstBlocks(last, blocks)])]
  const list = { frozen: AppendList.of<TracedMessage>(), tail }
  const isLeft = ({ place }: PlannedMarker): boolean =>
    place.zone !== 'messages' || place.index < end || (place.index === end && place.block < blocks)
  return {
    ...sent,
    messages: list,
    blockIndex: indexBlocks(list, profile.cache.collapsesToolRuns),
    markers: sent.markers.filter(isLeft),
  }
}

function takeFirstBlocks({ raw = new Map(), ...message }: TracedMessage, count: number): TracedMessage {
  const content = toMessageBlocks(message).slice(0, count)
  const kept = new Map([...raw].filter(([at]) => at < count))
  const first = { message: { ...message.message, content }, origins: message.origins.slice(0, count) }
  return kept.size > 0 ? { ...first, raw: kept } : first
}

function toFlatMessage(message: ForkMessage): TracedMessage {
  return isFlatMessage(message) ? message : { message: replaceLoneSurrogates(message), origins: [] }
}

function isFlatMessage(message: ForkMessage): message is TracedMessage {
  return 'origins' in message && 'message' in message
}

/** Returns the share of a model call's prompt that was read from the cache, from 0 to 1; null for an empty prompt. */
export function computeCacheReadShare(usage: TokenUsage): number | null {
  const parts = listBilledModelRuns(usage).map(({ tokens }) => tokens)
  const read = parts.reduce((sum, { cacheRead }) => sum + cacheRead, 0)
  const all = parts.reduce(
    (sum, { cacheRead, input, writeShort, writeLong }) => sum + cacheRead + input + writeShort + writeLong,
    0,
  )
  return all === 0 ? null : read / all
}

/**
 * Returns the messages added to the conversation since `sent`, which a fork must add to include the whole conversation.
 * Null if the messages in `sent` have changed since, so that the cached prefix cannot be read.
 */
export function listMessagesAfterRequest(
  sent: AssembledRequest,
  said: MessageList,
): readonly TracedMessage[] | null {
  const made = toUnmarkedMessages(sent)
  const now = made === undefined ? said : stripMarkers(said, made)
  if (findFirstChangedBlock(sent.messages, now) !== null) return null
  const last = countMessages(sent.messages) - 1
  const since: TracedMessage[] = listAddedBlocks(findMessageAt(sent.messages, last), findMessageAt(now, last))
  for (let index = last + 1; index < countMessages(now); index += 1) {
    const message = findMessageAt(now, index)
    if (message !== undefined) since.push(message)
  }
  return since
}

/** Returns a message with the blocks that were added to the last message since it was sent; empty if none were. */
function listAddedBlocks(sent: TracedMessage | undefined, now: TracedMessage | undefined): TracedMessage[] {
  if (sent === undefined || now === undefined) return []
  const from = toMessageBlocks(sent).length
  const blocks = toMessageBlocks(now).slice(from)
  if (blocks.length === 0) return []
  const raw = new Map(
    [...(now.raw ?? [])].filter(([at]) => at >= from).map(([at, text]) => [at - from, text]),
  )
  const message = { ...now.message, content: blocks }
  return [{ message, origins: now.origins.slice(from), ...(raw.size > 0 ? { raw } : {}) }]
}
