/**
 * Notes about files: what was done to each and its last known state. Every file that was edited is named, the newest in a
 * line of its own and, where the budget is short, the others by folder. Files that were only read come after them.
 */

import { applyFileChanges, type TouchedFile, withTouch } from '../facts/session-facts.ts'
import { type FileTouch, normalizePath } from '../facts/tool-calls.ts'
import type { ToolRun } from '../facts/tool-runs.ts'
import { truncateEnd, truncateFirstLine } from '../text/truncate-text.ts'
import type { FitOptions } from './fit-notes.ts'
import { cleanNoteText, formatNoteTime, toNoteLine } from './note-text.ts'

interface NotedFile extends TouchedFile {
  /** True if the working directory of a call was not above the file. Its path is then relative to that of the start only. */
  readonly isOutside: boolean
  readonly time: string
  readonly isDeleted: boolean
  readonly isNew: boolean
  /** Names that the texts written to the file define, newest first. */
  readonly names: readonly string[]
}

const CHANGE_CHARACTERS = 100
const FATE_CHARACTERS = 160
const MOST_NAMES = 6
const MOST_READ_FILES = 400
const MOST_TEXT_CHARACTERS = 4_000
const MOST_LISTED = 12
/** A folder with fewer parts, such as `/home`, is not the folder of a project. */
const LEAST_FOLDER_PARTS = 3
/** Numbers of files with a line of their own that are tried in turn until the section fits. */
const DETAILED_FILES = [40, 24, 14, 8, 4, 0]
/** Share of the section's tokens for files that were only read. */
const READ_SHARE = 0.25
const LINE_TOKENS = 30

export class FileNotes {
  // By path. The file that was touched last is the last one.
  readonly #edited = new Map<string, NotedFile>()
  readonly #others = new Map<string, NotedFile>()
  #cwd: string | null = null
  #base: string | null = null
  /** The working directory at the start. */
  #first: string | null = null
  /** Paths as they are shown: to clean a path takes much longer than to find it here. */
  #shown = new Map<string, string>()

