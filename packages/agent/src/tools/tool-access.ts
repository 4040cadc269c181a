/** Describes what a tool call would access, so that permission rules can be checked before it runs. */

import { lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { matchesStars } from 'tidemark/tools'
import { isObject } from '../json-value.ts'
import { splitGlob } from './glob-pattern.ts'

/** What a tool call would access. */
export interface ToolAccess {
  /** `none`: the call accesses nothing outside the session. `server`: a tool of an MCP server. Unknown tools count as `execute`. */
  readonly kind: 'read' | 'write' | 'execute' | 'network' | 'server' | 'none'
  /** Files or folders, absolute and without symbolic links, even if they do not exist yet. */
  readonly paths: readonly string[]
  /** The same files or folders as the call names them: absolute, with symbolic links. */
  readonly namedPaths?: readonly string[]
  /** The shell command; for Skill and Task, the name that rules are compared with. */
  readonly command?: string
  /** The folder in which the command starts. Default: the working directory. */
  readonly folder?: string
  /** True if the call asks to run outside the sandbox. */
  readonly isOutside?: boolean
  readonly url?: string
  /** True if the tool's server declares that it only reads. */
  readonly isReadOnly?: boolean
}

/**
 * The names of all tools that agents can have. Other names in rules, except of MCP tools, are refused: a misspelt deny rule would
 * deny nothing.
 */
export const AGENT_TOOL_NAMES: readonly string[] = [
  ...['Read', 'Write', 'Edit', 'MultiEdit', 'Bash', 'BashOutput', 'KillShell', 'Grep', 'Glob', 'WebFetch'],
  ...['TodoWrite', 'AskUser', 'Skill', 'Task', 'TaskOutput', 'TaskStop', 'ExitPlanMode', 'history'],
]

/** Returns true if `given`, in a rule or definition, means this tool: `Read`, `mcp__files` for a server, or `mcp__*`. */
export function matchesToolName(given: string, tool: string): boolean {
  if (given === tool) return true
  if (given.includes('*')) return matchesStars(given, tool)
  return /^mcp__(?!.*__)/.test(given) && tool.startsWith(`${given}__`)
}

/** The type of a subagent if the call does not name one. */
export const DEFAULT_SUBAGENT_TYPE = 'general-purpose'

/**
 * Tools that access nothing outside the session. BashOutput and KillShell concern commands that were already permitted, and a subagent
 * needs permission for each of its own calls.
 */
const INNER_TOOLS = new Set([
  ...['BashOutput', 'KillShell', 'TodoWrite', 'AskUser', 'TaskOutput', 'TaskStop', 'ExitPlanMode', 'history'],
])

/**
 * Returns what a call of an agent tool would access. `cwd` is the session's working directory. Paths are resolved as
 * the tools resolve them: a symbolic link counts as the place where it leads.
 */
export function describeToolAccess(name: string, input: unknown, cwd: string): ToolAccess {
  const fields: Readonly<Record<string, unknown>> = isObject(input) ? input : {}
  const readText = (field: string): string | null => {
    const value = fields[field]
    return typeof value === 'string' ? value : null
  }
  const describePath = (kind: 'read' | 'write', path: string): ToolAccess => ({
    kind,
    paths: [resolveRealPath(path)],
    namedPaths: [path],
  })
  const describeFile = (kind: 'read' | 'write'): ToolAccess => {
    const path = readText('file_path')
    return path === null ? { kind, paths: [] } : describePath(kind, resolveToolPath(path, cwd))
  }
  switch (name) {
    case 'Read':
      return describeFile('read')
    case 'Grep':
      return describePath('read', resolveToolPath(readText('path') ?? '.', cwd))
    case 'Glob': {
      const root = resolveToolPath(readText('path') ?? '.', cwd)
      const { folder } = splitGlob(readText('pattern') ?? '')
      return describePath('read', folder === '' ? root : resolveToolPath(folder, root))
    }
    case 'Write':
    case 'Edit':
    case 'MultiEdit':
      return describeFile('write')
    case 'Bash':
      return {
        kind: 'execute',
        paths: [],
        command: readText('command') ?? '',
        ...(fields.outside === true ? { isOutside: true } : {}),
      }
    case 'Skill':
      // The name of the skill takes the place of the command, so that rules such as Skill(deploy) match it.
      return { kind: 'none', paths: [], command: (readText('skill') ?? '').trim() }
    case 'Task':
      return { kind: 'none', paths: [], command: readText('subagent_type')?.trim() || DEFAULT_SUBAGENT_TYPE }
    case 'WebFetch':
      return { kind: 'network', paths: [], url: readText('url') ?? '' }
    default:
      if (name.startsWith('mcp__')) return { kind: 'server', paths: [] }
      return { kind: INNER_TOOLS.has(name) ? 'none' : 'execute', paths: [] }
  }
}

// Resolves paths in tool inputs. Tools and permission rules use the same functions, so that they agree.

/** Returns the absolute path of a path in a tool input, with its links. `~` is the home directory; others start from `cwd`. */
export function resolveToolPath(path: string, cwd: string): string {
  if (path === '~' || path.startsWith('~/')) return resolve(homedir(), path.slice(2))
  return resolve(cwd, path)
}

const MAX_LINKS = 40
/** Maximum length of a path: no file on Linux or macOS has a longer one. */
export const MAX_PATH_CHARACTERS = 4_096

/**
 * Returns the place that an absolute path leads to, without symbolic links, even if nothing exists there yet: links in
 * the folders above are followed, and so is a link whose target is missing, because writing to it creates the target.
 * A path that is too long for any file is returned as it is.
 */
export function resolveRealPath(path: string, linksLeft: number = MAX_LINKS): string {
  if (path.length > MAX_PATH_CHARACTERS) return path
  try {
    return realpathSync(path)
  } catch {
    const parent = dirname(path)
    if (parent === path) return path
    const target = linksLeft > 0 ? readLink(path) : null
    if (target !== null)
      return resolveRealPath(resolve(resolveRealPath(parent, linksLeft), target), linksLeft - 1)
    return join(resolveRealPath(parent, linksLeft), basename(path))
  }
}

function readLink(path: string): string | null {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : null
  } catch {
    return null
  }
}

/** Returns true if `path` is `folder` or lies in it. Both must be absolute and without symbolic links. */
export function isPathWithin(path: string, folder: string): boolean {
  const between = relative(folder, path)
  return between === '' || (between !== '..' && !between.startsWith(`..${sep}`) && !isAbsolute(between))
}

/** Returns the path as shown to the model: relative if it lies in `cwd`, else absolute. */
export function toShownPath(path: string, cwd: string): string {
  return isPathWithin(path, cwd) ? relative(cwd, path) || '.' : path
}

/** Returns true if there is a regular file at a path, or where a link at it leads. Throws if it may not be looked at. */
export function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true
}
