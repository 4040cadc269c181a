/**
 * What the model itself wrote in a session: its conclusions, decisions and questions. Finds the texts, and whether the
 * latest request was already carried out.
 */
import { isTextBlock, toBlocks } from '../log/block.ts'
import { isSyntheticError, type KnownRecord } from '../log/record.ts'
import type { ToolRun } from './tool-runs.ts'

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

/** Checks whether the model has ended its turn with a text since a message: no call followed that text. */
export function hasReplied(
  { place }: { readonly place: number },
  texts: readonly Pick<AssistantText, 'place'>[],
  runs: readonly Pick<ToolRun, 'callIndex'>[],
): boolean {
  const latest = texts.at(-1)?.place ?? -1
  return latest > place && (runs.at(-1)?.callIndex ?? -1) < latest
}
