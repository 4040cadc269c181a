/**
 * Finds the lines that edits replace, to measure how often a request still showed them when the model edited. Lines
 * that the conversation has never shown do not count.
 */
import { describeToolCall } from '@tidemark/core/facts/tool-calls'

const LINE_NUMBER = /^\s*\d+(?:→|\t)/
const HAS_WORD = /[\p{L}\p{N}]/u

const linesByBlock = new WeakMap<object, ReadonlySet<string>>()

/**
 * Returns the lines of all texts in a block, without line numbers and indentation. Lines without a letter or digit are
 * left out. Cached by block.
 */
export function collectTextLines(block: object): ReadonlySet<string> {
  const known = linesByBlock.get(block)
  if (known !== undefined) return known
  const lines = new Set(listStrings(block).flatMap(splitLines))
  linesByBlock.set(block, lines)
  return lines
}

/** Returns every string in a value, at any depth; names of fields are left out. */
export function listStrings(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(listStrings)
}

function splitLines(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.replace(LINE_NUMBER, '').trim())
    .filter((line) => HAS_WORD.test(line))
}

export interface ReplacedLines {
  readonly path: string | null
  readonly lines: readonly string[]
}

/** Returns the lines that each edit of a response replaces. A patch gives one entry for each file in it. */
export function listReplacedLines(
  blocks: readonly { readonly type?: unknown; readonly name?: unknown; readonly input?: unknown }[],
): readonly ReplacedLines[] {
  return blocks
    .filter(({ type }) => type === 'tool_use')
    .map(({ name, input }) => describeToolCall(String(name), input))
    .flatMap(({ edits, path, touches }) => [
      ...(edits.length === 0 ? [] : [{ path, texts: edits.map(({ oldText }) => oldText) }]),
      ...touches.flatMap((touch) =>
        touch.oldText === undefined ? [] : [{ path: touch.path, texts: [touch.oldText] }],
      ),
    ])
    .map(({ path, texts }) => ({ path, lines: texts.flatMap((text) => splitLines(text ?? '')) }))
}

/** The lines that the conversation has shown so far, each with the newest text that has it. */
export class SeenLines {
  readonly #texts = new Map<string, string>()

  add(block: object): void {
    for (const text of listStrings(block)) for (const line of splitLines(text)) this.#texts.set(line, text)
  }

  has(line: string): boolean {
    return this.#texts.has(line)
  }

  /** Returns the newest text with this line: what a read of the file would show again. */
  findText(line: string): string {
    return this.#texts.get(line) ?? line
  }
}
