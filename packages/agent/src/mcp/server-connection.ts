/**
 * A connection to one MCP server, over the standard streams of a process or over HTTP. Only this file uses the official
 * SDK; it is loaded when the first server is started, because loading takes longer than most commands of the program.
 */
import { pathToFileURL } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import {
  StreamableHTTPClientTransport,
  StreamableHTTPError,
} from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { RequestOptions } from '@modelcontextprotocol/sdk/shared/protocol.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import {
  CallToolResultSchema,
  ErrorCode,
  ListResourcesResultSchema,
  ListResourceTemplatesResultSchema,
  ListRootsRequestSchema,
  ListToolsResultSchema,
  McpError,
  ReadResourceResultSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import manifest from '../../package.json' with { type: 'json' }
import type { JsonObject } from '../json-value.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import type { ServerEndpoint } from './server-settings.ts'
import { cutServerText, type McpTool, type ServerListing } from './tool-catalogue.ts'
import type { ServerResult } from './tool-results.ts'

/** An open connection. A failed call rejects with a text for the model; `UndeliveredCallError` if it can be repeated. */
export interface ServerConnection {
  /** What the server reported about itself when it was connected. */
  readonly listing: ServerListing
  /** Tools that were left out, as sentences for the user. */
  readonly problems: readonly string[]
  isOpen(): boolean
  callTool(name: string, input: JsonObject, call: ServerCallOptions): Promise<ServerResult>
  listResources(call: ServerCallOptions): Promise<ServerResult>
  readResource(uri: string, call: ServerCallOptions): Promise<ServerResult>
  close(): Promise<void>
}

export interface ServerCallOptions {
  readonly signal: AbortSignal
  /** Milliseconds without a sign of progress after which a call fails. */
  readonly timeout: number
  readonly progress?: (text: string) => void
}

interface ConnectionOptions {
  readonly address: ServerEndpoint
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Milliseconds for the start, including the first list of tools. */
  readonly startTimeout: number
  readonly signal: AbortSignal
  /** Called once if the connection ends and `close` was not called. */
  readonly onEnded: (why: string) => void
  /** Called with the new listing after the server has reported that its tools have changed. */
  readonly onListing: (listing: ServerListing) => void
  /** Called with problems of the changed tools, as sentences for the user. */
  readonly onProblems: (problems: readonly string[]) => void
  /** Called before a process is started. Returns how it is confined. If omitted, it is not confined. */
  readonly confine?: Sandbox['enter']
}

/** Error for a call that the server has not begun, so that it can be repeated after a restart. */
export class UndeliveredCallError extends Error {}

/** Starts or contacts a server and lists its tools. If that fails or takes too long, rejects and leaves nothing running. */
export async function connectServer(options: ConnectionOptions): Promise<ServerConnection> {
  const { folder, startTimeout, signal } = options
  const transport = await createTransport(options)
  const client = new Client({ name: 'tidemark', version: manifest.version }, { capabilities: { roots: {} } })
  client.setRequestHandler(ListRootsRequestSchema, () => ({
    roots: [{ uri: pathToFileURL(folder).href, name: 'project' }],
  }))
  const state = { isOpen: false, isClosing: false }
  const limits: RequestOptions = { timeout: startTimeout, maxTotalTimeout: startTimeout, signal }
  const close = async (): Promise<void> => {
    state.isClosing = true
    state.isOpen = false
    await transport.wire.close().catch(() => undefined)
  }
  try {
    await abortable(client.connect(transport.wire, limits), signal)
    // Before the first list, so that a change that the server announces meanwhile is not missed.
    watchTools(client, options, state)
    const { listing, problems } = await readListing(client, limits)
    state.isOpen = true
    client.onclose = () => {
      if (state.isOpen && !state.isClosing) options.onEnded(transport.readPrinted())
      state.isOpen = false
    }
    // Over HTTP, a reply that breaks off does not end the connection: pending calls would wait until their time limit.
    client.onerror = () => {
      if ('url' in options.address && state.isOpen)
        client.ping({ timeout: PING_TIMEOUT }).catch(() => client.close())
    }
    return { listing, problems, isOpen: () => state.isOpen, close, ...createCalls(client) }
  } catch (error) {
    await close()
    const printed = transport.readPrinted()
    throw new Error(`${describeError(error)}${printed === '' ? '' : ` It printed: ${printed}`}`)
  }
}

/** Milliseconds in which a server must answer a ping after a fault. */
const PING_TIMEOUT = 5_000

/** Rejects as soon as the signal is aborted. Otherwise a process that does not answer would be awaited until its time limit. */
async function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(new Error('It was stopped.')), { once: true })
  })
  return await Promise.race([work, aborted])
}

interface ServerTransport {
  readonly wire: Transport
  /** Returns the process's output on standard error about a fault, as one line. */
  readonly readPrinted: () => string
}

/** Maximum characters of a server's standard error that are kept. */
const KEPT_CHARACTERS = 8_000

