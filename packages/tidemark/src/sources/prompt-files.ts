/**
 * Finds the skills (`.claude/skills/NAME/SKILL.md`) and slash commands (`.claude/commands/NAME.md`) of a user and of a
 * project on the disk. Nothing is cached. A project's file is read only if its path, with links resolved, is permitted.
 */
import { readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { normalizePath, type PromptFile, parsePromptFile } from '@tidemark/core'
import { readErrorCode } from '../storage/file-system.ts'
import { createDiskFileReader } from './disk-sources.ts'

export interface PromptFilePlaces {
  /** The user's home; null if the user's own files are not read. */
  readonly home: string | null
  /** The project's folder. */
  readonly project: string
  /** Returns true if a file of the project may be read. The user's own files are not asked about. */
  readonly isPermitted: (path: string) => boolean
}

export interface FoundPromptFile extends PromptFile {
  readonly kind: 'skill' | 'command'
  readonly path: string
  /** The folder of the file, with links resolved. */
  readonly folder: string
  readonly origin: 'user' | 'project'
}

export interface PromptFiles {
  /** Each name once: the user's come before the project's, and skills before commands. */
  readonly files: readonly FoundPromptFile[]
  /** Files that exist and could or may not be read, with the reason. */
  readonly unread: readonly { readonly path: string; readonly why: string }[]
}

/** A prompt is instructions, not data: a longer file is not read. */
const MAX_BYTES = 500_000
/** Limits for a folder without end. */
const MAX_FILES = 500
const MAX_DEPTH = 4

interface Candidate extends Pick<FoundPromptFile, 'kind' | 'path' | 'origin'> {
  /** The name that the folder or the file gives. */
  readonly name: string
}

/** Reads the files of user and project; with `kind`, only skills or only commands. */
export async function readPromptFiles(
  places: PromptFilePlaces,
  kind?: FoundPromptFile['kind'],
): Promise<PromptFiles> {
  const { home, project } = places
  const roots = [
    ...(home === null ? [] : [{ root: join(home, '.claude'), origin: 'user' as const }]),
    { root: join(project, '.claude'), origin: 'project' as const },
  ]
  const lists = [
    ...(kind === 'command' ? [] : roots.map(({ root, origin }) => listSkills(join(root, 'skills'), origin))),
    ...(kind === 'skill'
      ? []
      : roots.map(({ root, origin }) => listCommands(join(root, 'commands'), origin))),
  ]
  const candidates = (await Promise.all(lists)).flat()
  const found = await Promise.all(candidates.map((candidate) => readCandidate(candidate, places)))
  const files = new Map<string, FoundPromptFile>()
  for (const one of found) if (one !== null && 'body' in one && !files.has(one.name)) files.set(one.name, one)
  return {
    files: [...files.values()],
    unread: found.flatMap((one) => (one !== null && 'why' in one ? [one] : [])),
  }
}

/** Lists the entries of a folder by name; none if there is no such folder or it may not be listed. */
async function listFolder(folder: string) {
  try {
    const entries = await readdir(folder, { withFileTypes: true })
    return entries.toSorted((one, other) => (one.name < other.name ? -1 : 1)).slice(0, MAX_FILES)
  } catch {
    return []
  }
}

async function listSkills(folder: string, origin: Candidate['origin']): Promise<readonly Candidate[]> {
  const entries = await listFolder(folder)
  return entries
    .filter((entry) => entry.isDirectory() || entry.isSymbolicLink())
    .map(({ name }) => ({ kind: 'skill', name, path: join(folder, name, 'SKILL.md'), origin }))
}

/** Lists the commands of a folder and of the folders in it, whose names stand before theirs: `frontend:review`. */
async function listCommands(
  folder: string,
  origin: Candidate['origin'],
  names: readonly string[] = [],
): Promise<readonly Candidate[]> {
  const entries = await listFolder(folder)
  const found = await Promise.all(
    entries.map(async (entry): Promise<readonly Candidate[]> => {
      const path = join(folder, entry.name)
      if (entry.isDirectory())
        return names.length >= MAX_DEPTH ? [] : listCommands(path, origin, [...names, entry.name])
      if (!entry.name.endsWith('.md')) return []
      const name = [...names, entry.name.slice(0, -'.md'.length)].join(':')
      return [{ kind: 'command', name, path, origin }]
    }),
  )
  return found.flat().slice(0, MAX_FILES)
}

const disk = createDiskFileReader('/')

async function readCandidate(
  { kind, name, path, origin }: Candidate,
  { isPermitted }: PromptFilePlaces,
): Promise<FoundPromptFile | PromptFiles['unread'][number] | null> {
  let real: string
  try {
    real = normalizePath(await realpath(path))
  } catch (error) {
    const isMissing = ['ENOENT', 'ENOTDIR'].includes(readErrorCode(error) ?? '')
    return isMissing ? null : { path, why: error instanceof Error ? error.message : String(error) }
  }
  if (origin === 'project' && !(isPermitted(path) && isPermitted(real)))
    return { path, why: 'it is outside what may be read' }
  const read = await disk.read(real, MAX_BYTES)
  if (!read.ok) return { path, why: read.why }
  if (!read.isWhole) return { path, why: `it has more than ${MAX_BYTES} bytes` }
  const parsed = parsePromptFile(read.text, name)
  if (parsed === null) return { path, why: 'its name is not made of letters, digits, dots and hyphens' }
  // A command is called by the name of its file.
  const named = kind === 'command' ? { ...parsed, name } : parsed
  return { ...named, kind, path, folder: real.slice(0, real.lastIndexOf('/')) || '/', origin }
}
