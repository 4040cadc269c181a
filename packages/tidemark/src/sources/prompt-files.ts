/**
 * Finds the skills (`.claude/skills/NAME/SKILL.md`), slash commands (`.claude/commands/NAME.md`) and agents
 * (`.claude/agents/NAME.md`) of a user and of a project on the disk. A project's file is read only if its path, with links
 * resolved, is permitted. A file that has not changed since it was last read is not read again.
 */
import { readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { normalizePath } from '@tidemark/core/facts/tool-calls'
import { readErrorCode } from '../storage/file-system.ts'
import { createDiskFileReader } from './disk-sources.ts'
import { type FrontMatter, parseFrontMatter, readMatterList, readMatterText } from './front-matter.ts'

export interface PromptFilePlaces {
  /** The user's home; null if the user's own files are not read. */
  readonly home: string | null
  /** The project's folder. */
  readonly project: string
  /** Returns true if a file of the project may be read. Not called for the user's own files. */
  readonly isPermitted: (path: string) => boolean
}

/** A file with a prompt: a skill, a slash command or the definition of an agent. */
interface PromptFile {
  readonly name: string
  /** Describes the purpose to the model and the user; empty if the file has no description. */
  readonly description: string
  /** The text without front matter. */
  readonly body: string
  /** False if only the user may invoke it. */
  readonly isForModel: boolean
  /** False if only the model may invoke it. */
  readonly isForUser: boolean
  /** Permission rules that the file asks for while it is in use. */
  readonly allowedTools: readonly string[]
  /** The front matter, for fields that only one kind of file has. */
  readonly matter: FrontMatter
}

export interface FoundPromptFile extends PromptFile {
  readonly kind: 'skill' | 'command' | 'agent'
  readonly path: string
  /** The folder of the file, with links resolved. */
  readonly folder: string
  readonly origin: 'user' | 'project'
}

export interface PromptFiles {
  /** One file for each name: the user's before the project's, and skills before commands. */
  readonly files: readonly FoundPromptFile[]
  /** All files, in the order above, including those whose name an earlier file has. */
  readonly all: readonly FoundPromptFile[]
  /** Files that exist and could not, or must not, be read, with the reason. */
  readonly unread: readonly { readonly path: string; readonly why: string }[]
}

/** Bytes above which a file is not read. Prompts are instructions, not data. */
const MAX_BYTES = 500_000
/** Maximum entries of a folder that are looked at, and files that are read below it. */
const MAX_FILES = 500
/** Maximum levels of folders that are searched. */
const MAX_DEPTH = 4

interface Candidate extends Pick<FoundPromptFile, 'kind' | 'path' | 'origin'> {
  /** The name of the folder or the file. */
  readonly name: string
}

/**
 * Reads the skills and commands of user and project. `kind`: reads only files of this kind, also agents, which are
 * otherwise left out. Files that cannot be read are listed as `unread`.
 */
export async function readPromptFiles(
  places: PromptFilePlaces,
  kind?: FoundPromptFile['kind'],
): Promise<PromptFiles> {
  const { home, project } = places
  const roots = [
    ...(home === null ? [] : [{ root: join(home, '.claude'), origin: 'user' as const }]),
    { root: join(project, '.claude'), origin: 'project' as const },
  ]
  const kinds = kind === undefined ? (['skill', 'command'] as const) : [kind]
  const lists = kinds.flatMap((each) =>
    roots.map(({ root, origin }) => {
      const folder = join(root, `${each}s`)
      return each === 'skill' ? listSkills(folder, origin) : listMarkdown(folder, { kind: each, origin })
    }),
  )
  const candidates = (await Promise.all(lists)).flat()
  const found = await Promise.all(candidates.map((candidate) => readCandidate(candidate, places)))
  const all = found.flatMap((one) => (one !== null && 'body' in one ? [one] : []))
  return {
    files: keepFirstOfName(all),
    all,
    unread: found.flatMap((one) => (one !== null && 'why' in one ? [one] : [])),
  }
}

/** Returns the first file of each name. */
function keepFirstOfName(files: readonly FoundPromptFile[]): readonly FoundPromptFile[] {
  const first = new Map<string, FoundPromptFile>()
  for (const file of files) if (!first.has(file.name)) first.set(file.name, file)
  return [...first.values()]
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

/** Lists the commands or agents of a folder and its subfolders. The name of a subfolder is a prefix: `frontend:review`. */
async function listMarkdown(
  folder: string,
  about: Pick<Candidate, 'kind' | 'origin'>,
  names: readonly string[] = [],
): Promise<readonly Candidate[]> {
  const entries = await listFolder(folder)
  const found = await Promise.all(
    entries.map(async (entry): Promise<readonly Candidate[]> => {
      const path = join(folder, entry.name)
      if (entry.isDirectory())
        return names.length >= MAX_DEPTH ? [] : listMarkdown(path, about, [...names, entry.name])
      if (!entry.name.endsWith('.md')) return []
      const name = [...names, entry.name.slice(0, -'.md'.length)].join(':')
      return [{ ...about, name, path }]
    }),
  )
  return found.flat().slice(0, MAX_FILES)
}

const disk = createDiskFileReader('/')

type FoundFile = FoundPromptFile | PromptFiles['unread'][number]

async function readCandidate(
  candidate: Candidate,
  { isPermitted }: PromptFilePlaces,
): Promise<FoundFile | null> {
  const { path, origin } = candidate
  const mayRead = (real: string): boolean => origin === 'user' || (isPermitted(path) && isPermitted(real))
  const forbidden = { path, why: 'it is outside what may be read' }
  try {
    const version = await readVersion(path)
    const known = version === null ? undefined : unchangedFiles.get(`${origin} ${path}`)
    if (known !== undefined && known.version === version) return mayRead(known.real) ? known.found : forbidden
    const real = normalizePath(await realpath(path))
    if (!mayRead(real)) return forbidden
    const found = await readFound(candidate, real)
    if (version !== null) keepUnchanged(`${origin} ${path}`, { version, real, found })
    return found
  } catch (error) {
    const isMissing = ['ENOENT', 'ENOTDIR'].includes(readErrorCode(error) ?? '')
    return isMissing ? null : { path, why: error instanceof Error ? error.message : String(error) }
  }
}

// A cache of files that were read. Skills are checked before every request, and reading a hundred takes 20 ms. Cached
// files are compared with the disk on each use, so no clean-up is needed.

interface UnchangedFile {
  readonly version: string
  readonly real: string
  readonly found: FoundFile
}

const unchangedFiles = new Map<string, UnchangedFile>()
const MAX_UNCHANGED = 2_000
/** A file that was changed less than this many milliseconds ago may change again without a new modification time. */
const SETTLED_MS = 200

/**
 * Returns a text that differs after each change of a file; null if the last change is too recent. Throws if the file is
 * missing.
 */
async function readVersion(path: string): Promise<string | null> {
  const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true })
  const age = BigInt(Date.now()) - ctimeNs / 1_000_000n
  return age < SETTLED_MS ? null : [dev, ino, size, mtimeNs, ctimeNs].join(' ')
}