  /** Sets the working directory of the next calls. */
  setFolder(given: string): void {
    const cwd = normalizePath(given)
    this.#cwd = cwd
    this.#first ??= cwd
    // A folder above the first one takes its place, so that all paths of the project are relative to one folder.
    const isAbove = this.#base?.startsWith(`${cwd}/`) === true && cwd.split('/').length > LEAST_FOLDER_PARTS
    if (this.#base !== null && !isAbove) return
    this.#base = cwd
    this.#shown.clear()
  }

  /** Adds a tool call with its result. Returns the names of the changed files. */
  add(run: ToolRun, timestamp: string): readonly string[] {
    const time = formatNoteTime(timestamp)
    const touched = run.touches.flatMap((touch) => this.#addTouch(run, touch, time) ?? [])
    const changed = [...touched, ...this.#applyCommand(run, time)]
    return changed.map((path) => readFileName(this.#showPath(path)))
  }

  formatSection(options: FitOptions): string {
    return formatFiles([...this.#edited.values()].toReversed(), [...this.#others.values()].toReversed(), {
      ...options,
      show: (path) => this.#showPath(path),
      base: this.#base === null ? null : formatPath(this.#base),
    })
  }

  /** Returns the working directory, the folders with most changed files, and project documents that were read or changed. */
  describeProject(): readonly string[] {
    const folders = groupByFolder([...this.#edited.keys()].map((path) => this.#showPath(path)))
    const most = folders.toSorted((one, other) => other.names.length - one.names.length)
    const read = [...this.#others.keys(), ...this.#edited.keys()].filter((path) =>
      PROJECT_DOCUMENT.test(path),
    )
    const names = read.slice(-MOST_LISTED).map((path) => this.#showPath(path))
    return [
      ...(this.#base === null ? [] : [`- Working directory: ${formatPath(this.#base)}`]),
      ...most.slice(0, MOST_LISTED).map(describeFolder),
      ...(names.length === 0 ? [] : [`- Project documents that were read or changed: ${names.join(', ')}`]),
    ]
  }

  /** Returns a path relative to the folder of the project if it is below it, with the separators of the log. */
  #showPath(path: string): string {
    const isOutside = (this.#edited.get(path) ?? this.#others.get(path))?.isOutside === true
    const base = isOutside && this.#base !== this.#first ? null : this.#base
    const part = base !== null && path.startsWith(`${base}/`) ? path.slice(base.length + 1) : path
    const shown = this.#shown.get(part) ?? formatPath(part, DRIVE.test(path))
    this.#shown.set(part, shown)
    return shown
  }

  /** Applies what a shell command did to files that are known. Returns the paths that changed. */
  #applyCommand(run: ToolRun, time: string): readonly string[] {
    const placed = { ...run, cwd: run.cwd ?? this.#cwd }
    const changed = [this.#edited, this.#others].flatMap((files) =>
      applyFileChanges(files, placed, (file, { isOutside }) => ({
        ...file,
        time,
        isOutside,
        isDeleted: false,
        isNew: false,
        names: [],
      })),
    )
    for (const path of changed) {
      const file = this.#others.get(path)
      if (file === undefined) continue
      this.#others.delete(path)
      this.#edited.set(path, file)
    }
    return changed
  }

  /** Returns the path if the call changed the file, otherwise null. */
  #addTouch(run: ToolRun, touch: FileTouch, time: string): string | null {
    const path = normalizePath(touch.path, this.#cwd)
    const before = this.#edited.get(path) ?? this.#others.get(path)
    const counted = withTouch(before, { ...touch, path }, run)
    const isChange = touch.action !== 'read' && !run.failed
    const file: NotedFile = {
      ...counted,
      // Only its first line is shown.
      newestText: counted.newestText?.slice(0, MOST_TEXT_CHARACTERS) ?? null,
      time,
      isOutside: (before?.isOutside ?? false) || !path.startsWith(`${this.#cwd}/`),
      isDeleted: isChange ? touch.isDeletion === true : (before?.isDeleted ?? false),
      isNew: (before?.isNew ?? false) || (isChange && touch.action === 'write' && isCreation(run)),
      names: isChange ? mergeNames(findNames(touch.newText), before?.names) : (before?.names ?? []),
    }
    this.#edited.delete(path)
    this.#others.delete(path)
    if (file.edits > 0 || file.movedFrom !== null) this.#edited.set(path, file)
    else this.#others.set(path, file)
    const [oldest] = this.#others.keys()
    if (this.#others.size > MOST_READ_FILES && oldest !== undefined) this.#others.delete(oldest)
    return isChange ? path : null
  }
}

function describeFolder({ folder, names: { length } }: Folder): string {
  return `- ${folder}/: ${length} file${length === 1 ? '' : 's'} changed`
}

/** Returns a path on one line, without secrets, and with backslashes on Windows. */
function formatPath(path: string, isWindows: boolean = DRIVE.test(path)): string {
  return toNoteLine(cleanNoteText(isWindows ? path.replaceAll('/', '\\') : path))
}

const DRIVE = /^[A-Za-z]:/
/** Matches documents that describe a project. */
const PROJECT_DOCUMENT =
  /(?:^|\/)(?:README|CLAUDE|AGENTS|CONTRIBUTING|ARCHITECTURE|DESIGN|GLOSSARY|TODO|PLAN)[^/]*\.(?:md|txt|rst)$|(?:^|\/)(?:package\.json|Cargo\.toml|go\.mod|pyproject\.toml|Makefile|mise\.toml|pom\.xml)$/i

/** Checks by its result whether a call that wrote a whole file made a new one. */
function isCreation({ result, touches }: ToolRun): boolean {
  return touches.length > 1 || !/has been updated|overwr|replaced/i.test(result.slice(0, 300))
}

// Names of functions and types in the text that was written to a file.

const DEFINITION =
  /^[ \t]*(?:(?:export|default|public|private|protected|static|async|abstract|pub(?:\([a-z]+\))?|unsafe)[ \t]+)*(?:function\*?|class|interface|def|fn|func(?:[ \t]*\([^)\n]*\))?|struct|enum|trait|type)[ \t]+([A-Za-z_$][\w$]{2,60})/gm
const NAMES_IN_CHARACTERS = 20_000

function findNames(text: string | null): readonly string[] {
  if (text === null) return []
  return [...text.slice(0, NAMES_IN_CHARACTERS).matchAll(DEFINITION)].flatMap(([, name]) => name ?? [])
}

function mergeNames(newer: readonly string[], older: readonly string[] = []): readonly string[] {
  return [...new Set([...newer, ...older])].slice(0, MOST_NAMES)
}

// The section.

interface FileFormat extends FitOptions {
  readonly show: (path: string) => string
  readonly base: string | null
}

function formatFiles(edited: readonly NotedFile[], others: readonly NotedFile[], format: FileFormat): string {
  const head = format.base === null ? [] : [`Paths that are not whole are relative to ${format.base}.`]
  const room = format.tokens - LINE_TOKENS
  const changed = formatEditedFiles(edited, others.length === 0 ? room : room * (1 - READ_SHARE), format)
  const rest = room - (changed === '' ? 0 : format.countTokens(changed))
  const read = formatOtherFiles(others, rest, format)
  const parts = [changed, read].filter((part) => part !== '')
  return parts.length === 0 ? '' : [...head, ...parts].join('\n\n')
}

function formatEditedFiles(files: readonly NotedFile[], tokens: number, format: FileFormat): string {
  if (files.length === 0) return ''
  for (const detailed of DETAILED_FILES) {
    const text = formatChanges(files, detailed, format)
    if (format.countTokens(text) <= tokens) return text
  }
  let named = files.length
  // Only if the whole file of notes has no room, files that were changed are left out.
  while (format.mayDropAll === true && named > 0) {
    named = Math.floor(named / 2)
    const note = `… ${files.length - named} older are in the transcript`
    const text = [...(named === 0 ? [] : [formatChanges(files.slice(0, named), 0, format)]), note].join('\n')
    if (format.countTokens(text) <= tokens) return text
  }
  return format.mayDropAll === true ? '' : formatChanges(files, 0, format)
}

/** Formats files, the first of them in a line each and the others by folder. */
function formatChanges(files: readonly NotedFile[], detailed: number, { show }: FileFormat): string {
  const first = files.slice(0, detailed).map((file) => `- ${describeFile(file, show)}`)
  const older = files.slice(detailed).map(({ path }) => show(path))
  const title = first.length === 0 ? 'Changed, by folder:' : 'Changed before, by folder:'
  const groups = [
    ...(first.length === 0 ? [] : [`Changed, newest first:\n${first.join('\n')}`]),
    ...(older.length === 0 ? [] : [`${title}\n${formatFolders(older)}`]),
  ]
  return groups.join('\n\n')
}

/** Formats the files that were only read, or that an edit did not change, by folder, as many of the newest as fit. */
function formatOtherFiles(files: readonly NotedFile[], tokens: number, format: FileFormat): string {
  const tried = files.filter(({ refusedEdits }) => refusedEdits > 0).map(({ path }) => format.show(path))
  const read = files.filter(({ refusedEdits, linesRead }) => refusedEdits === 0 && linesRead !== null)
  const attempts = `A change was tried and not made:\n${formatFolders(tried)}`
  const failed = tried.length === 0 || format.countTokens(attempts) > tokens ? '' : attempts
  let rest = tokens - LINE_TOKENS - (failed === '' ? 0 : format.countTokens(failed))
  const shown: string[] = []
  for (const { path } of read) {
    const line = format.show(path)
    // The folder of a file is named once, so that a line is longer than its part of the list.
    rest -= format.countTokens(readFileName(line)) + 2
    if (rest < 0) break
    shown.push(line)
  }
  const missing = read.length - shown.length
  const note = missing === 0 ? '' : `\n… ${missing} older are in the transcript`
  const list = shown.length === 0 ? '' : `Only read, by folder:\n${formatFolders(shown)}${note}`
  return [failed, list].filter((part) => part !== '').join('\n\n')
}

/** Returns the name of a file, whichever separators its path has. */
function readFileName(path: string): string {
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1)
}

interface Folder {
  readonly folder: string
  readonly names: readonly string[]
}

function groupByFolder(paths: readonly string[]): readonly Folder[] {
  const folders = new Map<string, string[]>()
  for (const path of paths) {
    const name = readFileName(path)
    const folder =
      path.slice(0, Math.max(0, path.length - name.length - 1)) || (path.startsWith('/') ? '' : '.')
    const names = folders.get(folder)
    if (names === undefined) folders.set(folder, [name])
    else names.push(name)
  }
  return [...folders].map(([folder, names]) => ({ folder, names }))
}

function formatFolders(paths: readonly string[]): string {
  return groupByFolder(paths)
    .map(({ folder, names }) => `- ${folder}: ${names.join(', ')}`)
    .join('\n')
}

function describeFile(file: NotedFile, show: (path: string) => string): string {
  const { edits, refusedEdits, isNew, isDeleted, reads, time, names, newestText, fate, movedFrom } = file
  const created = edits === 1 ? 'created' : `created, ${edits} changes`
  const made = edits === 0 ? '' : isNew ? created : formatTimes('edited', edits)
  const done = [
    movedFrom === null ? '' : `moved from ${show(movedFrom)}`,
    isDeleted ? 'deleted' : made,
    refusedEdits === 0 ? '' : `${refusedEdits} more change${refusedEdits === 1 ? '' : 's'} failed`,
    reads === 0 ? '' : formatTimes('read', reads),
  ]
  const line =
    newestText === null ? '' : toNoteLine(cleanNoteText(truncateFirstLine(newestText, CHANGE_CHARACTERS)))
  const parts = [
    `${show(file.path)}: ${done.filter((part) => part !== '').join(', ')}${time === '' ? '' : `, last ${time}`}`,
    fate === '' ? '' : `since then ${truncateEnd(toNoteLine(cleanNoteText(fate)), FATE_CHARACTERS)}`,
    names.length === 0 ? '' : `defines ${names.join(', ')}`,
    line === '' || isDeleted || fate !== '' ? '' : `newest text begins: ${line}`,
  ]
  return parts.filter((part) => part !== '').join('; ')
}

function formatTimes(verb: string, count: number): string {
  return count === 1 ? verb : `${verb} ${count} times`
}
