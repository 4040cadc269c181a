/**
 * Prompts that are typed during a turn and wait for its end. They are also stored in a file of the session, so that they survive a closed
 * terminal or a kill.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'

export interface PromptQueue {
  /** The waiting prompts, oldest first. */
  readonly texts: readonly string[]
  add(text: string): void
  takeFirst(): string | null
  takeNewest(): string | null
  takeAll(): readonly string[]
  /**
   * Switches to the file of a session and removes the file of the session before. Returns the prompts that an earlier run has left in the
   * new file; if no prompts wait now, they stay there until the queue changes or `save` is called.
   */
  open(path: string): readonly string[]
  /** Writes the waiting prompts to the file. */
  save(): void
}

export function createPromptQueue(): PromptQueue {
  let texts: readonly string[] = []
  let file: string | null = null
  function save(): void {
    if (file === null) return
    try {
      if (texts.length === 0) rmSync(file, { force: true })
      else writeFileSync(file, `${JSON.stringify(texts)}\n`, { mode: 0o600 })
    } catch {
      // If the file cannot be written, the prompts are still in the queue of this run.
    }
  }
  function keep(kept: readonly string[]): void {
    texts = kept
    save()
  }
  return {
    get texts() {
      return texts
    },
    add: (text) => keep([...texts, text]),
    takeFirst() {
      const [first, ...others] = texts
      if (first === undefined) return null
      keep(others)
      return first
    },
    takeNewest() {
      const newest = texts.at(-1)
      if (newest === undefined) return null
      keep(texts.slice(0, -1))
      return newest
    },
    takeAll() {
      const all = texts
      if (all.length > 0) keep([])
      return all
    },
    open(path) {
      if (path === file) return []
      if (file !== null) rmSync(file, { force: true })
      const left = readTexts(path)
      file = path
      if (texts.length > 0) save()
      return left
    },
    save,
  }
}

function readTexts(path: string): readonly string[] {
  try {
    const texts: unknown = JSON.parse(readFileSync(path, 'utf8'))
    return Array.isArray(texts) ? texts.filter((text) => typeof text === 'string') : []
  } catch {
    return []
  }
}