function keepUnchanged(key: string, file: UnchangedFile): void {
  if (unchangedFiles.size >= MAX_UNCHANGED) unchangedFiles.clear()
  unchangedFiles.set(key, file)
}

async function readFound({ kind, name, path, origin }: Candidate, real: string): Promise<FoundFile> {
  const read = await disk.read(real, MAX_BYTES)
  if (!read.ok) return { path, why: read.why }
  if (!read.isWhole) return { path, why: `it has more than ${MAX_BYTES} bytes` }
  const parsed = await parsePromptFile(read.text, name)
  if ('why' in parsed) return { path, why: parsed.why }
  // The name of a command is always the name of its file.
  const named = kind === 'command' ? { ...parsed, name } : parsed
  return { ...named, kind, path, folder: real.slice(0, real.lastIndexOf('/')) || '/', origin }
}

const NAME = /^[A-Za-z0-9][\w.:-]{0,63}$/

/** Parses a file. `name`: the name of its folder or file. */
async function parsePromptFile(text: string, name: string): Promise<PromptFile | { readonly why: string }> {
  const parsed = await parseFrontMatter(text)
  if (!parsed.ok) return parsed
  const { matter, body } = parsed
  const own = readMatterText(matter, 'name') ?? ''
  const chosen = NAME.test(own) ? own : name
  if (!NAME.test(chosen)) return { why: 'its name is not made of letters, digits, dots and hyphens' }
  const described = [readMatterText(matter, 'description'), readMatterText(matter, 'when_to_use')]
  return {
    name: chosen,
    description: described
      .filter((part) => part !== null && part !== '')
      .join(' ')
      .replaceAll(/\s+/g, ' '),
    body,
    isForModel: readMatterText(matter, 'disable-model-invocation')?.toLowerCase() !== 'true',
    isForUser: readMatterText(matter, 'user-invocable')?.toLowerCase() !== 'false',
    allowedTools:
      readMatterList(matter, 'allowed-tools')
        .join(' ')
        .match(/[\w*-]*\w[\w*]*(?:\([^()]*\))?/g) ?? [],
    matter,
  }
}
