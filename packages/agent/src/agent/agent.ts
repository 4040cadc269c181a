/**
 * The agent: a Tidemark session with tools for files, commands and the web in one working directory, permissions for
 * them, and a system prompt. It has no screen of its own; `tidemark chat` shows or prints what it does.
 */

import { realpathSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import {
  createTidemark,
  diskSources,
  type ModelChoice,
  type PolicyOverrides,
  type Run,
  type Session,
  type Tidemark,
  TidemarkError,
  type TidemarkOptions,
  type Tools,
} from 'tidemark'
import { sessionPaths } from 'tidemark/logs'
import type { HookSettings } from 'tidemark/project'
import { isObject, mapStrings } from '../json-value.ts'
import { type McpServers, openMcpServers } from '../mcp/mcp-servers.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import { createAgentTools, createToolSessionOptions } from '../tools/agent-tools.ts'
import { createSeenFiles } from '../tools/seen-files.ts'
import { createSessionShells } from '../tools/shell-process.ts'
import type { ToolEnvironment } from '../tools/tool-environment.ts'
import { createAgentLimits } from './agent-limits.ts'
import {
  type Agent,
  type AgentOptions,
  createCommandEnvironment,
  type InheritedMcpServers,
  isToolOffered,
  type SharedSubagentState,
} from './agent-options.ts'
import {
  createHiddenFileCheck,
  createPermissionOptions,
  openPermissions,
  queueQuestionsInOptions,
  type ToolPermissions,
} from './agent-permissions.ts'
import { type AttachedFiles, readMentionedFiles } from './attached-files.ts'
import {
  createMemoryHookRunner,
  createMemorySources,
  type LoadedMemoryFile,
  mayReadUnasked,
} from './memory-sources.ts'
import type { PermissionContext, PermissionMode } from './permissions.ts'
import { runShellCommand } from './prompt-commands.ts'
import type { AgentSettings } from './settings.ts'
import type { Subagents } from './subagents.ts'
import { createSystemPrompt, type SystemPromptFacts } from './system-prompt.ts'
import { openSubagentTools } from './task-tools.ts'

/**
 * Opens a session as an agent, or creates it. Returns before MCP servers have started. Throws a `TidemarkError` if the session
 * cannot be stored. A session that another process has open can only be read.
 */
export async function openAgent(given: AgentOptions): Promise<Agent> {
  const { sessionId, home, inherited } = given
  // A subagent asks through the agent that started it, whose questions already come one at a time.
  const options = inherited === undefined ? queueQuestionsInOptions(given) : given
  const folder = realpathSync(options.folder)
  const { log, folder: ownFolder } = sessionPaths(home, sessionId)
  const scratchFolder = join(ownFolder, 'scratch')
  await createSessionFolder(scratchFolder, home)
  const permissions = await openPermissions(options, { folder, log, ownFolder })
  const { sandbox } = permissions.context
  const env = createCommandEnvironment(options)
  const mcp = await openServers({ ...options, folder, ownFolder, env, sandbox })
  try {
    return await openSession(options, { folder, log, ownFolder, scratchFolder, permissions, mcp })
  } catch (error) {
    // Server processes that still run would keep the program from ending.
    await mcp?.close()
    throw error
  }
}

interface SessionParts {
  /** The working directory, with symbolic links resolved. */
  readonly folder: string
  readonly log: string
  /** The folder with the files of the session. */
  readonly ownFolder: string
  readonly scratchFolder: string
  readonly permissions: ToolPermissions
  readonly mcp: McpServers | null
}

async function openSession(
  options: AgentOptions,
  { folder, log, ownFolder, scratchFolder, permissions, mcp }: SessionParts,
): Promise<Agent> {
  const { sessionId, inherited } = options
  const { context, sandbox, promptTools, expandPrompt, listPromptFiles, switchMode } = permissions
  const spillFolder = join(ownFolder, 'outputs')
  const seenFiles = createSeenFiles(folder, join(ownFolder, 'seen-files.jsonl'))
  const shells = createSessionShells()
  const denials = inherited?.denials ?? []
  let session: Session | null = null
  const readServers = (): InheritedMcpServers => inherited?.servers ?? shareServers(mcp)
  const { subagents, taskTools, team, listDefinitions } = await openSubagentTools(options, {
    ...{ ownFolder, context, denials, readServers, openAgent, findSession: () => session },
  })
  const permittedWrites = new Map<string, string>()
  const own = { spillFolder, seenFiles, shells, permittedWrites, ...promptTools }
  const tools = offerTools(options, context, own, taskTools)
  const { onMemoryLoaded, waitForHooks } = createMemoryHookRunner(() => session, options.onMemoryLoaded)
  const isReadOnly = (tool: string): boolean => (inherited?.servers ?? mcp)?.isReadOnly(tool) === true
  const parts = { folder, log, scratchFolder, tools: Object.keys(tools), seenFiles, shells, isReadOnly }
  const tidemark = createAgentEngine(options, { ...parts, permissions, subagents, onMemoryLoaded, mcp, team })
  const asked = { denials, isReadOnly, shells, permittedWrites }
  const { hooks, canUseTool } = createPermissionOptions(options, context, asked)
  session = await tidemark.open(sessionId, {
    ...createServerTools(options, tools, mcp),
    canUseTool,
    hooks: { ...hooks, ...subagents?.hooks },
    ...createHookCommands(options, context),
    onEvent(event) {
      subagents?.noteEvent(event)
      options.onEvent?.(event)
    },
  })
  return {
    ...{ session, denials, sandbox, switchMode, listPromptFiles, listDefinitions },
    toolNames: [...Object.keys(tools), HISTORY_TOOL],
    isPlanning: () => context.mode === 'plan',
    readMode: () => context.mode,
    expandPrompt: attachFiles(expandPrompt, options, { context, seenFiles }),
    listServerTools: () => Object.keys(mcp?.tools() ?? {}),
    run(prompt, runOptions) {
      mcp?.restart()
      const run = runPrompt(session, options, { maxCalls: NO_CALL_LIMIT, ...runOptions, prompt })
      forgetReadsOfStopped(run, seenFiles)
      return run
    },
    runShell: (command, signal) =>
      runShellCommand(command, { folder, env: createCommandEnvironment(options) }, signal),
    subagents: () => team.records.list(),
    async close() {
      await subagents?.close()
      await waitForHooks()
      await shells.close()
      await tidemark.close()
      await mcp?.close()
      await context.sandbox?.close()
    },
  }
}

/** Runs a prompt, after removing the key of the model from it: the key may be in an attached file. */
function runPrompt(
  session: Session,
  { model: { hideKey = String } }: AgentOptions,
  given: NonNullable<Parameters<Session['run']>[1]> & { readonly prompt: Parameters<Session['run']>[0] },
): Run {
  const { prompt, ...others } = mapStrings(given, hideKey)
  return session.run(prompt, others)
}

/** Returns the function that adds the files named in a prompt. The prompt of a subagent is not changed. */
function attachFiles(
  expandPrompt: Agent['expandPrompt'],
  options: AgentOptions,
  parts: Parameters<typeof readMentionedFiles>[1],
): Agent['expandPrompt'] {
  if (options.inherited !== undefined || !isToolOffered(options, 'Read')) return expandPrompt
  return async (prompt, signal) =>
    withPromptFiles(await expandPrompt(prompt, signal), await readMentionedFiles(prompt, parts))
}

/** Adds the files that a prompt names, after the prompt's own text. */
function withPromptFiles(
  expanded: Awaited<ReturnType<Agent['expandPrompt']>>,
  { blocks, labels, notices }: AttachedFiles,
): Awaited<ReturnType<Agent['expandPrompt']>> {
  const all = { ...expanded, attached: labels, notices: [...expanded.notices, ...notices] }
  if (blocks.length === 0) return all
  const { prompt } = expanded
  const own = typeof prompt === 'string' ? [{ type: 'text', text: prompt }] : prompt
  return { ...all, prompt: [...own, ...blocks] }
}

/**
 * Returns the tools of a session, including those of MCP servers. A subagent is offered the tools that existed when it started; a call of
 * another server tool waits for its server.
 */
function createServerTools(
  options: AgentOptions,
  own: Tools,
  mcp: McpServers | null,
): { readonly tools: Tools | (() => Tools); readonly findTool?: McpServers['findTool'] } {
  const isKept = (name: string): boolean => isToolOffered(options, name)
  const servers = options.inherited?.servers ?? mcp
  if (servers === null) return { tools: own }
  const findTool = async (name: string) => (isKept(name) ? await servers.findTool(name) : null)
  if (mcp !== null) return { tools: joinTools(own, mcp, isKept), findTool }
  const inherited = Object.entries(options.inherited?.servers.tools ?? {}).filter(([name]) => isKept(name))
  return { tools: { ...own, ...Object.fromEntries(inherited) }, findTool }
}

async function createSessionFolder(path: string, home: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 }).catch((error: Error) => {
    throw new TidemarkError('bad-option', `The session cannot be stored in ${home}: ${error.message}`)
  })
}

