/**
 * Decides which tools of MCP servers are offered to the model. Servers start late, fail, restart, and list tools in any order, and each
 * change of the offer may break the prompt cache. So after the first request no tool leaves the offer: it takes new and changed tools once,
 * and later new ones where that is free. Other changes wait for the next compaction, which writes a new prefix anyway.
 */
import { createHash } from 'node:crypto'
import type { JsonObject } from '../json-value.ts'

/** A tool as its server describes it. */
export interface McpTool {
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonObject
  /** True if the server declares that the tool changes nothing. */
  readonly isReadOnly: boolean
}

/** What one server offers. */
export interface ServerListing {
  readonly tools: readonly McpTool[]
  readonly instructions: string | null
  readonly hasResources: boolean
}

/** Listings by server name, spelled as in the names of tools and in rules. */
export type ServerListings = Readonly<Record<string, ServerListing>>

export interface ToolCatalogue {
  /** What the model is offered. */
  readonly offered: ServerListings
  /** The last listing of each server. A server that has ended keeps its listing. */
  readonly latest: ServerListings
  /** True if the next request begins with a new prefix, so that any change is free. */
  readonly isPrefixNew: boolean
  /** True if the offer has taken new or changed tools since the prefix began. */
  readonly hasGrown: boolean
}

/** Creates a catalogue from what an earlier process offered in the same session; null in a new session. */
export function createToolCatalogue(earlier: ServerListings | null): ToolCatalogue {
  return {
    offered: earlier ?? {},
    latest: earlier ?? {},
    isPrefixNew: earlier === null,
    hasGrown: false,
  }
}

/** Returns the catalogue with the newest listing of a server. What the model is offered does not change before `withUpdatedOffer`. */
export function withListing(catalogue: ToolCatalogue, server: string, listing: ServerListing): ToolCatalogue {
  const kept = findListing(catalogue.latest, server)
  const latest = { ...catalogue.latest, [server]: kept === undefined ? listing : reuseTools(kept, listing) }
  return { ...catalogue, latest }
}

/** Finds the listing of a server. Checks own properties, because a server may be called `constructor`. */
function findListing(listings: ServerListings, server: string): ServerListing | undefined {
  return Object.hasOwn(listings, server) ? listings[server] : undefined
}

/** Returns the listing, in which each unchanged tool is the known object, even if the order of its fields differs. */
function reuseTools(known: ServerListing, listing: ServerListing): ServerListing {
  const before = new Map(known.tools.map((tool) => [tool.name, tool]))
  const tools = listing.tools.map((tool) => {
    const kept = before.get(tool.name)
    return kept !== undefined && isSameContent(kept, tool) ? kept : tool
  })
  return { ...listing, tools }
}

/**
 * Returns the catalogue for the next request. `isSettled`: no server is still starting. `addsForFree`: the provider adds
 * tools in mid-conversation without a cache break.
 */
export function withUpdatedOffer(
  catalogue: ToolCatalogue,
  { isSettled, addsForFree }: { readonly isSettled: boolean; readonly addsForFree: boolean },
): ToolCatalogue {
  const { offered, latest, isPrefixNew, hasGrown } = catalogue
  if (isPrefixNew) return { offered: latest, latest, isPrefixNew: false, hasGrown: false }
  if (!addsForFree && (hasGrown || !isSettled)) return catalogue
  const news = listServersWithNews(catalogue).filter((server) => !hasGrown || hasNewTools(catalogue, server))
  if (news.length === 0) return catalogue
  const joined = Object.entries(latest).map(([server, listing]) => {
    const before = findListing(offered, server)
    if (before === undefined) return [server, listing]
    return [server, hasGrown ? addTools(before, listing) : addTools(listing, before)]
  })
  return { ...catalogue, offered: Object.fromEntries(joined), hasGrown: true }
}

/** Lists the servers with changes that the model is not offered yet: a new server, a new tool, or a tool with other inputs. */
export function listServersWithNews(catalogue: ToolCatalogue): readonly string[] {
  const { offered, latest } = catalogue
  return Object.keys(latest).filter((server) => {
    const known = new Map(findListing(offered, server)?.tools.map((tool) => [tool.name, tool]))
    const hasOtherInputs = latest[server]?.tools.some(({ name, inputSchema }) => {
      const before = known.get(name)
      return before !== undefined && !isSameContent(before.inputSchema, inputSchema)
    })
    return hasNewTools(catalogue, server) || hasOtherInputs === true
  })
}

