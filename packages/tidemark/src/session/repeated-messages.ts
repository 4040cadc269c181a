/**
 * Detects a caller that appends its whole message list again, which would double the conversation. Loops without a session send
 * the whole list with every request. A prompt may repeat ("yes"), but a tool call or a whole exchange does not.
 */
import { TidemarkError } from '@tidemark/core/errors'
import { isTextBlock, isToolUse } from '@tidemark/core/log/block'
import type { SessionLog } from '@tidemark/core/log/session-log'
import { sliceWholeCharacters } from '@tidemark/core/text/truncate-text'
import { type ConversationPart, isSamePart, listInputParts, listLoggedParts } from './conversation-parts.ts'
import type { MessageInput } from './messages.ts'

/** A part of the log that is repeated by the appended messages together with the messages just before them. */
interface Repetition {
  /** Index of the first repeated block of the appended messages. */
  readonly first: number
  /** Number of repeated messages. */
  readonly messages: number
  /** How many of the repeated messages are appended now. */
  readonly appended: number
  /** True if the repeated part begins with the first or second message of the log. */
  readonly isFromStart: boolean
  /** True if the log has a response with the same id. */
  readonly isSameResponse: boolean
}

/**
 * Throws `bad-record` if the messages repeat messages of the log. `isAwaited`: a response to `next` is expected. A
 * single message is then taken for it, even if it equals an earlier one.
 */
export function checkNotRepeated(
  session: string,
  log: SessionLog,
  inputs: readonly MessageInput[],
  isAwaited: boolean,
): void {
  if (isAwaited && inputs.length === 1) return
  if (!inputs.some(({ role }) => role === 'assistant')) return
  const given = listInputParts(inputs)
  const starts = given.flatMap((part, index) =>
    part.role === 'assistant' && given[index - 1]?.message !== part.message ? [index] : [],
  )
  const suspects = starts.filter((index) => mayBeLogged(log, given, index))
  if (suspects.length === 0) return
  const known = listLoggedParts(log.records)
  for (const index of suspects) {
    const repetition = findRepetition(known, given, index, isAwaited)
    if (repetition !== null) throw createReplayError(session, given, repetition)
  }
}

/**
 * Returns false if the log cannot have the response at `index`: it has no response with that id, or not all of its tool
 * calls. The log need not be searched then.
 */
function mayBeLogged(log: SessionLog, given: readonly ConversationPart[], index: number): boolean {
  const { id, message } = given[index] as ConversationPart
  if (id !== null) return log.responseStarts.get(id) !== undefined
  return given.every(
    (part) =>
      part.message !== message || !isToolUse(part.block) || log.callRecords.get(part.block.id) !== undefined,
  )
}

function createReplayError(
  session: string,
  given: readonly ConversationPart[],
  repetition: Repetition,
): TidemarkError {
  const { first, appended } = repetition
  const { role, block } = given[first] as ConversationPart
  const shown = isTextBlock(block) ? block.text : isToolUse(block) ? `${block.name} ${block.id}` : block.type
  const more = appended === 1 ? '' : `, and the ${appended - 1} after it`
  return new TidemarkError(
    'bad-record',
    `append: the session ${session} has this ${role} message already${more}: ${JSON.stringify(sliceWholeCharacters(shown, 0, 80))}. Append only what is new; the session keeps the conversation.`,
    { details: { repeated: appended } },
  )
}

/** Finds the part of the log that the response at `index` and its neighbours repeat; null if the response may be new. */
function findRepetition(
  known: readonly ConversationPart[],
  given: readonly ConversationPart[],
  index: number,
  isAwaited: boolean,
): Repetition | null {
  const all = [...known, ...given]
  const at = known.length + index
  const response = given.filter(({ message }) => message === given[index]?.message)
  for (let start = 0; start < known.length; start += 1) {
    if (!isWholeMessage(known, start, response)) continue
    let from = 0
    while (start - from > 0 && isSamePart(known[start - from - 1], all[at - from - 1])) from += 1
    let to = response.length
    while (start + to < known.length && isSamePart(known[start + to], given[index + to])) to += 1
    const first = Math.max(0, index - from)
    const begin = known[start - from]?.message ?? 0
    const repetition: Repetition = {
      first,
      messages: (known[start + to - 1]?.message ?? 0) - begin + 1,
      appended: (given[index + to - 1]?.message ?? 0) - (given[first]?.message ?? 0) + 1,
      isFromStart: begin <= 1,
      isSameResponse: response[0]?.id !== null && response[0]?.id === known[start]?.id,
    }
    if (isReplay(repetition, response, isAwaited, all[at - 1]?.role)) return repetition
  }
  return null
}

/** Checks whether `response` is the whole message of the log that begins at `start`. */
function isWholeMessage(
  known: readonly ConversationPart[],
  start: number,
  response: readonly ConversationPart[],
): boolean {
  const { message } = known[start] as ConversationPart
  return (
    known[start - 1]?.message !== message &&
    known[start + response.length]?.message !== message &&
    response.every((part, offset) => isSamePart(part, known[start + offset]))
  )
}

/** A shorter answer, such as "Done.", may follow the same prompt twice without being a repetition. */
const LONG_ANSWER = 80

function isReplay(
  { messages, appended, isFromStart, isSameResponse }: Repetition,
  response: readonly ConversationPart[],
  isAwaited: boolean,
  roleBefore: ConversationPart['role'] | undefined,
): boolean {
  // Appending a response with the same id again is harmless: it is stored once. A response with another id is new.
  if (isSameResponse) return appended > 1
  if (response[0]?.id !== null) return false
  const hasCall = response.some(({ block }) => isToolUse(block))
  if (appended > 1 && (isFromStart || hasCall)) return true
  if (isAwaited) return false
  if (hasCall || roleBefore === 'assistant') return true
  const length = response.reduce((sum, { block }) => sum + (isTextBlock(block) ? block.text.length : 0), 0)
  return isFromStart && messages > (length >= LONG_ANSWER ? 1 : 2)
}
