/**
 * `memoryFiles`: context sources for the instructions that users keep beside their projects (CLAUDE.md, AGENTS.md,
 * rules) and for the state of the repository. Files are read again on each use; nothing is cached.
 */
import { execFile } from 'node:child_process'
import { realpathSync, statSync } from 'node:fs'
import { readdir, realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { normalizePath } from '@tidemark/core/facts/tool-calls'
import { isObject } from '@tidemark/core/log/json'
import { formatErrorValue } from '@tidemark/core/policy/policy-fields'
import type { ContextSource, SourceContext, ValueOrPromise } from '@tidemark/core/sources/context-source'
import { sliceWholeCharacters } from '@tidemark/core/text/truncate-text'
import { badOptionError, checkOptionNames } from '../platform/argument-errors.ts'
import { createDeadlines, systemClock } from '../platform/node-ports.ts'
import { readErrorCode } from '../storage/file-system.ts'
import { createDiskFileReader } from './disk-sources.ts'
import { parseFrontMatter, readMatterList } from './front-matter.ts'
import {
  isInFolder,
  type LoadedMemoryFile,
  type MemoryFileDisk,
  type MemoryFilePlaces,
  MemoryFileReader,
  type MemoryFiles,
} from './memory-reader.ts'
import { folderMemorySource } from './memory-source.ts'
import { type ReminderPart, reminderSource } from './reminder-source.ts'

interface MemoryFilesOptions {
  /** The working directory, an absolute path. */
  readonly cwd: string
  /**
   * The folder of the whole project. Memory files in it, and in the folders from it down to `cwd`, apply to the whole
   * session. Default: the nearest folder with `.git` from `cwd` upwards, else `cwd`.
   */
  readonly project?: string
  /** The user's home folder, whose memory files apply to every project. Default: none are read. */
  readonly home?: string
  /** Globs of files that are never read: absolute, or from the project's folder. */
  readonly excludes?: readonly string[]
  /**
   * Decides whether a file that the project names may be read. Called with the path as named and again without links,
   * and with the project's folder. Default: files in that folder.
   */
  readonly isPermitted?: (path: string, project: string) => boolean
  /**
   * False for a project that the user has not trusted: its imports are not followed, no command runs in it, and nothing
   * above `cwd` is read. Default: true.
   */
  readonly isTrusted?: boolean
  /** True to tell the model the branch and changed files when the reminder is written. Default: true. */
  readonly gitStatus?: boolean
  /** Other texts that the model should have from the start. */
  readonly context?: readonly AmbientContext[]
  /** Called with memory files that were read for the model, and with those that could not be read. */
  readonly onRead?: (found: MemoryFilesRead) => void
}

/** A part of the reminder in front of the conversation. */
interface AmbientContext {
  readonly heading: string
  /** Returns the text as it is now; null or blank if there is nothing to say. */
  readonly read: () => ValueOrPromise<string | null>
  /** True to append changes when they happen. Default: false; the text is read again at the next compaction. */
  readonly tellsChanges?: boolean
}

interface MemoryFilesRead {
  readonly loaded: readonly {
    readonly path: string
    readonly importedBy: string | null
    /** `user`: from the user's own folder. `project`: from the project. */
    readonly origin: LoadedMemoryFile['origin']
    /**
     * Why the file was read: the session began; a tool touched a path near it; a tool touched a path that matches a
     * rule's globs; another file imports it; a compaction.
     */
    readonly reason: 'session_start' | 'nested_traversal' | 'path_glob_match' | 'include' | 'compact'
  }[]
  readonly unread: readonly { readonly path: string; readonly why: string }[]
}

/**
 * Returns the context sources of memory files, for the option `carriers`. The files that apply to the whole session stand
 * in one reminder in front of the conversation, those of other folders follow when a tool touches a path there.
 */
export function memoryFiles(options: MemoryFilesOptions): readonly ContextSource[] {
  checkMemoryOptions(options)
  const places = findPlaces(options)
  const { cwd } = places
  const report = createReport(options)
  // Both sources get the same context in one round, so the disk is read once.
  const readers = new WeakMap<SourceContext, MemoryFileReader>()
  const createReader = (context: SourceContext): MemoryFileReader => {
    const reader = readers.get(context) ?? new MemoryFileReader(DISK, places, context.policy.memoryFiles)
    readers.set(context, reader)
    return reader
  }
  const others = listContext(options, places)
  const readOthers = async (tellsChanges: boolean): Promise<readonly ContextRead[]> =>
    Promise.all(others.filter((one) => (one.tellsChanges ?? false) === tellsChanges).map(readContext))
  return [
    reminderSource({
      async read(context) {
        const found = await createReader(context).readRoot()
        const told = await readOthers(true)
        report({ ...found, unread: [...found.unread, ...listFailed(told)] }, context, 'session_start')
        return {
          parts: [...found.files.map(toPart), ...listRead(told)],
          unread: [
            ...found.unread.flatMap(({ path }) => [nameFile(path, 'user'), nameFile(path, 'project')]),
            ...listFailed(told).map(({ path }) => path),
          ],
        }
      },
      async readSnapshots(context) {
        const read = await readOthers(false)
        report({ files: [], unread: listFailed(read) }, context, 'session_start')
        return listRead(read)
      },
    }),
    folderMemorySource({
      cwd,
      createReader,
      onRead: (found, context) => report(found, context, 'nested_traversal'),
    }),
  ]
}

const OPTION_NAMES = [
  ...['cwd', 'project', 'home', 'excludes', 'isPermitted', 'isTrusted', 'gitStatus', 'context', 'onRead'],
]

function checkMemoryOptions(options: MemoryFilesOptions): void {
  if (!isObject(options)) throw badOptionError('options', 'memoryFiles: expected options with at least cwd.')
  checkOptionNames('memoryFiles', options, OPTION_NAMES)
  for (const name of ['cwd', 'project', 'home'] as const) {
    const path = options[name]
    const isMissing = path === undefined && name !== 'cwd'
    if (!isMissing && !(typeof path === 'string' && isAbsolute(path)))
      throw badOptionError(
        name,
        `memoryFiles: ${name} is ${formatErrorValue(path)}; expected an absolute path.`,
      )
  }
}

/** Resolves links in the folders once, because permissions apply to paths without links. */
function findPlaces(options: MemoryFilesOptions): MemoryFilePlaces {
  const { home, excludes = [], isTrusted = true } = options
  const cwd = resolveLinks(options.cwd)
  const given = isTrusted ? resolveLinks(options.project ?? findProject(cwd)) : cwd
  const project = isInFolder(cwd, given) ? given : cwd
  const { isPermitted = isInFolder } = options
  return {
    cwd,
    project,
    home: home === undefined ? null : resolveLinks(home),
    excludes,
    isPermitted: (path) => isPermitted(path, project),
    followsImports: isTrusted,
  }
}

function resolveLinks(path: string): string {
  try {
    return normalizePath(realpathSync.native(path))
  } catch {
    return normalizePath(resolve(path))
  }
}

/** Returns the nearest folder with `.git`, from `cwd` upwards; `cwd` if there is none. */
function findProject(cwd: string): string {
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (statSync(join(folder, '.git'), { throwIfNoEntry: false }) !== undefined) return folder
    if (dirname(folder) === folder) return cwd
  }
}

