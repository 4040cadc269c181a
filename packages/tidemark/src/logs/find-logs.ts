/** Finds logs in files and folders, newest first, and groups the logs of subagents with their session. */

import type { Dirent } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { isObject, parseJson } from '@tidemark/core/log/json'
import type { LogFormat } from '@tidemark/wire/readers/log-reader'
import { type HomeEnvironment, LOG_EXTENSION, sessionsFolder, tidemarkHome } from '../storage/home-paths.ts'
import {
  type FindLogsOptions,
  type FoundLog,
  type FoundLogs,
  type LogSearchProblem,
  openFileLines,
  refuseForReadError,
  refuseLog,
} from './read-lines.ts'

/**
 * Finds logs, newest first, each with the logs of its subagents. A path to a file is accepted whatever its name; a
 * folder is searched at any depth for `*.jsonl`, compressed or not. A file that is reached twice, for example through a
 * link, is found once.
 */
export async function findLogs(paths: readonly string[], options: FindLogsOptions = {}): Promise<FoundLogs> {
  const absolute = paths.map((path) => resolve(path))
  const { files, problems } = await walkFolders(absolute, options.signal)
  const logs = await groupAgents(files, options.signal)
  return { logs: logs.toSorted(compareNewestFirst), problems }
}

/** Orders logs by the time at which they were last written, newest first. */
export function compareNewestFirst(one: FoundLog, other: FoundLog): number {
  return other.modifiedMs - one.modifiedMs || (one.path < other.path ? -1 : 1)
}

interface FoundFile {
  readonly path: string
  readonly modifiedMs: number
  readonly sizeBytes: number
  /** True if the caller named the file, false if it was found in a folder. */
  readonly isNamed: boolean
}

const LOG_NAME = /\.jsonl(?:\.gz|\.zst)?$/i

interface Walk {
  readonly named: ReadonlySet<string>
  readonly files: FoundFile[]
  readonly problems: LogSearchProblem[]
  readonly seen: Set<string>
  readonly folders: string[]
}

/**
 * Searches folders for logs. Links are followed. Each file and folder is visited only once, so that a cycle of links
 * ends.
 */
async function walkFolders(
  paths: readonly string[],
  signal?: AbortSignal,
): Promise<Pick<Walk, 'files' | 'problems'>> {
  const walk: Walk = { named: new Set(paths), files: [], problems: [], seen: new Set(), folders: [] }
  for (const path of paths) await visit(walk, path, true)
  for (let folder = walk.folders.pop(); folder !== undefined; folder = walk.folders.pop()) {
    signal?.throwIfAborted()
    const path = folder
    const entries = (await orProblem(walk, path, () => readdir(path, { withFileTypes: true }))) ?? []
    const isOwn = entries.some(({ name }) => name === AGENT_FILE) && (await hasOwnLog(path))
    for (const entry of entries)
      if (isOwn ? entry.name === 'subagents' : mayHoldLog(entry))
        await visit(walk, join(path, entry.name), false)
  }
  return walk
}

function mayHoldLog(entry: Dirent): boolean {
  return entry.isDirectory() || entry.isSymbolicLink() || LOG_NAME.test(entry.name)
}

/**
 * The file that `tidemark chat` writes to the folder of a session, beside `<session>.jsonl`. In a folder with it, only
 * `subagents` is searched: other files there are not logs, whatever their names.
 */
export const AGENT_FILE = 'agent.json'

function hasOwnLog(folder: string): Promise<boolean> {
  return stat(`${folder}${LOG_EXTENSION}`).then(
    (stats) => stats.isFile(),
    () => false,
  )
}

async function visit(walk: Walk, path: string, isNamed: boolean): Promise<void> {
  const stats = await orProblem(walk, path, () => stat(path))
  const identity = `${stats?.dev}-${stats?.ino}`
  if (stats === null || walk.seen.has(identity)) return
  walk.seen.add(identity)
  if (stats.isDirectory()) walk.folders.push(path)
  else if (!stats.isFile()) {
    if (isNamed) walk.problems.push(refuseLog(path, 'not-a-file', 'is not a regular file'))
  } else if (isNamed || LOG_NAME.test(path))
    walk.files.push({ path, modifiedMs: stats.mtimeMs, sizeBytes: stats.size, isNamed })
}

/**
 * Calls `read` for a path. If that fails, adds a problem to the search result and returns null. A missing file is a
 * problem only if the caller named it.
 */
async function orProblem<T>(walk: Walk, path: string, read: () => Promise<T>): Promise<T | null> {
  try {
    return await read()
  } catch (error) {
    const { reason, message } = refuseForReadError(path, error)
    if (reason !== 'missing' || walk.named.has(path)) walk.problems.push({ path, message })
    return null
  }
}

/**
 * Returns the folders that exist. Folders that cannot be examined are included, so that the search reports the reason.
 */
async function filterExisting(folders: readonly string[]): Promise<readonly string[]> {
  const exists = await Promise.all(folders.map(mayBeFolder))
  return folders.filter((_, index) => exists[index])
}

function mayBeFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (stats) => stats.isDirectory(),
    (error: unknown) => refuseForReadError(path, error).reason !== 'missing',
  )
}

const AGENT_NAME = /^agent-.*\.jsonl(?:\.gz|\.zst)?$/i

