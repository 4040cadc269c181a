/** What the person said, message by message: kept word for word, since it is what keeps intent from drifting. */
import { blocksOf, isText } from '../conversation/block.ts'
import type { KnownRecord } from '../conversation/record.ts'
import { typedText } from '../conversation/typed-text.ts'
import type { Estimator } from '../measure/estimate.ts'
import { bothEnds } from './cut-text.ts'

export interface PersonMessage {
  readonly uuid: string
  readonly place: number
  /** Without secrets, otherwise letter for letter. */
  readonly text: string
  /** Said after the person had stopped the model: a change of course, in whatever language. */
  readonly isCorrection: boolean
}

const STOPPED = /^\s*\[Request interrupted/

export function personMessagesOf(
  history: readonly KnownRecord[],
  clean: (text: string) => string,
): readonly PersonMessage[] {
  const messages: PersonMessage[] = []
  let isCorrection = false
  history.forEach((record, place) => {
    const typed = typedText(record)
    if (typed !== null) messages.push({ uuid: record.uuid, place, text: clean(typed), isCorrection })
    if (typed !== null || record.type === 'assistant') isCorrection = false
    if (isStop(record)) isCorrection = true
  })
  return messages
}

function isStop(record: KnownRecord): boolean {
  if (record.type !== 'user' || record.isMeta === true) return false
  return blocksOf(record.message.content).some((block) => isText(block) && STOPPED.test(block.text))
}

/** A message longer than this is cut in the middle; both ends stay, this many characters each. */
const LONG_MESSAGE = 4_000
const MESSAGE_END = 500

export interface MessageRules {
  /** Tokens of one message; a longer one is cut as well. */
  readonly eachTokens: number
  readonly estimate: Pick<Estimator, 'text'>
}

/** The text of a message as a summary shows it: all of it, or both ends of a long one with its id. */
export function shownText(message: PersonMessage, rules: MessageRules): string {
  return isLong(message, rules) ? bothEnds(message.text, MESSAGE_END, message.uuid) : message.text
}

/** The parts of a message that must be found in a summary: all of it, or both ends of a long one and its id. */
export function mustHold(message: PersonMessage, rules: MessageRules): readonly string[] {
  const text = message.text.trim()
  if (!isLong(message, rules) || text.length <= 2 * MESSAGE_END) return [text]
  return [text.slice(0, MESSAGE_END), text.slice(-MESSAGE_END), message.uuid]
}

function isLong({ text }: PersonMessage, { eachTokens, estimate }: MessageRules): boolean {
  return text.trim().length > LONG_MESSAGE || estimate.text(text) > eachTokens
}