const fileReader = createDiskFileReader('/')

const DISK: MemoryFileDisk = {
  async locate(path) {
    try {
      return normalizePath(await realpath(path))
    } catch (error) {
      if (isMissing(error)) return null
      throw error
    }
  },
  read: (path, limitBytes) => fileReader.read(path, limitBytes),
  async parseRule(text) {
    const parsed = await parseFrontMatter(text)
    if (!parsed.ok) return parsed
    const globs = readMatterList(parsed.matter, 'paths')
    return { ok: true, text: parsed.body, globs: globs.length === 0 ? null : globs }
  },
  async list(folder) {
    try {
      const entries = await readdir(folder, { withFileTypes: true })
      return entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name)
    } catch (error) {
      if (isMissing(error)) return []
      throw error
    }
  },
}

function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(readErrorCode(error) ?? '')
}

/** Reports what was read: each file and problem once until it changes, and again at a compaction. */
type ReportMemoryFiles = (
  found: MemoryFiles,
  context: SourceContext,
  occasion: 'session_start' | 'nested_traversal',
) => void

function createReport({ onRead }: MemoryFilesOptions): ReportMemoryFiles {
  const known = new Map<string, string>()
  const isNew = (path: string, state: string): boolean => {
    const before = known.get(path)
    known.set(path, state)
    return before !== state
  }
  return ({ files, unread, skippedImports = [] }, { moment }, occasion) => {
    if (moment === 'compaction') known.clear()
    const loaded = files.filter(({ path, text }) => isNew(path, text))
    const failed = [...unread, ...skippedImports].filter(({ path, why }) => isNew(path, why))
    if (loaded.length + failed.length === 0) return
    onRead?.({
      loaded: loaded.map(({ path, importedBy, origin, isGlobMatch }) => {
        const cause = isGlobMatch === true ? ('path_glob_match' as const) : occasion
        const reason = importedBy === null ? cause : ('include' as const)
        return { path, importedBy, origin, reason: moment === 'compaction' ? ('compact' as const) : reason }
      }),
      unread: failed,
    })
  }
}

