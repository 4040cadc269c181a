/** Finds the logs that are meant by a list of files and folders: subagents' under their session, newest first. */

import type { Dirent, Stats } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { isObject, readJson } from '@tidemark/core'
import type { LogFormat } from '@tidemark/wire'
import { type HomeVariables, sessionsFolder, tidemarkHome } from '../storage/paths.ts'
import {
  type FindOptions,
  type FindProblem,
  type FoundLog,
  type FoundLogs,
  refuse,
  refuseForError,
} from './found-log.ts'
import { openLineFeed } from './read-lines.ts'

/**
 * A file is taken whatever its name; a folder is searched for `*.jsonl`, packed or not, at any depth. A file
 * that is reached twice, by a link or by name, is found once.
 */
export async function findLogs(paths: readonly string[], options: FindOptions = {}): Promise<FoundLogs> {
  const absolute = paths.map((path) => resolve(path))
  const { files, problems } = await walk(absolute, options.signal)
  const logs = await withAgents(files, options.signal)
  return { logs: logs.toSorted(newestFirst), problems }
}

function newestFirst(one: FoundLog, other: FoundLog): number {
  return other.modifiedMs - one.modifiedMs || (one.path < other.path ? -1 : 1)
}

// Walks folders for logs. Links are followed, each file and folder is visited once, so a circle ends.

export interface FoundFile {
  readonly path: string
  readonly modifiedMs: number
  readonly sizeBytes: number
  /** Named by the caller, and not merely found in a folder. */
  readonly isNamed: boolean
}

export interface Walked {
  readonly files: readonly FoundFile[]
  readonly problems: readonly FindProblem[]
}

const LOG_NAME = /\.jsonl(?:\.gz|\.zst)?$/i

interface Walk {
  readonly named: ReadonlySet<string>
  readonly files: FoundFile[]
  readonly problems: FindProblem[]
  readonly seen: Set<string>
  readonly folders: string[]
}

export async function walk(paths: readonly string[], signal?: AbortSignal): Promise<Walked> {
  const under: Walk = { named: new Set(paths), files: [], problems: [], seen: new Set(), folders: [] }
  for (const path of paths) await visit(under, path, true)
  for (let folder = under.folders.pop(); folder !== undefined; folder = under.folders.pop()) {
    signal?.throwIfAborted()
    await visitFolder(under, folder)
  }
  return under
}

async function visitFolder(under: Walk, folder: string): Promise<void> {
  const entries = await attempt(under, folder, () => readdir(folder, { withFileTypes: true }))
  for (const entry of entries ?? [])
    if (mayHoldLogs(entry)) await visit(under, join(folder, entry.name), false)
}

function mayHoldLogs(entry: Dirent): boolean {
  return entry.isDirectory() || entry.isSymbolicLink() || LOG_NAME.test(entry.name)
}

async function visit(under: Walk, path: string, isNamed: boolean): Promise<void> {
  const stats = await attempt(under, path, () => stat(path))
  if (stats === null || isSeen(under, stats)) return
  if (stats.isDirectory()) under.folders.push(path)
  else if (!stats.isFile()) {
    if (isNamed) under.problems.push(refuse(path, 'not-a-file', 'is no regular file'))
  } else if (isNamed || LOG_NAME.test(path))
    under.files.push({ path, modifiedMs: stats.mtimeMs, sizeBytes: stats.size, isNamed })
}

function isSeen(under: Walk, { dev, ino }: Stats): boolean {
  const identity = `${dev}-${ino}`
  const isSeen = under.seen.has(identity)
  under.seen.add(identity)
  return isSeen
}

/** What is gone when it is looked at, or is a link to nothing, is a problem only to whoever named it. */
async function attempt<T>(under: Walk, path: string, look: () => Promise<T>): Promise<T | null> {
  try {
    return await look()
  } catch (error) {
    const { reason, message } = refuseForError(path, error)
    if (reason !== 'missing' || under.named.has(path)) under.problems.push({ path, message })
    return null
  }
}

/** Those of the folders that are there, or of which nobody can say: a walk then tells why. */
export async function existing(folders: readonly string[]): Promise<readonly string[]> {
  const there = await Promise.all(folders.map(mayBeFolder))
  return folders.filter((_, index) => there[index])
}

function mayBeFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (stats) => stats.isDirectory(),
    (error: unknown) => refuseForError(path, error).reason !== 'missing',
  )
}

// Which session a subagent's log belongs to. Claude Code puts it into `<session>/subagents/agent-<id>.jsonl`;
// until late in 2025 it stood beside the session's log, and only its lines say whose it is.

const AGENT_NAME = /^agent-.*\.jsonl(?:\.gz|\.zst)?$/i
const ENDING = /\.jsonl(?:\.gz|\.zst)?$/i

interface Group {
  readonly session: FoundFile
  readonly agents: FoundFile[]
}

