/**
 * The MCP servers of a session. They start in the background; one that hangs delays calls of its tools, and the first request by a few
 * seconds. A server that has ended keeps its tools in the offer, and is started again at the next prompt or when one of them is called.
 */
import { readFile } from 'node:fs/promises'
import type { ToolOutput } from 'tidemark'
import { writeFileAtomic } from 'tidemark/tools'
import { isObject, type JsonObject } from '../json-value.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import { type AgentTool, type AgentToolContext, defineTool } from '../tools/tool-definition.ts'
import { createMcpServer, type McpServer, type NotifyUser } from './mcp-server.ts'
import type { ServerCallOptions, ServerConnection } from './server-connection.ts'
import type { McpServerSettings } from './server-settings.ts'
import {
  createToolCatalogue,
  formatServerInstructions,
  listNamedTools,
  listServersWithNews,
  type ServerListings,
  type ToolCatalogue,
  toServerName,
  withListing,
  withNewPrefix,
  withUpdatedOffer,
} from './tool-catalogue.ts'
import { type ServerResult, toToolOutput } from './tool-results.ts'

interface McpOptions {
  readonly servers: Readonly<Record<string, McpServerSettings>>
  /** The working directory of the servers. */
  readonly folder: string
  /** Environment variables of the servers, and of `${NAME}` in their settings. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** The file that stores the offered tools, for a process that resumes the session. */
  readonly stateFile: string
  /** The folder for results that are not text. */
  readonly outputFolder: string
  /** True if the provider adds tools in mid-conversation without a cache break. */
  readonly addsForFree: boolean
  /** Returns a reason not to start a server, such as a script that has changed since the user trusted it. */
  readonly findObjection?: (server: string) => Promise<string | null>
  /** Returns how a server's process is confined. If omitted, it is not confined. */
  readonly confine?: Sandbox['enter']
  /** Called with a sentence for the user, once for each problem. */
  readonly onNotice?: (message: string) => void
  /** Milliseconds that the first request waits for servers. Default: 3 seconds. */
  readonly firstWait?: number
  /** Milliseconds for the start of a server. Default: 30 seconds. */
  readonly startTimeout?: number
}

export interface McpServers {
  /** The offered tools by name. The object changes only if the tools change. */
  tools(): Readonly<Record<string, AgentTool>>
  /**
   * Finds a tool that is not offered yet but that the model calls by name: waits until its server has started. Null if no server has the
   * tool; rejects if its server cannot be started.
   */
  findTool(name: string): Promise<AgentTool | null>
  isReadOnly(tool: string): boolean
  /** Waits a short time for servers that start, and returns their instructions. Called before each request. */
  prepareRequest(): Promise<string | null>
  /** Returns the instructions of the servers whose tools are offered. */
  readInstructions(): string | null
  /** Called after a compaction: the next request begins with a new prefix. */
  noteCompaction(): void
  /** Restarts servers that have ended or failed, in the background. */
  restart(): void
  close(): Promise<void>
}

const FIRST_WAIT = 3_000
const START_TIMEOUT = 30_000

