/**
 * What the model itself wrote in a session: its conclusions, decisions and questions. Finds the texts, and whether the
 * latest request was already carried out.
 */
import { isTextBlock, toBlocks } from '../log/block.ts'
import { isSyntheticError, type KnownRecord } from '../log/record.ts'
import type { ToolRun } from '../log/tool-calls.ts'

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
    if (record.type !== 'assistant' || isSyntheticError(record) || record.isCompactSummary === true) return
    for (const block of toBlocks(record.message.content)) {
      const text = isTextBlock(block) ? clean(block.text.trim()) : ''
      if (text === '') continue
      texts.delete(text)
      texts.set(text, { uuid: record.uuid, place, text })
    }
  })
  return [...texts.values()]
}

/** A user message; `place` is the index of its record in the history. */
interface PlacedMessage {
  readonly place: number
  readonly text: string
}

const CODE_BLOCK = /^[ \t]*(`{3,}|~{3,})[^\n]*\n[\s\S]*?(?:^[ \t]*\1[ \t]*$|(?![\s\S]))/gm

/** Returns a text without its code blocks. */
export function removeCodeBlocks(text: string): string {
  return text
    .replace(CODE_BLOCK, '')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

/** Words that may precede the verb of a request: "ok, now please push it". */
const REQUEST_START =
  /^(?:(?:ok(?:ay)?|yes|now|then|and|so|please|can you|could you|go ahead and|great|good|thanks?)\b[\s,.:!-]*)*/i
const SHORT_REQUEST_CHARACTERS = 120
/** In "run the tests", the verb is not the one that a command names. */
const GENERAL_VERB = /^(?:run|do|make|let's|let us|try|rerun|re-run)\s+(?:(?:the|a|an|it|all|full)\s+)*/i

/**
 * Tells how the latest request of the user stands. `done`: the model has ended its turn with a text, after tool calls
 * that succeeded. `replied`: it has ended its turn without any. A call: the successful command that the request asked
 * for, as in "commit this" and `git commit`. Otherwise null: still in work.
 */
export function findRequestOutcome(
  last: PlacedMessage,
  texts: readonly AssistantText[],
  runs: readonly ToolRun[],
): 'done' | 'replied' | ToolRun | null {
  const answer = texts.at(-1)
  if (answer !== undefined && answer.place > last.place && (runs.at(-1)?.callIndex ?? -1) < answer.place)
    return runs.some(({ failed, callIndex }) => !failed && callIndex > last.place) ? 'done' : 'replied'
  if (last.text.trim().length > SHORT_REQUEST_CHARACTERS) return null
  const said = last.text.trim().replace(REQUEST_START, '').replace(GENERAL_VERB, '')
  const verb = /^[a-z]{3,}/i.exec(said)?.[0].toLowerCase().replace(/s$/, '')
  if (verb === undefined) return null
  return (
    runs.findLast(
      ({ command, failed, callIndex, resultIndex }) =>
        command !== null &&
        !failed &&
        resultIndex !== null &&
        callIndex > last.place &&
        runsVerb(command, verb),
    ) ?? null
  )
}

/** Returns true if one of the commands in a shell line is run with the verb: `git commit -m x` runs "commit". */
function runsVerb(command: string, verb: string): boolean {
  const words = command
    .split(/&&|\|\||[;|\n]/)
    .flatMap((part) => part.trim().split(/\s+/).slice(0, 3))
    .map((word) => word.toLowerCase().replace(/s$/, ''))
  return words.includes(verb)
}