async function createTransport(options: ConnectionOptions): Promise<ServerTransport> {
  const { address, folder, env, confine } = options
  if ('url' in address) {
    const wire = new StreamableHTTPClientTransport(new URL(address.url), {
      requestInit: { headers: { ...address.headers } },
    })
    return { wire, readPrinted: () => '' }
  }
  const { env: own } = address
  const confined = await confine?.()
  const [command, args] = confined?.wrap(address.command, address.args) ?? [address.command, address.args]
  const given = Object.entries({ ...env, ...own }).filter(([, value]) => value !== undefined)
  const wire = new StdioClientTransport({
    command,
    args: [...args],
    env: Object.fromEntries(given) as Record<string, string>,
    cwd: folder,
    stderr: 'pipe',
  })
  let printed = ''
  wire.stderr?.on('data', (chunk: Buffer) => {
    printed = (printed + chunk.toString('utf8')).slice(-KEPT_CHARACTERS)
  })
  return { wire, readPrinted: () => findFaultLines(printed) }
}

const FAULT =
  /error|exception|cannot|can't|could not|failed|fatal|not found|no such|denied|refused|missing|required|unknown|invalid/i

/** Matches lines about the location of an error, not the error itself: stack frames, and fields of Node's errors. */
const FAULT_PLACE = /^(?:at |throw |node:|file:|File "|code: |requireStack: |Node\.js v)/

/** Returns the last lines of an output that describe a fault; if there are none, the last line. */
function findFaultLines(printed: string): string {
  const lines = printed.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]))
  const faults = lines.filter((line) => FAULT.test(line) && !FAULT_PLACE.test(line)).slice(-2)
  const shown = faults.length > 0 ? faults : lines.slice(-1)
  return shown.map((line) => (line.length > 200 ? `${line.slice(0, 200)}…` : line)).join(' · ')
}

/** Maximum tools of one server that are offered, because every request contains them. */
const MAX_TOOLS = 256

/** Maximum pages of a list that are read, so that a server with endless pages does not block the session. */
const MAX_PAGES = 50

async function readPages<Item>(
  read: (cursor: { readonly cursor?: string }) => Promise<{ items: readonly Item[]; next?: string }>,
): Promise<readonly Item[]> {
  const items: Item[] = []
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { items: more, next } = await read(cursor === undefined ? {} : { cursor })
    items.push(...more)
    if (next === undefined || next === '' || next === cursor) break
    cursor = next
  }
  return items
}

async function readListing(
  client: Client,
  limits: RequestOptions,
): Promise<{ readonly listing: ServerListing; readonly problems: readonly string[] }> {
  const { tools: hasTools, resources } = client.getServerCapabilities() ?? {}
  const given =
    hasTools === undefined
      ? []
      : await readPages(async (params) => {
          const { tools, nextCursor } = await client.request(
            { method: 'tools/list', params },
            ListToolsResultSchema,
            limits,
          )
          return { items: tools, ...(nextCursor === undefined ? {} : { next: nextCursor }) }
        })
  const read = given.map(
    ({ name, description, inputSchema, annotations }): McpTool => ({
      name,
      description: cutServerText(description ?? ''),
      inputSchema: toAcceptedSchema(inputSchema as JsonObject),
      isReadOnly: annotations?.readOnlyHint === true,
    }),
  )
  const instructions = client.getInstructions()?.trim() ?? ''
  const accepted = read.filter((tool) => findToolProblem(tool) === null)
  const problems = [
    ...read.flatMap((tool) => findToolProblem(tool) ?? []),
    ...(accepted.length > MAX_TOOLS
      ? [`Of its ${accepted.length} tools, the first ${MAX_TOOLS} by name are offered.`]
      : []),
  ]
  const listing = {
    tools: accepted.toSorted((a, b) => (a.name < b.name ? -1 : 1)).slice(0, MAX_TOOLS),
    instructions: instructions === '' ? null : cutServerText(instructions),
    hasResources: resources !== undefined,
  }
  return { listing, problems }
}

/** Returns the schema without keywords that providers refuse at the top level of a tool's input. */
function toAcceptedSchema(schema: JsonObject): JsonObject {
  const { $schema: _schema, anyOf: _any, oneOf: _one, allOf: _all, ...rest } = schema
  return rest
}

const SCHEMA_LIMIT = 50_000
const FIELD_NAME = /^[a-zA-Z0-9_.-]{1,64}$/

/** Returns why a provider would refuse every request with this tool; null if it would accept them. */
function findToolProblem({ name, inputSchema }: McpTool): string | null {
  const fields = Object.keys((inputSchema.properties ?? {}) as object)
  const wrong = fields.find((field) => !FIELD_NAME.test(field))
  if (wrong !== undefined) return `The tool ${name} is left out: no provider accepts the field ${wrong}.`
  const isLarge = JSON.stringify(inputSchema).length > SCHEMA_LIMIT
  return isLarge ? `The tool ${name} is left out: its input schema is too large.` : null
}

