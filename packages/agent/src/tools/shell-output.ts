/** Collects the output of a command. The beginning and the end are kept in memory; above a limit, the whole output is written to a file. */
import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { formatBytes, formatInteger } from '@tidemark/terminal/render/format-numbers'

/** Maximum characters of a command's output in a tool result. */
export const MAX_OUTPUT_CHARACTERS = 30_000
/** Maximum size of the file with the whole output. */
const MAX_SPILL_BYTES = 64_000_000

/** The output of one command. */
export interface OutputBuffer {
  add(text: string): void
  /** Returns the output since the last call of `take`; above the limit, only its beginning and end. */
  take(): string
  /** Closes the file. Output that is added later is still collected, but no longer written to the file. */
  close(): void
}

/** Characters that are held back until later ones arrive, so that a key of the model is recognized even in two parts. */
const HELD_CHARACTERS = 4_096

/**
 * `spillPath`: the file for the whole output, created above the limit and readable only by the owner. `hideKey`: removes the key of the
 * model, also from the file.
 */
export function createOutputBuffer(
  spillPath: string,
  limit: number = MAX_OUTPUT_CHARACTERS,
  hideKey: (text: string) => string = String,
): OutputBuffer {
  const spill = createSpillFile(spillPath, limit)
  const half = Math.floor(limit / 2)
  let head = ''
  let tail = ''
  let leftOut = 0
  let held = ''
  function keep(text: string): void {
    spill.add(text)
    const room = half - head.length
    head += text.slice(0, Math.max(0, room))
    const rest = tail + text.slice(Math.max(0, room))
    tail = rest.slice(-half)
    leftOut += rest.length - tail.length
  }
  function keepHeld(): void {
    keep(held)
    held = ''
  }
  return {
    add(text) {
      const all = hideKey(held + text)
      keep(all.slice(0, -HELD_CHARACTERS))
      held = all.slice(-HELD_CHARACTERS)
    },
    take() {
      keepHeld()
      const between =
        leftOut === 0
          ? ''
          : `\n\n[${formatInteger(leftOut)} characters left out here. ${spill.describe()}]\n\n`
      const taken = stripVTControlCharacters(head) + between + stripVTControlCharacters(tail)
      head = ''
      tail = ''
      leftOut = 0
      return taken
    },
    close() {
      keepHeld()
      spill.close()
    },
  }
}

interface SpillFile {
  add(text: string): void
  describe(): string
  close(): void
}

function createSpillFile(path: string, limit: number): SpillFile {
  /** The whole output, until it exceeds the limit. */
  let early = ''
  let file: number | 'closed' | null = null
  let written = 0
  let problem = ''
  function write(text: string): void {
    if (typeof file !== 'number' || written >= MAX_SPILL_BYTES) return
    const bytes = Buffer.from(text).subarray(0, MAX_SPILL_BYTES - written)
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
    written += bytes.length
  }
  function tryWriting(text: string): void {
    try {
      if (file === null) {
        mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
        file = openSync(path, 'wx', 0o600)
      }
      write(text)
    } catch (error) {
      problem = error instanceof Error ? error.message : String(error)
    }
  }
  return {
    add(text) {
      if (problem !== '' || file === 'closed') return
      if (file === null && early.length + text.length <= limit) {
        early += text
        return
      }
      tryWriting(early + text)
      early = ''
    },
    describe() {
      if (problem !== '') return `They could not be stored: ${problem}`
      const part =
        written >= MAX_SPILL_BYTES ? `The first ${formatBytes(MAX_SPILL_BYTES)} of the` : 'The whole'
      return `${part} output is in ${path}; use Read or Grep on it.`
    },
    close() {
      if (typeof file === 'number') closeSync(file)
      file = 'closed'
    },
  }
}