/** After a turn was stopped, results of its reads may be missing from the context, so no text counts as still shown there. */
function forgetReadsOfStopped({ outcome }: Run, seenFiles: ReturnType<typeof createSeenFiles>): void {
  const forgetShown = () => seenFiles.forget({ kind: 'aborted', toolUseIds: [], filePaths: [] })
  outcome.then(({ ok }) => ok || forgetShown(), forgetShown)
}

function offerTools(
  options: AgentOptions,
  context: PermissionContext,
  parts: Pick<
    ToolEnvironment,
    'spillFolder' | 'seenFiles' | 'shells' | 'permittedWrites' | 'skills' | 'endPlanMode'
  >,
  taskTools: Tools,
): Tools {
  const own = createAgentTools({
    ...parts,
    cwd: context.folder,
    env: createCommandEnvironment(options),
    now: Date.now,
    ...createHiddenFileCheck(context),
    ...(context.sandbox === undefined ? {} : { sandbox: context.sandbox }),
    ...(options.model.hideKey === undefined ? {} : { hideKey: options.model.hideKey }),
    ...(options.askUser === undefined ? {} : { askUser: options.askUser }),
  })
  const all = { ...own, ...taskTools }
  return Object.fromEntries(Object.entries(all).filter(([name]) => isToolOffered(options, name)))
}

