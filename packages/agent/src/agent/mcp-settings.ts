/**
 * The MCP servers of a project: read from `.mcp.json`, and as items for trust. An item is the program to start or the address to contact,
 * with the content of the project's files that it runs.
 */
import { join } from 'node:path'
import { isObject } from '../json-value.ts'
import { findServerProblem, type McpServerSettings, resolveServerEndpoint } from '../mcp/server-settings.ts'
import { readWholeFile } from '../tools/file-content.ts'
import type { TrustItem } from './folder-trust.ts'
import { findCommandFiles, hashCommandFiles } from './hook-files.ts'

export type McpServerMap = Readonly<Record<string, McpServerSettings>>

/**
 * Reads `.mcp.json` of a folder. Other programs use this file, too, so unusable entries are only left out, with a sentence for the user.
 */
export async function readProjectServers(
  folder: string,
): Promise<{ readonly servers: McpServerMap; readonly notices: readonly string[] }> {
  const path = join(folder, '.mcp.json')
  try {
    const text = (await readWholeFile(path))?.bytes.toString('utf8')
    if (text === undefined) return { servers: {}, notices: [] }
    const value: unknown = JSON.parse(text)
    const given = isObject(value) ? value.mcpServers : undefined
    if (!isObject(given)) throw new Error('expected an object mcpServers')
    const checked = Object.entries(given).map(
      ([name, server]) => [name, server, findServerProblem(name, server)] as const,
    )
    const right = checked.filter(([, , problem]) => problem === null).map(([name, server]) => [name, server])
    const problems = checked.flatMap(([, , problem]) => problem ?? [])
    return {
      servers: Object.fromEntries(right),
      notices: problems.map((problem) => `Of ${path}, not everything is used: ${problem}.`),
    }
  } catch (error) {
    return { servers: {}, notices: [`The file ${path} is not used: ${(error as Error).message}.`] }
  }
}

interface ServerPart {
  readonly item: TrustItem
  /** The server alone, by name. */
  readonly mcpServers: McpServerMap
}

type Environment = Readonly<Record<string, string | undefined>>

/** Splits servers into single servers, each with its item for trust. */
export async function splitServersForTrust(
  servers: McpServerMap,
  folder: string,
  env: Environment,
): Promise<readonly ServerPart[]> {
  return await Promise.all(
    Object.entries(servers).map(async ([name, server]) => ({
      item: await describeServer(name, server, { folder, env }),
      mcpServers: { [name]: server },
    })),
  )
}

interface Place {
  readonly folder: string
  readonly env: Environment
}

async function describeServer(name: string, server: McpServerSettings, place: Place): Promise<TrustItem> {
  const { type, command, args, env, url, headers } = server
  const describe = (what: string, value: object | undefined): readonly string[] =>
    value === undefined || Object.keys(value).length === 0 ? [] : [`${what} ${JSON.stringify(value)}`]
  const program = findProgram(server, place)
  const files = program === null ? [] : await hashCommandFiles(program, place.folder)
  return {
    setting: 'mcpServers',
    parts: [
      `${name}:`,
      ...(type === undefined ? [] : [`(${type})`]),
      ...[command, url].flatMap((text) => text ?? []),
      ...describe('with', args),
      ...describe('env', env),
      ...describe('headers', headers),
    ],
    ...(files.length === 0 ? {} : { files }),
  }
}

/** Returns the command that starts a server; null if it is contacted, or cannot be started. */
function findProgram(
  server: McpServerSettings,
  { folder, env }: Place,
): { readonly command: string; readonly args: readonly string[] } | null {
  try {
    const address = resolveServerEndpoint(server, { ...env, CLAUDE_PROJECT_DIR: folder })
    return 'url' in address ? null : address
  } catch {
    return null
  }
}

/** Returns the real paths of the project's files that servers run. A program that changes one of them decides what runs. */
export async function listServerFiles(
  servers: McpServerMap,
  folder: string,
  env: Environment,
): Promise<readonly string[]> {
  const programs = Object.values(servers).flatMap((server) => findProgram(server, { folder, env }) ?? [])
  const files = await Promise.all(programs.map((program) => findCommandFiles(program, folder)))
  return [...new Set(files.flat().map(({ realPath }) => realPath))]
}

/**
 * Returns a check, made before each start of a server, whether its files are still those of the trusted `items`: null if so, otherwise a
 * sentence. A server in none of the items is the user's own and needs no check.
 */
export function createServerFileCheck(
  items: readonly TrustItem[],
  servers: McpServerMap,
  place: Place,
): (name: string) => Promise<string | null> {
  return async (name) => {
    const server = servers[name]
    if (server === undefined) return null
    const now = await describeServer(name, server, place)
    const trusted = items.filter(({ parts }) => JSON.stringify(parts) === JSON.stringify(now.parts))
    const isSame = trusted.some(({ files }) => JSON.stringify(files) === JSON.stringify(now.files))
    if (trusted.length === 0 || isSame) return null
    return 'A file that it runs has changed since you trusted it. It can be trusted again before the next start.'
  }
}
