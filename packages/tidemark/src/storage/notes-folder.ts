/**
 * Stores the notes of each session as Markdown in `<sessions>/ID/session-memory/summary.md`, readable by the user only.
 * `coverage.json` beside it says which record the notes cover last, and `claim.json` that an update is running.
 */

import { randomUUID } from 'node:crypto'
import { dirname, join } from 'node:path'
import type { NotesClaim, NotesStore, StoredNotes } from '@tidemark/core/engine/ports'
import { isObject, parseJson } from '@tidemark/core/log/json'
import { isNotesClaimExpired } from '@tidemark/core/notes/notes-file'
import { createDraftPath, createFileAtomic, readFileSnapshot, replaceFileAtomic } from './atomic-file.ts'
import { ensureDirectory, type FileSystem, ioError, nodeFileSystem, readErrorCode } from './file-system.ts'
import { resolveHome, sessionPaths } from './home-paths.ts'

interface NotesFolderOptions {
  /** Absolute path of the Tidemark home folder. Default: `tidemarkHome()`. */
  readonly home?: string
  readonly files?: FileSystem
}

interface NotesPaths {
  readonly folder: string
  readonly notes: string
  readonly coverage: string
  readonly claim: string
}

const NOTES_FOLDER = 'session-memory'

/** Creates a store for notes in the Tidemark home. */
export function createNotesFolder(options: NotesFolderOptions = {}): NotesStore {
  const { files = nodeFileSystem } = options
  const home = resolveHome(options.home)
  const withErrors = async <T>(what: string, session: string, outcome: Promise<T>): Promise<T> =>
    outcome.catch((error: unknown) =>
      Promise.reject(ioError(`${what} the notes of session "${session}"`, error, { session })),
    )
  return {
    read: (session) => withErrors('read', session, readNotes(files, notesPaths(home, session))),
    write: (session, notes) =>
      withErrors('store', session, writeNotes(files, notesPaths(home, session), notes)),
    readOverrides: (session) =>
      withErrors('read the settings of', session, readOverrides(files, home, session)),
    path: (session) => notesPaths(home, session).notes,
    claim: (session, at) => withErrors('claim', session, claimNotes(files, notesPaths(home, session), at)),
    readClaim: async (session) =>
      (await withErrors('read', session, readClaimFile(files, notesPaths(home, session).claim)))?.startedAt ??
      null,
  }
}

function notesPaths(home: string, session: string): NotesPaths {
  const folder = join(sessionPaths(home, session).folder, NOTES_FOLDER)
  return {
    folder,
    notes: join(folder, 'summary.md'),
    coverage: join(folder, 'coverage.json'),
    claim: join(folder, 'claim.json'),
  }
}

/**
 * Reads the coverage before the notes. If both are replaced in between, the notes cover more than the coverage says,
 * never less.
 */
async function readNotes(files: FileSystem, paths: NotesPaths): Promise<StoredNotes | null> {
  const coverage = parseObject(await readText(files, paths.coverage))
  const text = await readText(files, paths.notes)
  if (text === null) return null
  const { coveredUuid, writtenAt, writtenBy } = coverage
  return {
    text,
    coveredUuid: typeof coveredUuid === 'string' ? coveredUuid : null,
    writtenAt: typeof writtenAt === 'number' ? writtenAt : 0,
    writtenBy: writtenBy === 'model' ? 'model' : 'local',
  }
}

/** Writes the notes before their coverage. After a crash in between, the notes cover more than the coverage says, never less. */
async function writeNotes(files: FileSystem, paths: NotesPaths, notes: StoredNotes): Promise<void> {
  const { text, ...coverage } = notes
  await ensureDirectory(files, paths.folder)
  await replaceFileAtomic(files, paths.notes, { bytes: Buffer.from(text), durable: true })
  await files.syncDirectory(paths.folder)
  const bytes = Buffer.from(`${JSON.stringify(coverage)}\n`)
  await replaceFileAtomic(files, paths.coverage, { bytes, durable: true })
  await files.syncDirectory(paths.folder)
}

/** Reads the user's template and prompt: the session's own files, else those beside the sessions. */
async function readOverrides(
  files: FileSystem,
  home: string,
  session: string,
): Promise<{ readonly template?: string; readonly prompt?: string }> {
  const folders = [notesPaths(home, session).folder, join(home, NOTES_FOLDER)]
  const find = async (name: string): Promise<string | undefined> => {
    for (const folder of folders) {
      const text = await readText(files, join(folder, 'config', name))
      if (text !== null && text.trim() !== '') return text
    }
    return undefined
  }
  const [template, prompt] = [await find('template.md'), await find('prompt.md')]
  return { ...(template === undefined ? {} : { template }), ...(prompt === undefined ? {} : { prompt }) }
}

interface ClaimFile {
  readonly startedAt: number
  readonly token: string
}

/**
 * Claims the notes by creating the claim file, which only one process can do. A dead claim is moved away first; if a
 * live claim was moved by mistake, it is put back.
 */
async function claimNotes(
  files: FileSystem,
  { folder, claim: path }: NotesPaths,
  { now, deadAfterMs }: { readonly now: number; readonly deadAfterMs: number },
): Promise<NotesClaim | null> {
  await ensureDirectory(files, folder)
  const mine: ClaimFile = { startedAt: now, token: randomUUID() }
  const bytes = Buffer.from(`${JSON.stringify(mine)}\n`)
  const isDead = ({ startedAt }: ClaimFile): boolean => isNotesClaimExpired(startedAt, now, deadAfterMs)
  for (let attempt = 0; attempt < 2; attempt += 1) {
    if (await createFileAtomic(files, path, bytes)) return { release: () => releaseClaim(files, path, mine) }
    const seen = await readClaimFile(files, path)
    if (seen === null) continue
    if (!isDead(seen)) return null
    const aside = createDraftPath(path)
    if (!(await moveIfThere(files, path, aside))) continue
    const moved = await readClaimFile(files, aside)
    if (moved !== null && !isDead(moved))
      await createFileAtomic(files, path, Buffer.from(`${JSON.stringify(moved)}\n`))
    await files.remove(aside)
  }
  return null
}

async function releaseClaim(files: FileSystem, path: string, { token }: ClaimFile): Promise<void> {
  if ((await readClaimFile(files, path))?.token === token) await files.remove(path)
}

/** Reads a claim. For a damaged claim, the time of its file is the time at which it began. Null if there is none. */
async function readClaimFile(files: FileSystem, path: string): Promise<ClaimFile | null> {
  const file = await readFileSnapshot(files, path)
  if (file === null) return null
  const { startedAt, token } = parseObject(Buffer.from(file.bytes).toString())
  return {
    startedAt: typeof startedAt === 'number' ? startedAt : file.facts.modifiedMs,
    token: typeof token === 'string' ? token : '',
  }
}

async function moveIfThere(files: FileSystem, from: string, to: string): Promise<boolean> {
  try {
    await files.rename(from, to)
    return true
  } catch (error) {
    if (readErrorCode(error) === 'ENOENT') return false
    throw error
  }
}

async function readText(files: FileSystem, path: string): Promise<string | null> {
  try {
    const file = await readFileSnapshot(files, path)
    return file === null ? null : Buffer.from(file.bytes).toString()
  } catch (error) {
    // A folder of the path is a file, so the requested file does not exist.
    if (readErrorCode(error) === 'ENOTDIR') return null
    throw ioError(`read ${path}`, error, { path: dirname(path) })
  }
}

function parseObject(text: string | null): Readonly<Record<string, unknown>> {
  const parsed = text === null ? null : parseJson(text)
  return isObject(parsed) ? parsed : {}
}