/** Sessions with their agents' logs. An agent's log whose session is not among them stands for itself. */
export async function withAgents(
  files: readonly FoundFile[],
  signal?: AbortSignal,
): Promise<readonly FoundLog[]> {
  const groups: Group[] = files.filter((file) => !isAgents(file)).map((session) => ({ session, agents: [] }))
  const byStem = new Map(groups.map((group) => [stemOf(group.session.path), group]))
  for (const file of files.filter(isAgents)) {
    signal?.throwIfAborted()
    const group = file.isNamed ? undefined : byStem.get((await sessionStem(file.path)) ?? '')
    if (group === undefined) groups.push({ session: file, agents: [] })
    else group.agents.push(file)
  }
  const found = groups.filter(({ session }) => session.isNamed)
  for (const group of found) addMissing(group.agents, await agentFilesOf(group.session.path))
  return groups.map(logOf)
}

/** The logs of the agents of a session, given its log. */
export async function agentFilesOf(path: string): Promise<readonly FoundFile[]> {
  const stem = stemOf(path)
  const inFolder = await existing([join(stem, 'subagents')])
  const names = await readdir(dirname(path)).catch((): string[] => [])
  const beside = names.filter((name) => AGENT_NAME.test(name)).map((name) => join(dirname(path), name))
  const own: string[] = []
  for (const agent of beside) if ((await sessionStem(agent)) === stem) own.push(agent)
  const { files } = await walk([...inFolder, ...own])
  return files.filter((file) => isAgents(file) && file.path !== path)
}

function addMissing(agents: FoundFile[], more: readonly FoundFile[]): void {
  for (const file of more) if (!agents.some(({ path }) => path === file.path)) agents.push(file)
}

function isAgents({ path }: FoundFile): boolean {
  return AGENT_NAME.test(basename(path))
}

function stemOf(path: string): string {
  return path.replace(ENDING, '')
}

/** The path of the session's log without its ending. */
async function sessionStem(path: string): Promise<string | null> {
  const parts = path.split(sep)
  const folder = parts.lastIndexOf('subagents')
  if (folder > 0) return parts.slice(0, folder).join(sep)
  const session = await sessionIn(path)
  return session === null ? null : join(dirname(path), session)
}

/** The session that the first lines of a log name. */
async function sessionIn(path: string): Promise<string | null> {
  const feed = await openLineFeed(path)
  if ('ok' in feed) return null
  try {
    const lines = (await feed.next()) ?? []
    return (
      lines
        .slice(0, 10)
        .map(sessionOf)
        .find((session) => session !== null) ?? null
    )
  } finally {
    await feed.close()
  }
}

function sessionOf({ text }: { readonly text: string }): string | null {
  const value = readJson(text)
  return isObject(value) && typeof value.sessionId === 'string' ? value.sessionId : null
}

function logOf({ session, agents }: Group): FoundLog {
  const files = [session, ...agents]
  return {
    path: session.path,
    agentPaths: agents.map(({ path }) => path).sort(),
    modifiedMs: Math.max(...files.map(({ modifiedMs }) => modifiedMs)),
    sizeBytes: files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
  }
}

// Where Claude Code, Codex and Tidemark keep their sessions.

export interface LogPlace {
  readonly format: LogFormat
  readonly folder: string
}

export interface PlaceVariables extends HomeVariables {
  readonly CLAUDE_CONFIG_DIR?: string | undefined
  readonly XDG_CONFIG_HOME?: string | undefined
  readonly CODEX_HOME?: string | undefined
}

/** An empty variable counts as unset. */
export function defaultPlaces(
  variables: PlaceVariables = process.env,
  userHome: string = homedir(),
): readonly LogPlace[] {
  const codex = variables.CODEX_HOME || join(userHome, '.codex')
  return [
    ...claudeFolders(variables, userHome).map((folder) => place('claude-code', join(folder, 'projects'))),
    place('codex', join(codex, 'sessions')),
    place('codex', join(codex, 'archived_sessions')),
    place('tidemark', sessionsFolder(tidemarkHome(variables, userHome))),
  ]
}

/** Some versions keep their settings where the XDG rules say. */
function claudeFolders(variables: PlaceVariables, userHome: string): readonly string[] {
  if (variables.CLAUDE_CONFIG_DIR) return [variables.CLAUDE_CONFIG_DIR]
  const shared = variables.XDG_CONFIG_HOME || join(userHome, '.config')
  return [join(userHome, '.claude'), join(shared, 'claude')]
}

function place(format: LogFormat, folder: string): LogPlace {
  return { format, folder }
}

/** Every session in those places, newest first. A place that is not there has none. */
export async function findDefaultLogs(
  options: FindOptions = {},
  places: readonly LogPlace[] = defaultPlaces(),
): Promise<FoundLogs> {
  return findLogs(await existing(places.map(({ folder }) => folder)), options)
}
