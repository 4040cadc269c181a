/** The settings of MCP servers, in the format of `.mcp.json` that other programs use: their checks and their variables. */
import { isObject } from '../json-value.ts'

/** The settings of an MCP server. Fields of other programs are ignored. */
export interface McpServerSettings {
  /** Default: `stdio` if there is a `command`, else `http`. */
  readonly type?: string
  readonly command?: string
  readonly args?: readonly string[]
  /** Environment variables of the process, in addition to those of this program. */
  readonly env?: Readonly<Record<string, string>>
  readonly url?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Milliseconds that a call may take without a sign of progress. Default: 10 minutes. */
  readonly timeout?: number
  /** True if the server must not be started. */
  readonly disabled?: boolean
}

/** How to reach a server: a process to start, or an address. Variables are already replaced. */
export type ServerEndpoint =
  | {
      readonly command: string
      readonly args: readonly string[]
      readonly env: Readonly<Record<string, string>>
    }
  | { readonly url: string; readonly headers: Readonly<Record<string, string>> }

const TYPES: readonly unknown[] = [undefined, 'stdio', 'http', 'streamable-http']

/** Returns what is wrong with the settings of a server, as a part of a sentence; null if they are valid. */
export function findServerProblem(name: string, value: unknown): string | null {
  const describeFault = (what: string): string => `the server ${name}: expected ${what}`
  if (!isObject(value)) return describeFault('an object with command or url')
  const { type, command, url, args = [], env = {}, headers = {}, timeout } = value
  if (!TYPES.includes(type)) return describeFault(`type stdio or http, not ${JSON.stringify(type)}`)
  if (type === undefined && command === undefined && url === undefined)
    return describeFault('a command or a url')
  const isProcess = type === 'stdio' || (type === undefined && command !== undefined)
  if (isProcess && (typeof command !== 'string' || command === '')) return describeFault('a command')
  if (!isProcess && (typeof url !== 'string' || url === '')) return describeFault('a url')
  if (!Array.isArray(args) || !args.every((each) => typeof each === 'string'))
    return describeFault('args as a list of texts')
  for (const [field, texts] of Object.entries({ env, headers }))
    if (!isObject(texts) || !Object.values(texts).every((each) => typeof each === 'string'))
      return describeFault(`${field} as an object of texts`)
  if (timeout !== undefined && !(typeof timeout === 'number' && timeout > 0))
    return describeFault('timeout in milliseconds')
  return null
}

/** Returns what was expected of `mcpServers` in a settings file, with the first problem; null if it is valid. */
export function findServersProblem(value: unknown): string | null {
  if (!isObject(value)) return 'an object of servers by name'
  const problems = Object.entries(value).flatMap(([name, server]) => findServerProblem(name, server) ?? [])
  return problems.length === 0 ? null : `MCP servers by name; ${problems[0]}`
}

/**
 * Returns where a server is, with `${NAME}` and `${NAME:-default}` replaced by environment variables. Throws if a variable is not set or
 * the address is invalid.
 */
export function resolveServerEndpoint(
  { type, command, args = [], env = {}, url, headers = {} }: McpServerSettings,
  variables: Readonly<Record<string, string | undefined>>,
): ServerEndpoint {
  const fill = (text: string): string => fillVariables(text, variables)
  const fillAll = (texts: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, fill(text)]))
  if (command !== undefined && (type === undefined || type === 'stdio'))
    return { command: fill(command), args: args.map(fill), env: fillAll(env) }
  const address = fill(url ?? '')
  if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol))
    throw new Error(`${address} is not an address of the web.`)
  return { url: address, headers: fillAll(headers) }
}

function fillVariables(text: string, variables: Readonly<Record<string, string | undefined>>): string {
  return text.replaceAll(/\$\{(\w+)(?::-([^}]*))?\}/g, (_, name: string, fallback: string | undefined) => {
    const value = variables[name] ?? fallback
    if (value === undefined) throw new Error(`The environment variable ${name} is not set.`)
    return value
  })
}