// The parts of the reminder.

function toPart({ path, text, origin }: LoadedMemoryFile): ReminderPart {
  return { heading: nameFile(path, origin), text, place: path }
}

function nameFile(path: string, origin: LoadedMemoryFile['origin']): string {
  return `Instructions of the ${origin}: ${path}`
}

function listContext(
  { gitStatus = true, isTrusted = true, context = [] }: MemoryFilesOptions,
  { cwd }: MemoryFilePlaces,
): readonly AmbientContext[] {
  // Git is not run before the user trusts the project, because a repository's settings can name programs that Git runs.
  const hasStatus = gitStatus && isTrusted
  return [
    ...(hasStatus ? [{ heading: 'Git status when this context began', read: () => readGitStatus(cwd) }] : []),
    ...context,
  ]
}

type ContextRead = ReminderPart | { readonly path: string; readonly why: string } | null

/** Reads a part within a time limit. A part that fails or hangs is left out, so that the other instructions are still read. */
async function readContext({ heading, read }: AmbientContext): Promise<ContextRead> {
  try {
    const end = await deadlines.within(CONTEXT_SECONDS * 1000, async () => read())
    if (!end.ok) return { path: heading, why: `it took longer than ${CONTEXT_SECONDS} seconds` }
    return end.value === null ? null : { heading, text: end.value }
  } catch (error) {
    return { path: heading, why: error instanceof Error ? error.message : String(error) }
  }
}

const CONTEXT_SECONDS = 5
const deadlines = createDeadlines(systemClock)

function listRead(read: readonly ContextRead[]): readonly ReminderPart[] {
  return read.filter((one) => one !== null).filter((one) => 'heading' in one)
}

function listFailed(read: readonly ContextRead[]): MemoryFiles['unread'] {
  return read.filter((one) => one !== null).filter((one) => 'why' in one)
}

const GIT_SECONDS = 5
const GIT_CHARACTERS = 2_000

/** Returns branch and changed files, cut to a limit; null if `cwd` is in no repository or Git cannot be run. */
async function readGitStatus(cwd: string): Promise<string | null> {
  if (findProject(cwd) === cwd && statSync(join(cwd, '.git'), { throwIfNoEntry: false }) === undefined)
    return null
  const args = [
    '-c',
    'core.fsmonitor=false',
    '--no-optional-locks',
    'status',
    '--short',
    '--branch',
    '--',
    '.',
  ]
  const text = await new Promise<string | null>((done) => {
    const limits = { cwd, timeout: GIT_SECONDS * 1000, maxBuffer: 10_000_000, windowsHide: true }
    execFile('git', args, limits, (error, output) => done(error === null ? output.trimEnd() : null))
  })
  if (text === null || text.length <= GIT_CHARACTERS) return text
  return `${sliceWholeCharacters(text, 0, GIT_CHARACTERS)}\n[cut: run git status for the rest]`
}
