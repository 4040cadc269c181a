/**
 * The prompts that were typed in a folder, kept across sessions for the arrow keys: a file in the Tidemark home with one JSON line per
 * prompt, readable only by the user. Several processes can append to it at once. Its size is limited: a full file replaces the older one,
 * and a very long prompt is not stored.
 */
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { isObject } from '../json-value.ts'

export interface PromptHistory {
  /** The prompts of earlier sessions and other processes, as they were when the history was opened; the newest last. */
  readonly prompts: readonly string[]
  /** Stores a prompt. If that fails, later sessions lack this prompt. */
  add(text: string): void
}

/** Maximum prompts that are loaded, as many as the input can offer. */
const MAX_PROMPTS = 100
/** Longer prompts are not stored. */
const MAX_CHARACTERS = 20_000
/** Size in bytes at which a file is full. There are at most two files. */
const FULL_BYTES = 256 * 1024

/** Reads the stored prompts of a folder; none if they cannot be read. */
export function openPromptHistory(home: string, folder: string): PromptHistory {
  const name = createHash('sha256').update(folder).digest('hex').slice(0, 16)
  const path = join(home, 'prompts', `${name}.jsonl`)
  return {
    prompts: [...readPrompts(toOlderPath(path)), ...readPrompts(path)].slice(-MAX_PROMPTS),
    add(text) {
      if (text.length > MAX_CHARACTERS) return
      try {
        mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
        // One write in append mode, so that lines of several processes do not mix.
        appendFileSync(path, `${JSON.stringify({ at: new Date().toISOString(), folder, text })}\n`, {
          mode: 0o600,
        })
        if (isFull(path)) replaceOlderFile(path)
      } catch {
        // If the folder cannot be written, the conversation continues.
      }
    },
  }
}

function toOlderPath(path: string): string {
  return path.replace(/\.jsonl$/, '.older.jsonl')
}

/** Returns the prompts of a file. Lines that are not prompts are skipped. */
function readPrompts(path: string): readonly string[] {
  let content = ''
  try {
    content = readFileSync(path, 'utf8')
  } catch {
    return []
  }
  return content.split('\n').flatMap((line) => {
    try {
      const entry: unknown = JSON.parse(line)
      return isObject(entry) && typeof entry.text === 'string' ? [entry.text] : []
    } catch {
      return []
    }
  })
}

function isFull(path: string): boolean {
  return statSync(path).size > FULL_BYTES
}

/** Milliseconds after which a lock counts as left by a killed process. */
const STALE_MS = 10_000

/** Replaces the older file by the full one. Only one process does so, even if several find it full. */
function replaceOlderFile(path: string): void {
  const lock = `${path}.lock`
  try {
    closeSync(openSync(lock, 'wx', 0o600))
  } catch {
    if (Date.now() - statSync(lock).mtimeMs > STALE_MS) rmSync(lock, { force: true })
    return
  }
  try {
    if (isFull(path)) renameSync(path, toOlderPath(path))
  } finally {
    rmSync(lock, { force: true })
  }
}
