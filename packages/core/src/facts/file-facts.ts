/**
 * The files that tool calls read or changed: what was done to each, and its last known state. A file has one entry,
 * however its path was written.
 */
import { sliceText } from '../text/truncate-text.ts'
import { type FileChange, listFileChanges } from './shell-commands.ts'
import { type FileTouch, normalizePath } from './tool-calls.ts'
import type { ToolRun } from './tool-runs.ts'

export interface TouchedFile {
  /** The path as the log has it, whole if any call gave it so. */
  readonly path: string
  /** The same text for every spelling of the path. */
  readonly key: string
  /** Number of successful edits. Refused edits are counted apart and also make the file part of the work. */
  readonly edits: number
  readonly refusedEdits: number
  readonly reads: number
  /** True if a call created the file; `isDeleted`: if the last change of a call deleted it. */
  readonly isNew: boolean
  readonly isDeleted: boolean
  /** Index of the newest tool call that read or edited the file; `uuid` is that call's record, `time` its time. */
  readonly place: number
  readonly uuid: string
  readonly time: string
  /** The beginning of the text that the newest edit inserted; null if no tool call contains it. */
  readonly newestText: string | null
  /** Names that the texts written to the file define, newest first. */
  readonly names: readonly string[]
  /** Number of lines in the newest successful read; null if there was none. */
  readonly linesRead: number | null
  /** What a shell command did to the file since it was last touched, in words; empty if nothing. */
  readonly fate: string
  /** Where its edits went, for certain or perhaps, if `fate` tells of that: from the stash they may come back. Else null. */
  readonly editsLost: 'undone' | 'stashed' | null
  /** True if a commit since the last edit may contain it. */
  readonly isCommitted: boolean
  /** The path that the file had before a shell command moved it; null if none did. */
  readonly movedFrom: string | null
  /** True if the working directory of a call was not above the file. */
  readonly isOutside: boolean
}

/** The folders in which a session worked. */
export interface ProjectFolders {
  /** The folder of the project: the first working directory, or a later one above it. Null if none is known. */
  readonly base: string | null
  /** The working directory at the start. */
  readonly start: string | null
}

interface FileTracker {
  /** Sets the working directory of the next calls. */
  setFolder(cwd: string): void
  /** Adds a tool call with its result. Returns the keys of the files that it changed. */
  add(run: ToolRun, time: string): readonly string[]
  /** Lists the files, the one that was touched last first. */
  list(): readonly TouchedFile[]
  readFolders(): ProjectFolders
}

const MOST_TEXT_CHARACTERS = 4_000
/** A folder with fewer parts, such as `/home`, is not the folder of a project. */
const LEAST_FOLDER_PARTS = 3

const NO_TOUCHES: Omit<TouchedFile, 'path' | 'key'> = {
  edits: 0,
  refusedEdits: 0,
  reads: 0,
  isNew: false,
  isDeleted: false,
  place: 0,
  uuid: '',
  time: '',
  newestText: null,
  names: [],
  linesRead: null,
  fate: '',
  editsLost: null,
  isCommitted: false,
  movedFrom: null,
  isOutside: false,
}

/** Keeps what was done to files, call by call. `clean` removes credentials from every text. */
export function createFileTracker(clean: (text: string) => string): FileTracker {
  // By key. The file that was touched last is the last one.
  const files = new Map<string, TouchedFile>()
  /** To clean a path takes much longer than to find it here. */
  const cleaned = new Map<string, string>()
  let cwd: string | null = null
  let base: string | null = null
  let start: string | null = null

  function addTouch(run: ToolRun, touch: FileTouch, time: string): string | null {
    const given = cleaned.get(touch.path) ?? clean(touch.path)
    cleaned.set(touch.path, given)
    const key = normalizePath(given, cwd)
    const before = files.get(key)
    const path = before !== undefined && isAbsolute(before.path) ? before.path : given
    const isOutside = before?.isOutside === true || (cwd !== null && !key.startsWith(`${cwd}/`))
    const file = { ...(before ?? NO_TOUCHES), key, path, isOutside, time }
    files.delete(key)
    files.set(key, withTouch(file, touch, run, clean))
    return touch.action !== 'read' && !run.failed ? key : null
  }

  return {
    setFolder(given) {
      cwd = normalizePath(given)
      start ??= cwd
      // A folder above the first one takes its place, so that all paths of the project are relative to one folder.
      const isAbove = base?.startsWith(`${cwd}/`) === true && cwd.split('/').length > LEAST_FOLDER_PARTS
      if (base === null || isAbove) base = cwd
    },
    add(run, time) {
      const touched = run.touches.flatMap((touch) => addTouch(run, touch, time) ?? [])
      return [...touched, ...applyFileChanges(files, { ...run, cwd: run.cwd ?? cwd }, { time, clean })]
    },
    list: () => [...files.values()].reverse(),
    readFolders: () => ({ base, start }),
  }
}