function hasNewTools({ offered, latest }: ToolCatalogue, server: string): boolean {
  const before = findListing(offered, server)
  const known = new Set(before?.tools.map(({ name }) => name))
  return before === undefined || latest[server]?.tools.some(({ name }) => !known.has(name)) === true
}

/** Returns a listing with the missing tools of the other one added, because no tool is removed before the next compaction. */
function addTools(listing: ServerListing, other: ServerListing): ServerListing {
  const names = new Set(listing.tools.map(({ name }) => name))
  const added = other.tools.filter(({ name }) => !names.has(name))
  return { ...listing, tools: [...listing.tools, ...added] }
}

/** Marks that a compaction has written a new prefix. */
export function withNewPrefix(catalogue: ToolCatalogue): ToolCatalogue {
  return { ...catalogue, isPrefixNew: true }
}

function isSameContent(a: unknown, b: unknown): boolean {
  // Fast path: tools are compared before each request, and unchanged tools are the same objects.
  return a === b || toStableJson(a) === toStableJson(b)
}

/** Formats a value as JSON with the fields of objects in alphabetical order. */
function toStableJson(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => compareText(a, b)))
      : part,
  )
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

// Names. Providers accept letters, digits, `_` and `-`, and the shortest limit is 64 characters.

const NAME_LIMIT = 64
const SERVER_NAME_LIMIT = 32

/**
 * Returns the name of a server for names of tools and for rules. It contains no double underscore, also not at its ends, so that a rule for
 * one server never matches tools of another.
 */
export function toServerName(name: string): string {
  const plain = name
    .replaceAll(/[^a-zA-Z0-9_-]/g, '_')
    .replaceAll(/_{2,}/g, '_')
    .replaceAll(/^_|_$/g, '')
  return plain.slice(0, SERVER_NAME_LIMIT).replace(/_$/, '')
}

/** A tool that the model can call, by the name under which it is offered. */
interface NamedTool {
  readonly name: string
  readonly server: string
  readonly tool: McpTool
}

/** Lists all tools of some listings, independent of the order in which servers list them. */
export function listNamedTools(listings: ServerListings): readonly NamedTool[] {
  return Object.entries(listings).flatMap(([server, { tools }]) => nameTools(server, tools))
}

function nameTools(server: string, tools: readonly McpTool[]): readonly NamedTool[] {
  const prefix = `mcp__${server}__`
  // If two tools have the same name, the choice does not depend on their order.
  const unique = new Map(
    [...tools]
      .sort((a, b) => compareText(toStableJson(a), toStableJson(b)))
      .map((tool) => [tool.name, tool] as const),
  )
  const plainNames = [...unique.keys()].map(toPlainName)
  return [...unique.values()].map((tool) => {
    const plain = toPlainName(tool.name)
    const isTaken = plain !== tool.name && plainNames.filter((name) => name === plain).length > 1
    const isLong = prefix.length + plain.length > NAME_LIMIT
    if (!isTaken && !isLong) return { name: prefix + plain, server, tool }
    const hash = createHash('sha256').update(tool.name).digest('hex').slice(0, 8)
    return { name: `${(prefix + plain).slice(0, NAME_LIMIT - 9)}_${hash}`, server, tool }
  })
}

function toPlainName(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9_-]/g, '_')
}

/** Maximum characters of a server's instructions, and of a tool's description, that the model is shown. */
const TEXT_LIMIT = 2_048

/** Cuts a text of a server to a length that every request can carry, and says so. */
export function cutServerText(text: string): string {
  return text.length <= TEXT_LIMIT ? text : `${text.slice(0, TEXT_LIMIT).toWellFormed()} [cut]`
}

/** Formats the instructions of the offered servers as a section of the system prompt; null if there are none. */
export function formatServerInstructions(offered: ServerListings): string | null {
  const parts = Object.entries(offered)
    .sort(([a], [b]) => compareText(a, b))
    .flatMap(([server, { instructions }]) => (instructions === null ? [] : `## ${server}\n${instructions}`))
  if (parts.length === 0) return null
  const intro =
    '# MCP servers\nHow to use the tools of these servers, in the words of their makers. They are about those tools and nothing else.'
  return [intro, ...parts].join('\n\n')
}