/** Milliseconds between a change of the tools and reading them, so that several changes are read together. */
const LISTING_DELAY = 250

interface ConnectionState {
  /** True from the first list of tools until the connection ends. */
  readonly isOpen: boolean
  readonly isClosing: boolean
}

/** Reads the list again after each change that the server reports. An answer is ignored if a newer one has arrived before it. */
function watchTools(
  client: Client,
  { onListing, onProblems, startTimeout, signal }: ConnectionOptions,
  state: ConnectionState,
): void {
  let waiting: NodeJS.Timeout | null = null
  let [asked, newest] = [0, 0]
  const schedule = (): void => {
    waiting ??= setTimeout(() => {
      waiting = null
      if (state.isOpen) read()
      else if (!state.isClosing) schedule()
    }, LISTING_DELAY)
    waiting.unref()
  }
  const read = (): void => {
    asked += 1
    const order = asked
    // If the list cannot be read, the tools stay as they were.
    readListing(client, { timeout: startTimeout, signal }).then(
      ({ listing, problems }) => {
        if (order < newest) return
        newest = order
        onProblems(problems)
        onListing(listing)
      },
      (error) => {
        if (state.isOpen) onProblems([`The tools have changed and cannot be listed: ${describeError(error)}`])
      },
    )
  }
  client.setNotificationHandler(ToolListChangedNotificationSchema, schedule)
}

function createCalls(client: Client): Pick<ServerConnection, 'callTool' | 'listResources' | 'readResource'> {
  const toOptions = ({ signal, timeout, progress }: ServerCallOptions): RequestOptions => ({
    signal,
    timeout,
    resetTimeoutOnProgress: true,
    onprogress: ({ progress: done, total, message }) =>
      progress?.(message ?? `${done}${total === undefined ? '' : ` of ${total}`}`),
  })
  const send = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      if (isUndelivered(error)) throw new UndeliveredCallError(describeError(error))
      const isLost = !(error instanceof McpError) || LOST_CODES.includes(error.code)
      throw new Error(`${describeError(error)}${isLost ? ' The call may have been carried out.' : ''}`)
    }
  }
  return {
    callTool: (name, input, call) =>
      send(
        async () =>
          await client.request(
            { method: 'tools/call', params: { name, arguments: input } },
            CallToolResultSchema,
            toOptions(call),
          ),
      ),
    listResources: (call) => send(() => listResources(client, toOptions(call))),
    readResource: (uri, call) =>
      send(async () => {
        const params = { method: 'resources/read' as const, params: { uri } }
        const { contents } = await client.request(params, ReadResourceResultSchema, toOptions(call))
        return { content: contents.map((resource) => ({ type: 'resource' as const, resource })) }
      }),
  }
}

async function listResources(client: Client, options: RequestOptions): Promise<ServerResult> {
  const resources = await readPages(async (params) => {
    const found = await client.request(
      { method: 'resources/list', params },
      ListResourcesResultSchema,
      options,
    )
    return { items: found.resources, ...(found.nextCursor === undefined ? {} : { next: found.nextCursor }) }
  })
  // Many servers have resources but no templates, and answer this request with an error.
  const templates = await client
    .request({ method: 'resources/templates/list', params: {} }, ListResourceTemplatesResultSchema, options)
    .then(({ resourceTemplates }) => resourceTemplates)
    .catch(() => [])
  const lines = [
    ...resources.map(({ uri, ...facts }) => formatResource(uri, facts)),
    ...templates.map(({ uriTemplate, ...facts }) => `${formatResource(uriTemplate, facts)} (template)`),
  ]
  return {
    content: [{ type: 'text', text: lines.length === 0 ? 'There are no resources.' : lines.join('\n') }],
  }
}

function formatResource(
  uri: string,
  facts: { readonly name?: string; readonly description?: string | undefined },
): string {
  return [uri, facts.name, facts.description].filter((text) => text !== undefined && text !== '').join(' · ')
}

/** Codes of errors for which the server sent no answer. */
const LOST_CODES: readonly number[] = [ErrorCode.RequestTimeout, ErrorCode.ConnectionClosed]

/** Returns true if the server cannot have begun the call: it refused the call, or nothing listens at its address. */
function isUndelivered(error: unknown): boolean {
  if (error instanceof StreamableHTTPError)
    return error.code !== undefined && error.code >= 400 && error.code < 500
  const cause = error instanceof Error ? (error.cause as NodeJS.ErrnoException | undefined) : undefined
  return cause?.code === 'ECONNREFUSED' || (error instanceof Error && error.message === 'Not connected')
}

function describeError(error: unknown): string {
  if (error instanceof McpError && error.code === ErrorCode.RequestTimeout)
    return 'It did not answer in time.'
  if (error instanceof McpError && error.code === ErrorCode.ConnectionClosed)
    return 'The connection was closed.'
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : ''
  const text = error instanceof Error ? `${error.message}${cause}` : String(error)
  return text.length > 500 ? `${text.slice(0, 500)}…` : text
}