/** Events at which hooks also run in a subagent. Its start and end are events of the main conversation. */
const SUBAGENT_EVENTS: readonly (keyof HookSettings)[] = [
  'PreToolUse',
  'PermissionRequest',
  'PostToolUse',
  'PreCompact',
  'PostCompact',
]

/** Returns the hooks of the settings as an option of a session. */
function createHookCommands(
  options: AgentOptions,
  context: PermissionContext,
): Pick<TidemarkOptions, 'hookCommands'> {
  const { hooks: all, findHookObjection, sandbox: wanted } = options.settings
  if (all === undefined) return {}
  const isHere = (event: string): boolean =>
    options.inherited === undefined || SUBAGENT_EVENTS.includes(event as keyof HookSettings)
  const hooks: HookSettings = Object.fromEntries(Object.entries(all).filter(([event]) => isHere(event)))
  const env = createCommandEnvironment(options)
  const check = findHookObjection === undefined ? {} : { findObjection: findHookObjection }
  const { sandbox } = context
  const confined = sandbox !== undefined && wanted?.hooks === true ? { confine: sandbox.enter } : {}
  const permissionMode = (): PermissionMode => context.mode
  return { hookCommands: { settings: hooks, env, permissionMode, ...check, ...confined } }
}

/** The tool with which the model reads what left its context. */
const HISTORY_TOOL = 'history'

const NO_CALL_LIMIT = Number.MAX_SAFE_INTEGER

interface EngineParts extends Pick<ToolEnvironment, 'seenFiles' | 'shells'> {
  readonly folder: string
  readonly log: string
  readonly scratchFolder: string
  readonly tools: readonly string[]
  readonly isReadOnly: (tool: string) => boolean
  readonly permissions: ToolPermissions
  readonly subagents: Subagents | null
  readonly onMemoryLoaded: (file: LoadedMemoryFile) => void
  readonly mcp: McpServers | null
  readonly team: SharedSubagentState
}

function createAgentEngine(options: AgentOptions, parts: EngineParts): Tidemark {
  const { folder, log, permissions, subagents, mcp } = parts
  const { model, home, settings, env, askUser, engine, inherited } = options
  const source = inherited === undefined ? 'repl_main_thread' : `agent:${inherited.definition.name}`
  const scope = inherited === undefined ? 'main' : source
  const { policy, cleanups, carriers } = createToolSessionOptions({ ...parts, scope })
  return createTidemark({
    model,
    home,
    env,
    source,
    cwd: folder,
    system: createSystemPrompt(describePrompt(options, parts)),
    cleanups: [...cleanups, ...permissions.cleanups, ...listServerCleanups(mcp)],
    hostTools: { readOnly: parts.isReadOnly },
    history: HISTORY_TOOL,
    transcript: true,
    autonomous: askUser === undefined,
    interactive: askUser !== undefined,
    carriers: [
      ...createMemorySources({
        ...{ settings, env, context: permissions.context },
        // Hooks are told about memory files of the main conversation only.
        onLoaded: inherited === undefined ? parts.onMemoryLoaded : () => {},
        onUnread: (file) => options.onUnread?.('memory file', file),
      }),
      // A server's tool or a sandboxed command may name a file that it could not read itself, so permission is checked.
      ...diskSources({
        folder,
        transcript: log,
        isPermitted: (path) => mayReadUnasked(path, folder, permissions.context),
      }),
      ...carriers,
      ...permissions.sources,
      ...(subagents?.sources ?? []),
    ],
    policy: joinPolicies(policy, settings.policy ?? {}),
    ...(options.limits === undefined ? {} : createAgentLimits(options, parts.team)),
    ...engine,
  })
}

