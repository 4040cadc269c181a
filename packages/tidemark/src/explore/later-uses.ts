/**
 * What the model wrote at each request of a log: names, paths, files that it read and lines that it edited. They are
 * collected in one pass, so that the search for the first later use of a fact or block does not read all texts again.
 */
import { collectJsonStrings, describeToolCall } from '@tidemark/core/facts/tool-calls'
import { isTextBlock, isToolUse, toBlocks } from '@tidemark/core/log/block'
import type { KnownRecord } from '@tidemark/core/log/record'
import { findNamesInText } from '@tidemark/core/text/code-in-text'
import { listReplacedLines } from '../replay/replaced-lines.ts'

/** A response of the model, with the index of its request. */
export interface IndexedResponse {
  readonly request: number
  readonly record: KnownRecord & { readonly type: 'assistant' }
}

/** Each function returns the first request from `from` on; null if there is none. */
export interface LaterUseIndex {
  findNamed(text: string, from: number): number | null
  findRead(path: string, from: number): number | null
  /** `source` says what showed the line: where that is a file of the log, only edits of the same file count. */
  findEdited(line: string, from: number, source: string): number | null
}

export function createLaterUseIndex(calls: readonly IndexedResponse[]): LaterUseIndex {
  const [named, read, edited] = [new RequestIndex(), new RequestIndex(), new RequestIndex()]
  const files = new Set<string>()
  for (const { request, record } of calls) {
    const blocks = toBlocks(record.message.content)
    for (const block of blocks) {
      if (isTextBlock(block)) addNames(named, block.text, request)
      if (!isToolUse(block)) continue
      for (const text of collectJsonStrings(block.input)) addNames(named, text, request)
      const { kind, path, touches } = describeToolCall(block.name, block.input)
      for (const file of [path, ...touches.map((touch) => touch.path)])
        if (file !== null) {
          named.add(file, request)
          files.add(file)
        }
      if (kind === 'read' && path !== null) read.add(path, request)
    }
    for (const { path, lines } of listReplacedLines(blocks))
      for (const line of lines) {
        edited.add(line, request)
        if (path !== null) edited.add(toLineKey(path, line), request)
      }
  }
  return {
    findNamed: (text, from) => named.findFirst(text, from),
    findRead: (path, from) => read.findFirst(path, from),
    findEdited: (line, from, source) =>
      edited.findFirst(files.has(source) ? toLineKey(source, line) : line, from),
  }
}

/** Key of a line in one file, in the same index as lines without their file, which have no line break. */
const toLineKey = (path: string, line: string): string => `${path}\n${line}`

/** Matches what stands between spaces, quotes and brackets: paths, whatever characters they have. */
const WORDS = /[^\s"'`<>()[\]{}|;,=]+/g
const END_OF_SENTENCE = /[.:!?]+$/

function addNames(index: RequestIndex, text: string, request: number): void {
  for (const name of findNamesInText(text).identifiers.keys()) index.add(name, request)
  for (const [word] of text.matchAll(WORDS)) index.add(word.replace(END_OF_SENTENCE, ''), request)
}

/** Finds the requests of a text, in ascending order. */
class RequestIndex {
  readonly #requests = new Map<string, number[]>()

  add(text: string, request: number): void {
    const known = this.#requests.get(text)
    if (known === undefined) this.#requests.set(text, [request])
    else if (known.at(-1) !== request) known.push(request)
  }

  findFirst(text: string, from: number): number | null {
    const requests = this.#requests.get(text) ?? []
    let [low, high] = [0, requests.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((requests[middle] ?? 0) < from) low = middle + 1
      else high = middle
    }
    return requests[low] ?? null
  }
}