/** Starts the servers and returns without waiting for them. Faults are passed to `onNotice`. */
export async function openMcpServers(options: McpOptions): Promise<McpServers> {
  const { folder, env, stateFile, addsForFree, findObjection, startTimeout = START_TIMEOUT } = options
  const stop = new AbortController()
  const notices = new Set<string>()
  const notify = (key: string, message: string): void => {
    if (notices.has(key) || stop.signal.aborted) return
    notices.add(key)
    options.onNotice?.(message)
  }
  const configured = nameServers(options.servers, notify)
  let catalogue = createToolCatalogue(await readState(stateFile, configured))
  const servers = new Map(
    [...configured].map(([name, { key, settings }]) => [
      name,
      createMcpServer(name, settings, {
        folder,
        env,
        startTimeout,
        signal: stop.signal,
        notify,
        ...(options.confine === undefined ? {} : { confine: options.confine }),
        findObjection: async () => (await findObjection?.(key)) ?? null,
        onListing(listing) {
          catalogue = withListing(catalogue, name, listing)
        },
      }),
    ]),
  )
  const listTools = createToolList(() => catalogue.offered, servers, options)
  const listLatest = createToolList(() => catalogue.latest, servers, options)
  const known = new Set(Object.keys(catalogue.offered))
  const unknown = [...servers].filter(([name]) => !known.has(name)).map(([, server]) => server.start())
  for (const name of known) servers.get(name)?.start()
  const firstStart = waitAtMost(Promise.allSettled(unknown), options.firstWait ?? FIRST_WAIT)
  return {
    tools: listTools,
    findTool: (name) => findStartingTool(name, servers, listLatest),
    isReadOnly: (tool) => isReadOnlyTool(tool, [listTools(), listLatest()]),
    async prepareRequest() {
      await firstStart
      const before = catalogue
      const isSettled = ![...servers.values()].some((server) => server.isStarting())
      catalogue = withUpdatedOffer(catalogue, { isSettled, addsForFree })
      if (catalogue.offered !== before.offered) await writeState(stateFile, catalogue)
      if (isSettled) notifyOfHeldTools(catalogue, notify)
      return formatServerInstructions(catalogue.offered)
    },
    readInstructions: () => formatServerInstructions(catalogue.offered),
    noteCompaction() {
      catalogue = withNewPrefix(catalogue)
    },
    restart() {
      for (const server of servers.values()) server.restart()
    },
    async close() {
      stop.abort()
      await Promise.all([...servers.values()].map((server) => server.close()))
    },
  }
}

function notifyOfHeldTools(catalogue: ToolCatalogue, notify: NotifyUser): void {
  for (const server of listServersWithNews(catalogue))
    notify(
      `held ${server}`,
      `The MCP server ${server} has new tools. They are offered after the next compaction, because they would break the prompt cache once more.`,
    )
}

interface ConfiguredServer {
  /** The name in the settings. */
  readonly key: string
  readonly settings: McpServerSettings
}

/** Returns the servers to start, keyed by the name that their tools use. */
function nameServers(
  given: McpOptions['servers'],
  notify: NotifyUser,
): ReadonlyMap<string, ConfiguredServer> {
  const servers = new Map<string, ConfiguredServer>()
  for (const [key, settings] of Object.entries(given)) {
    const name = toServerName(key)
    if (settings.disabled === true) continue
    if (name !== '' && !servers.has(name)) servers.set(name, { key, settings })
    else notify(`name ${key}`, `The MCP server ${key} is not started: it needs another name.`)
  }
  return servers
}

async function waitAtMost(work: Promise<unknown>, milliseconds: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds)
  })
  await Promise.race([work, limit])
  clearTimeout(timer)
}

// The offered tools are stored in a file, so that a resumed session begins with the tools in its cached prefix.

async function readState(
  path: string,
  servers: ReadonlyMap<string, ConfiguredServer>,
): Promise<ServerListings | null> {
  try {
    const { offered }: { offered?: unknown } = JSON.parse(await readFile(path, 'utf8'))
    if (!isObject(offered)) return null
    const kept = Object.entries(offered).filter(([name, listing]) => servers.has(name) && isListing(listing))
    return Object.fromEntries(kept) as unknown as ServerListings
  } catch {
    return null
  }
}

function isListing(value: unknown): boolean {
  if (!isObject(value) || !Array.isArray(value.tools)) return false
  return value.tools.every(
    (tool) => isObject(tool) && typeof tool.name === 'string' && isObject(tool.inputSchema),
  )
}

async function writeState(path: string, { offered }: ToolCatalogue): Promise<void> {
  // If the file cannot be written, a resumed session may have one cache break.
  await writeFileAtomic(path, `${JSON.stringify({ offered })}\n`, { durable: false }).catch(() => undefined)
}

// The tools.

