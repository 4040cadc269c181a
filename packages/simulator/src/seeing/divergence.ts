/** The first byte at which two prompts differ. */
import type { Prompt } from '../cache/prompt.ts'
import { render } from '../cache/rendering.ts'
import type { Divergence } from './record.ts'

const EXCERPT = 60

/** `at` is the first position that differs; null where the newer prompt ends there. */
export function divergenceAt(now: Prompt, before: Prompt, at: number): Divergence | null {
  const node = now.positions[at]
  if (node === undefined) return null
  const old = before.positions[at]
  const text = render(node.block)
  const was = old === undefined ? '' : render(old.block)
  const index = firstDifference(was, text)
  const blockByte = Buffer.byteLength(text.slice(0, index))
  return {
    path: now.pathOf(at),
    blockByte,
    promptByte: (node.parent?.bytes ?? 0) + blockByte,
    was: excerpt(was, index),
    now: excerpt(text, index),
  }
}

function firstDifference(one: string, other: string): number {
  const length = Math.min(one.length, other.length)
  let index = 0
  while (index < length && one.charCodeAt(index) === other.charCodeAt(index)) index += 1
  return index
}

function excerpt(text: string, at: number): string {
  const start = Math.max(0, at - EXCERPT / 3)
  return text.slice(start, at + EXCERPT)
}
