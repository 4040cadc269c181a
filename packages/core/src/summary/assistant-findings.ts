/**
 * What the model itself wrote in a session: its conclusions, decisions and questions. Finds the texts, and whether the
 * latest request was already carried out.
 */
import { isTextBlock, toBlocks } from '../log/block.ts'
import { isSyntheticError, type KnownRecord } from '../log/record.ts'
import type { ToolRun } from '../log/tool-runs.ts'
import { removeCodeBlocks } from './code-blocks.ts'

/** A text of the model, without credentials. */
export interface AssistantText {
  readonly uuid: string
  /** Index of the record in the history. */
  readonly place: number
  readonly text: string
}

/** Collects the texts of the model, oldest first. A text that the model repeats is listed once, where it was written last. */
export function collectAssistantTexts(
  history: readonly KnownRecord[],
  clean: (text: string) => string,
): readonly AssistantText[] {
  const texts = new Map<string, AssistantText>()
  history.forEach((record, place) => {
    for (const text of readAssistantTexts(record, clean)) {
      texts.delete(text)
      texts.set(text, { uuid: record.uuid, place, text })
    }
  })
  return [...texts.values()]
}

/** Returns the texts that the model wrote in a record, without empty ones. */
export function readAssistantTexts(record: KnownRecord, clean: (text: string) => string): readonly string[] {
  if (record.type !== 'assistant' || isSyntheticError(record) || record.isCompactSummary === true) return []
  return toBlocks(record.message.content).flatMap((block) => {
    const text = isTextBlock(block) ? clean(block.text.trim()) : ''
    return text === '' ? [] : [text]
  })
}

/** A user message; `place` is the index of its record in the history. */
interface PlacedMessage {
  readonly place: number
  readonly text: string
}

/** Words that may precede the verb of a request: "ok, now please push it". */
const REQUEST_START =
  /^(?:(?:ok(?:ay)?|yes|now|then|and|so|please|can you|could you|go ahead and|great|good|thanks?)\b[\s,.:!-]*)*/i
const SHORT_REQUEST_CHARACTERS = 120
/** In "run the tests", the verb is not the one that a command names. */
const GENERAL_VERB = /^(?:run|do|make|let's|let us|try|rerun|re-run)\s+(?:(?:the|a|an|it|all|full)\s+)*/i

/** Words that add nothing to the verb of a request: "commit all of it now, please". */
const FILLER_WORDS: ReadonlySet<string> = new Set(
  listWords(
    'a again all and any at changes code everything files for from full in it me my now of on once our please so that the them then these this those to us we whole with work your',
  ),
)
const QUESTION_END = /[?？؟]["'”’)*_`\s]*$/
const LIST_ITEM = /^\s*(?:[-*+]|\(?\w{1,2}[.)])\s/

/**
 * Tells how the latest request of the user stands. `done`: the model has ended its turn with a text that asks nothing,
 * and a successful command is what the request asked for, as in "commit this" and `git commit`. `replied`: it has ended
 * its turn otherwise. A call: that command, while the turn goes on. Otherwise null: in progress.
 */
export function findRequestOutcome(
  last: PlacedMessage,
  texts: readonly AssistantText[],
  runs: readonly ToolRun[],
): 'done' | 'replied' | ToolRun | null {
  const latest = texts.at(-1)
  const answer = latest !== undefined && latest.place > last.place ? latest : null
  const isEnded = answer !== null && (runs.at(-1)?.callIndex ?? -1) < answer.place
  const isAsking = answer !== null && endsInQuestion(answer.text)
  const call = isAsking ? null : findRequestedCall(last, runs)
  if (isEnded) return call !== null ? 'done' : 'replied'
  return call
}

/** Checks whether a text ends in a question; a list of answers to choose from may follow the question. */
function endsInQuestion(text: string): boolean {
  const lines = removeCodeBlocks(text)
    .split('\n')
    .filter((line) => line.trim() !== '')
  const ends = [lines.at(-1), lines.findLast((line) => !LIST_ITEM.test(line))]
  return ends.some((line) => line !== undefined && QUESTION_END.test(line))
}

/** Finds the command that a short request asked for; null if it was not run, or failed when it was run last. */
function findRequestedCall(last: PlacedMessage, runs: readonly ToolRun[]): ToolRun | null {
  if (last.text.trim().length > SHORT_REQUEST_CHARACTERS) return null
  const said = last.text.trim().replace(REQUEST_START, '').replace(GENERAL_VERB, '')
  const [verb, ...rest] = listWords(said)
  if (verb === undefined || verb.length < 3) return null
  const details = rest.filter((word) => !FILLER_WORDS.has(word))
  const call = runs.findLast(
    ({ command, callIndex }) => command !== null && callIndex > last.place && runsVerb(command, verb),
  )
  if (call === undefined || call.failed || call.resultIndex === null) return null
  // "Test the new parser" is not done by `npm test`: every detail of the request must be in the command.
  const given = new Set(listWords(call.command ?? ''))
  return details.every((word) => given.has(word)) ? call : null
}

/** Lists the words of a text in lower case, without the "s" of a plural. */
function listWords(text: string): readonly string[] {
  return (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).map((word) => word.replace(/s$/, ''))
}

/** Returns true if one of the commands in a shell line is run with the verb: `git commit -m x` runs "commit". */
function runsVerb(command: string, verb: string): boolean {
  const words = command
    .split(/&&|\|\||[;|\n]/)
    .flatMap((part) => part.trim().split(/\s+/).slice(0, 3))
    .map((word) => word.toLowerCase().replace(/s$/, ''))
  return words.includes(verb)
}