function describePrompt(
  options: AgentOptions,
  { folder, scratchFolder, tools, mcp }: EngineParts,
): SystemPromptFacts {
  const { model, env, settings, askUser, appendedPrompt, inherited } = options
  const instructions = inherited?.servers.instructions ?? null
  return {
    folder,
    isTrusted: settings.isTrusted ?? false,
    env: createCommandEnvironment(options),
    model: model.id,
    shell: env.SHELL ?? '/bin/sh',
    scratchFolder,
    tools,
    today: new Date().toISOString().slice(0, 10),
    isUnattended: askUser === undefined,
    historyTool: HISTORY_TOOL,
    windowTokens: model.window,
    appended: appendedPrompt ?? null,
    ...(mcp === null ? {} : { readMcpInstructions: mcp.prepareRequest }),
    ...(instructions === null ? {} : { readMcpInstructions: async () => instructions }),
    // The output of a subagent is read by the agent that started it.
    ...(inherited === undefined
      ? { language: settings.language ?? null, outputStyle: settings.outputStyle ?? null }
      : { subagent: { ...inherited.definition, isPlanning: inherited.isPlanning } }),
  }
}

/**
 * Merges the user's policy into the agent's own, which expects a user who returns to an idle session. Tools whose results must not be
 * spilled keep their exemption.
 */
function joinPolicies({ spill }: PolicyOverrides, user: PolicyOverrides): PolicyOverrides {
  const own = user.spill?.exceptTools ?? []
  // A value of the wrong type is passed on, so that the check of the whole policy reports it.
  if (!isObject(user.spill ?? {}) || !Array.isArray(own)) return user
  const exceptTools = [...(spill?.exceptTools ?? []), ...own]
  const cache = isObject(user.cache ?? {}) ? { cache: { idle: 'auto' as const, ...user.cache } } : {}
  return { ...user, ...cache, spill: { ...user.spill, exceptTools } }
}

// MCP servers as a part of the session: where they keep their files, their tools, and what the engine must know.

/** Starts the MCP servers of the settings without waiting for them; null if there are none. */
async function openServers(options: {
  readonly settings: AgentSettings
  readonly model: ModelChoice
  readonly folder: string
  /** The folder with the files of the session. */
  readonly ownFolder: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly onNotice?: (message: string) => void
  readonly firstServerWait?: number
  readonly inherited?: object
  readonly sandbox: Sandbox | undefined
}): Promise<McpServers | null> {
  const { settings, model, folder, ownFolder, env, onNotice, sandbox } = options
  const { mcpServers, findServerObjection } = settings
  // A subagent uses the servers of the main conversation.
  if (mcpServers === undefined || options.inherited !== undefined) return null
  return await openMcpServers({
    servers: mcpServers,
    folder,
    env,
    stateFile: join(ownFolder, 'mcp-tools.json'),
    outputFolder: join(ownFolder, 'outputs'),
    addsForFree: model.profile.capabilities.toolChanges,
    ...(findServerObjection === undefined ? {} : { findObjection: findServerObjection }),
    ...(sandbox !== undefined && settings.sandbox?.mcpServers === true ? { confine: sandbox.enter } : {}),
    ...(onNotice === undefined ? {} : { onNotice }),
    ...(options.firstServerWait === undefined ? {} : { firstWait: options.firstServerWait }),
  })
}

/** Returns a function that returns the agent's tools with those of the servers. The object changes only if the tools have changed. */
function joinTools(own: Tools, mcp: McpServers, isOffered: (name: string) => boolean): () => Tools {
  let last: { readonly given: Tools; readonly joined: Tools } | null = null
  return () => {
    const given = mcp.tools()
    if (last?.given !== given) {
      const offered = Object.entries(given).filter(([name]) => isOffered(name))
      last = { given, joined: { ...own, ...Object.fromEntries(offered) } }
    }
    return last.joined
  }
}

/** Returns what a subagent gets of the servers: their present tools, because a later change would break its cache. */
function shareServers(mcp: McpServers | null): InheritedMcpServers {
  if (mcp === null) return NO_SERVERS
  const { isReadOnly, findTool } = mcp
  return { tools: mcp.tools(), instructions: mcp.readInstructions(), isReadOnly, findTool }
}

const NO_SERVERS: InheritedMcpServers = {
  tools: {},
  instructions: null,
  isReadOnly: () => false,
  findTool: async () => null,
}

/** Returns the rewrite cleanup after which tools of servers may change; none without servers. */
function listServerCleanups(mcp: McpServers | null): NonNullable<TidemarkOptions['cleanups']> {
  if (mcp === null) return []
  return [
    {
      name: 'tools of MCP servers',
      scope: 'main',
      forget({ kind }) {
        // After a compaction the prefix is new anyway, so tools can change without another cache break.
        if (kind === 'compact') mcp.noteCompaction()
      },
    },
  ]
}
