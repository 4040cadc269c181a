/**
 * Which session a subagent's log belongs to. Claude Code puts it into `<session>/subagents/agent-<id>.jsonl`;
 * until late in 2025 it stood beside the session's log, and only its lines say whose it is.
 */
import { readdir } from 'node:fs/promises'
import { basename, dirname, join, sep } from 'node:path'
import { isObject, readJson } from '@tidemark/core'
import type { FoundLog } from './found-log.ts'
import { openLineFeed } from './line-feed.ts'
import { existing, type FoundFile, walk } from './walk.ts'

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
