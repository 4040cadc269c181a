/**
 * Ledger recall: of the paths and identifiers in the tool inputs of the next calls that had occurred before, the
 * share that a ledger of everything before holds. Written apart from the ledger: the names are found by rules of
 * their own, from decoded strings, and matched as whole words.
 */
import { isTextBlock, isToolResult, isToolUse, toBlocks } from '../../packages/core/src/log/block.ts'
import type { KnownRecord } from '../../packages/core/src/log/record.ts'
import { listStrings } from '../../packages/tidemark/src/replay/replaced-lines.ts'
import type { RecordedHistory } from './history.ts'

/** How a path is looked for: by its last part, by its last two, or letter for letter as the call has it. */
export type PathRule = 'base' | 'two' | 'full'

export interface Wanted {
  readonly identifiers: readonly string[]
  readonly paths: readonly string[]
}

export interface Found {
  readonly found: number
  readonly of: number
}

const WORD = /(?<![\w$])[A-Za-z_][A-Za-z0-9_]*(?![\w$])/g
const PATH =
  /(?<![\w./~@+-])[\w./~@+-]*[\w-]\.(?:go|tsx?|jsx?|mjs|cjs|py|md|json|jsonl|ya?ml|sh|toml|sql|txt|css|html|rs|lock|mod|sum|log)(?![\w/])/g
const CALLS = 20

/** What the next calls behind `place` use of what stood before it. */
export function wantedAfter({ records }: RecordedHistory, place: number): Wanted {
  const before = textsBefore(records, place)
  const seen = new Set(before.flatMap(listIdentifiers))
  const seenPaths = new Set(before.flatMap(listPaths).map(readLastPart))
  const next = inputsAfter(records, place)
  return {
    identifiers: [...new Set(next.flatMap(listIdentifiers))].filter((name) => seen.has(name)),
    paths: [...new Set(next.flatMap(listPaths))].filter((path) => seenPaths.has(readLastPart(path))),
  }
}

export function foundIn(text: string, wanted: Wanted, rule: PathRule): Found {
  const paths = [...new Set(wanted.paths.map((path) => spelt(path, rule)))]
  const names = [...wanted.identifiers, ...paths]
  return { found: names.filter((name) => hasWord(text, name)).length, of: names.length }
}

/** As a whole word: what stands around it is no part of a name. */
export function hasWord(text: string, word: string): boolean {
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + 1)) {
    const before = text[at - 1] ?? ' '
    const after = text[at + word.length] ?? ' '
    if (!/[\w$]/.test(before) && !/[\w$]/.test(after)) return true
  }
  return false
}

function spelt(path: string, rule: PathRule): string {
  return rule === 'full'
    ? path
    : path
        .split('/')
        .slice(rule === 'base' ? -1 : -2)
        .join('/')
}

export function readLastPart(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

export function listIdentifiers(text: string): readonly string[] {
  const words = [...text.matchAll(WORD)].map(([word]) => word)
  return words.filter(
    (word) => word.length > 3 && (/[a-z][A-Z]/.test(word) || /[A-Za-z0-9]_[A-Za-z0-9]/.test(word)),
  )
}

export function listPaths(text: string): readonly string[] {
  return [...text.matchAll(PATH)].map(([path]) => path)
}

function textsBefore(records: readonly KnownRecord[], place: number): readonly string[] {
  return records.slice(0, place).flatMap((record) => {
    if ((record.type !== 'user' && record.type !== 'assistant') || record.isCompactSummary === true) return []
    return toBlocks(record.message.content).flatMap((block) => {
      if (isTextBlock(block)) return [block.text]
      if (isToolUse(block)) return listStrings(block.input)
      return isToolResult(block) ? listStrings(block.content) : []
    })
  })
}

function inputsAfter(records: readonly KnownRecord[], place: number): readonly string[] {
  const responses = new Set<string>()
  const strings: string[] = []
  for (const record of records.slice(place)) {
    if (record.type !== 'assistant' || record.message.model === '<synthetic>') continue
    responses.add(record.message.id)
    if (responses.size > CALLS) break
    for (const block of toBlocks(record.message.content))
      if (isToolUse(block)) strings.push(...listStrings(block.input))
  }
  return strings
}

/** Places a fixed number of calls apart, whatever was compacted where. */
export function artificialPlaces({ records }: RecordedHistory, every: number): readonly number[] {
  const responses = new Set<string>()
  return records.flatMap((record, place) => {
    if (record.type !== 'assistant' || responses.has(record.message.id)) return []
    responses.add(record.message.id)
    return responses.size % every === 0 ? [place] : []
  })
}