export function isFileEdited({ edits, refusedEdits, movedFrom }: TouchedFile): boolean {
  return edits + refusedEdits > 0 || movedFrom !== null
}

/** Checks whether a file is no longer as it was at the start of the session: a call or a command changed it. */
export function isFileChanged({ edits, movedFrom, fate }: TouchedFile): boolean {
  return edits > 0 || movedFrom !== null || fate !== ''
}

function isAbsolute(path: string): boolean {
  return /^(?:[A-Za-z]:)?[\\/]/.test(path)
}

/** Returns a file with one more touch by a tool call. */
function withTouch(
  file: TouchedFile,
  { action, newText, isDeletion = false }: FileTouch,
  run: ToolRun,
  clean: (text: string) => string,
): TouchedFile {
  // A file that was read is there, but edits that were undone are not back.
  const keepsFate = run.failed || (action === 'read' && file.editsLost !== null)
  const fate = keepsFate ? {} : { fate: '', editsLost: null }
  const touched = { ...file, place: run.callIndex, uuid: run.uuid, ...fate }
  if (action === 'read')
    return {
      ...touched,
      reads: file.reads + 1,
      linesRead: run.failed ? file.linesRead : countLines(run.result),
    }
  if (run.failed) return { ...touched, refusedEdits: file.refusedEdits + 1 }
  return {
    ...touched,
    edits: file.edits + 1,
    isNew: file.isNew || (action === 'write' && isCreation(run)),
    isDeleted: isDeletion,
    isCommitted: false,
    newestText: newText === null ? file.newestText : clean(sliceText(newText, 0, MOST_TEXT_CHARACTERS)),
    names: [...new Set([...findDefinitions(newText), ...file.names])].slice(0, MOST_NAMES),
  }
}

/** Checks by its result whether a call that wrote a whole file made a new one. */
function isCreation({ result, touches }: ToolRun): boolean {
  return touches.length > 1 || !/has been updated|overwr|replaced/i.test(result.slice(0, 300))
}

function countLines(text: string): number {
  let lines = text === '' || text.endsWith('\n') ? 0 : 1
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines += 1
  return lines
}

const MOST_NAMES = 6
const NAMES_IN_CHARACTERS = 20_000
/** Matches the definition of a function or a type. */
const DEFINITION =
  /^[ \t]*(?:(?:export|default|public|private|protected|static|async|abstract|pub(?:\([a-z]+\))?|unsafe)[ \t]+)*(?:function\*?|class|interface|def|fn|func(?:[ \t]*\([^)\n]*\))?|struct|enum|trait|type)[ \t]+([A-Za-z_$][\w$]{2,60})/gm

function findDefinitions(text: string | null): readonly string[] {
  if (text === null) return []
  return [...text.slice(0, NAMES_IN_CHARACTERS).matchAll(DEFINITION)].flatMap(([, name]) => name ?? [])
}

/**
 * Applies what a shell command did to known files: a file that it removed, moved or put back is no longer as its last
 * edit left it. Returns the keys that changed.
 */
function applyFileChanges(
  files: Map<string, TouchedFile>,
  run: ToolRun,
  { time, clean }: { readonly time: string; readonly clean: (text: string) => string },
): readonly string[] {
  if (run.command === null || run.status !== 'ok') return []
  return listFileChanges(run.command, files.keys(), run.cwd).flatMap((change) => {
    const file = files.get(change.path)
    if (file === undefined) return []
    if (change.kind === 'committed') files.set(change.path, { ...file, isCommitted: true })
    const fate = describeFate(change, file)
    if (fate === null) return []
    files.set(change.path, { ...file, fate: clean(fate), editsLost: EDITS_LOST[change.kind] ?? null })
    const { to } = change
    if (to === null) return [change.path]
    const { newestText, linesRead, isOutside } = file
    const known = { newestText, linesRead, isOutside, movedFrom: file.path }
    const place = { key: to, path: clean(to), place: run.callIndex, uuid: run.uuid, time }
    files.delete(to)
    files.set(to, { ...NO_TOUCHES, ...known, ...place })
    return [change.path, to]
  })
}

const EDITS_LOST: Partial<Record<FileChange['kind'], TouchedFile['editsLost']>> = {
  undone: 'undone',
  'perhaps-undone': 'undone',
  stashed: 'stashed',
  'perhaps-stashed': 'stashed',
}

/** Says what a command did to a file; null if that concerns only files that were edited before. */
function describeFate({ kind, to, by }: FileChange, file: TouchedFile): string | null {
  const command = `\`${by}\``
  if (kind === 'removed') return `deleted by ${command}`
  if (kind === 'moved') return `moved to ${to} by ${command}`
  if (file.edits === 0 || kind === 'committed') return null
  if (kind === 'returned') return file.editsLost === 'stashed' ? '' : null
  const isCertain = (kind === 'undone' || kind === 'stashed') && !file.isCommitted
  return `${isCertain ? '' : 'perhaps '}undone by ${command}`
}