/** Returns a function that lists the offered tools. The list is created again only if the offer has changed. */
function createToolList(
  readOffer: () => ServerListings,
  servers: ReadonlyMap<string, McpServer>,
  options: McpOptions,
): McpServers['tools'] {
  let last: { readonly offered: ServerListings; readonly tools: ReturnType<McpServers['tools']> } | null =
    null
  return () => {
    const offered = readOffer()
    if (last?.offered !== offered) last = { offered, tools: createTools(offered, servers, options) }
    return last.tools
  }
}

function createTools(
  offered: ServerListings,
  servers: ReadonlyMap<string, McpServer>,
  { outputFolder }: McpOptions,
): Readonly<Record<string, AgentTool>> {
  const call = async (
    server: string,
    context: AgentToolContext,
    work: (connection: ServerConnection, call: ServerCallOptions) => Promise<ServerResult>,
  ): Promise<ToolOutput> => {
    const { signal, progress } = context
    try {
      const result = await servers
        .get(server)
        ?.send((connection, timeout) => work(connection, { signal, timeout, progress }))
      return await toToolOutput(result ?? {}, outputFolder)
    } catch (error) {
      return { content: describeFault(server, error), isError: true }
    }
  }
  const tools = listNamedTools(offered).map(({ name, server, tool }): [string, AgentTool] => [
    name,
    {
      ...(tool.description === '' ? {} : { description: tool.description }),
      inputSchema: tool.inputSchema,
      parallel: tool.isReadOnly,
      run: (input: never, context) =>
        call(server, context, (connection, limits) =>
          connection.callTool(tool.name, input as JsonObject, limits),
        ),
    },
  ])
  const resources = Object.entries(offered).flatMap(([server, { hasResources }]) =>
    hasResources ? createResourceTools(server, call) : [],
  )
  // A server's own tool replaces ours with the same name. The engine sorts tools by name.
  return Object.fromEntries([...resources, ...tools])
}

/** Returns true if the first list that contains the tool says so. A tool of a late server can be called before it is offered. */
function isReadOnlyTool(name: string, lists: readonly Readonly<Record<string, AgentTool>>[]): boolean {
  return lists.find((tools) => Object.hasOwn(tools, name))?.[name]?.parallel === true
}

/** Waits until the server of a tool runs, then returns the tool from its listing. */
async function findStartingTool(
  name: string,
  servers: ReadonlyMap<string, McpServer>,
  listTools: McpServers['tools'],
): Promise<AgentTool | null> {
  const found = [...servers].find(([server]) => name.startsWith(`mcp__${server}__`))
  await found?.[1].waitForStart().catch((error: unknown) => {
    throw new Error(describeFault(found[0], error))
  })
  const tools = listTools()
  return Object.hasOwn(tools, name) ? (tools[name] ?? null) : null
}

function describeFault(server: string, error: unknown): string {
  return `MCP server ${server}: ${(error as Error).message}`
}

function createResourceTools(
  server: string,
  call: (
    server: string,
    context: AgentToolContext,
    work: (connection: ServerConnection, call: ServerCallOptions) => Promise<ServerResult>,
  ) => Promise<ToolOutput>,
): readonly (readonly [string, AgentTool])[] {
  const list = defineTool({
    description: `Lists the resources of the MCP server ${server}: address, name and description of each.`,
    fields: {},
    required: [],
    parallel: true,
    run: (_, context) => call(server, context, (connection, limits) => connection.listResources(limits)),
  })
  const read = defineTool<{ uri: string }>({
    description: `Reads a resource of the MCP server ${server}.`,
    fields: { uri: { type: 'string', description: 'Address of the resource, as listed.' } },
    required: ['uri'],
    parallel: true,
    run: ({ uri }, context) =>
      call(server, context, (connection, limits) => connection.readResource(uri, limits)),
  })
  return [
    [`mcp__${server}__list_resources`, list],
    [`mcp__${server}__read_resource`, read],
  ]
}