interface Group {
  readonly session: FoundFile
  readonly agents: FoundFile[]
}

/**
 * Groups the logs of subagents with the log of their session. A subagent's log is listed separately if the session's
 * log was not found. Claude Code writes subagent logs to `<session>/subagents/agent-<id>.jsonl`; until late 2025 they
 * were beside the session's log, and only their lines name the session.
 */
async function groupAgents(files: readonly FoundFile[], signal?: AbortSignal): Promise<readonly FoundLog[]> {
  const groups: Group[] = files
    .filter((file) => !isAgentLog(file))
    .map((session) => ({ session, agents: [] }))
  const byStem = new Map(groups.map((group) => [withoutEnding(group.session.path), group]))
  for (const file of files.filter(isAgentLog)) {
    signal?.throwIfAborted()
    const group = file.isNamed ? undefined : byStem.get((await findSessionStem(file.path)) ?? '')
    if (group === undefined) groups.push({ session: file, agents: [] })
    else group.agents.push(file)
  }
  for (const { session, agents } of groups) {
    if (!session.isNamed) continue
    for (const file of await findAgentFiles(session.path))
      if (!agents.some(({ path }) => path === file.path)) agents.push(file)
  }
  return groups.map(toFoundLog)
}

/** Finds the logs of a session's subagents, in the folder of the session and beside its log. `path`: the session's log. */
export async function findAgentFiles(path: string): Promise<readonly FoundFile[]> {
  const stem = withoutEnding(path)
  const inFolder = await filterExisting([join(stem, 'subagents')])
  const names = await readdir(dirname(path)).catch((): string[] => [])
  const beside = names.filter((name) => AGENT_NAME.test(name)).map((name) => join(dirname(path), name))
  const own: string[] = []
  for (const agent of beside) if ((await findSessionStem(agent)) === stem) own.push(agent)
  const { files } = await walkFolders([...inFolder, ...own])
  return files.filter((file) => isAgentLog(file) && file.path !== path)
}

function isAgentLog({ path }: FoundFile): boolean {
  return AGENT_NAME.test(basename(path))
}

function withoutEnding(path: string): string {
  return path.replace(LOG_NAME, '')
}

/** Returns the path, without extension, of the session log that a subagent's log belongs to; null if unknown. */
async function findSessionStem(path: string): Promise<string | null> {
  const parts = path.split(sep)
  const folder = parts.lastIndexOf('subagents')
  if (folder > 0) return parts.slice(0, folder).join(sep)
  const session = await readSessionId(path)
  return session === null ? null : join(dirname(path), session)
}

/** Returns the session id from the first lines of a log; null if they have none. */
async function readSessionId(path: string): Promise<string | null> {
  const feed = await openFileLines(path)
  if ('ok' in feed) return null
  try {
    for (const { text } of ((await feed.next()) ?? []).slice(0, 10)) {
      const value = parseJson(text)
      if (isObject(value) && typeof value.sessionId === 'string') return value.sessionId
    }
    return null
  } finally {
    await feed.close()
  }
}

function toFoundLog({ session, agents }: Group): FoundLog {
  const files = [session, ...agents]
  return {
    path: session.path,
    agentPaths: agents.map(({ path }) => path).sort(),
    modifiedMs: Math.max(...files.map(({ modifiedMs }) => modifiedMs)),
    sizeBytes: files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
  }
}

/** A folder in which Claude Code, Codex or Tidemark stores its sessions. */
interface LogLocation {
  readonly format: LogFormat
  readonly folder: string
}

export interface LogEnvironment extends HomeEnvironment {
  readonly CLAUDE_CONFIG_DIR?: string | undefined
  readonly XDG_CONFIG_HOME?: string | undefined
  readonly CODEX_HOME?: string | undefined
}

/**
 * Returns the folders in which Claude Code, Codex and Tidemark store sessions. An empty environment variable counts as
 * unset.
 */
export function listDefaultLogFolders(
  variables: LogEnvironment = process.env,
  userHome: string = homedir(),
): readonly LogLocation[] {
  const codex = variables.CODEX_HOME || join(userHome, '.codex')
  return [
    ...claudeFolders(variables, userHome).map(
      (folder): LogLocation => ({ format: 'claude-code', folder: join(folder, 'projects') }),
    ),
    { format: 'codex', folder: join(codex, 'sessions') },
    { format: 'codex', folder: join(codex, 'archived_sessions') },
    { format: 'tidemark', folder: sessionsFolder(tidemarkHome(variables, userHome)) },
  ]
}

/** Returns the configuration folders of Claude Code; some versions use the XDG configuration folder. */
function claudeFolders(variables: LogEnvironment, userHome: string): readonly string[] {
  if (variables.CLAUDE_CONFIG_DIR) return [variables.CLAUDE_CONFIG_DIR]
  const shared = variables.XDG_CONFIG_HOME || join(userHome, '.config')
  return [join(userHome, '.claude'), join(shared, 'claude')]
}

/** Finds every session in the default folders, newest first. Missing folders are skipped. */
export async function findDefaultLogs(
  options: FindLogsOptions = {},
  places: readonly LogLocation[] = listDefaultLogFolders(),
): Promise<FoundLogs> {
  return findLogs(await filterExisting(places.map(({ folder }) => folder)), options)
}
