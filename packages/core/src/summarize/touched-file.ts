/** Files the work touched: what was done to each, and the last that is known of it. */
import type { FileTouch } from './tool-kind.ts'
import type { ToolRun } from './tool-run.ts'

export interface TouchedFile {
  readonly path: string
  /** Changes that went through; one that the tool refused still makes the file part of the work. */
  readonly edits: number
  readonly refusedEdits: number
  readonly reads: number
  readonly isMade: boolean
  /** Place and record of the newest touch. */
  readonly place: number
  readonly uuid: string
  /** What the newest change put there; null where none says so. */
  readonly put: string | null
  /** Lines of the newest reading. */
  readonly linesRead: number | null
}

/** Newest touched first. */
export function touchedFilesOf(
  runs: readonly ToolRun[],
  clean: (text: string) => string,
): readonly TouchedFile[] {
  const files = new Map<string, TouchedFile>()
  for (const run of runs) {
    for (const touch of run.touches) {
      const before = files.get(touch.path) ?? untouched(touch.path)
      files.set(touch.path, after(before, touch, run))
    }
  }
  const cleaned = [...files.values()].map((file) => ({
    ...file,
    path: clean(file.path),
    put: file.put === null ? null : clean(file.put),
  }))
  return cleaned.toSorted((one, other) => other.place - one.place || (one.path < other.path ? -1 : 1))
}

export function isEdited({ edits, refusedEdits }: TouchedFile): boolean {
  return edits + refusedEdits > 0
}

function untouched(path: string): TouchedFile {
  return {
    path,
    edits: 0,
    refusedEdits: 0,
    reads: 0,
    isMade: false,
    place: 0,
    uuid: '',
    put: null,
    linesRead: null,
  }
}

function after(file: TouchedFile, { act, put }: FileTouch, run: ToolRun): TouchedFile {
  const touched = { ...file, place: run.place, uuid: run.uuid }
  if (act === 'read')
    return { ...touched, reads: file.reads + 1, linesRead: run.failed ? file.linesRead : lines(run.result) }
  if (run.failed) return { ...touched, refusedEdits: file.refusedEdits + 1 }
  return { ...touched, edits: file.edits + 1, isMade: file.isMade || act === 'write', put: put ?? file.put }
}

function lines(text: string): number {
  return text === '' ? 0 : text.replace(/\n$/, '').split('\n').length
}
