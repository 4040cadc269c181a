/**
 * The agent: a Tidemark session with tools for files, commands and the web in one working directory, permissions for
 * them, and a system prompt. It has no screen; `tidemark chat` prints what it does.
 */
import { realpathSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { HISTORY_TOOL_NAME, isObject } from '@tidemark/core'
import {
  type ContextSource,
  createTidemark,
  diskSources,
  type PolicyOverrides,
  type Run,
  type Session,
  type Tidemark,
  TidemarkError,
  type TidemarkOptions,
} from 'tidemark'
import { sessionPaths } from 'tidemark/internal'
import type { McpServers } from '../mcp/mcp-servers.ts'
import type { AgentEnvironment } from '../tools/agent-environment.ts'
import { createAgentTools, createToolOptions } from '../tools/agent-tools.ts'
import { createBackgroundShells } from '../tools/background-shells.ts'
import { createReadState } from '../tools/read-state.ts'
import {
  type Agent,
  type AgentOptions,
  createCommandEnvironment,
  isOffered,
  type PermissionDenial,
} from './agent-options.ts'
import { createHiding, createPermissions, openPermissions } from './agent-permissions.ts'
import { createServerOptions, joinTools, openServers } from './mcp-session.ts'
import { createMemoryHooks, createMemorySources, type LoadedInstructions } from './memory-sources.ts'
import type { PermissionContext, PermissionMode } from './permissions.ts'
import { createSystemPrompt } from './system-prompt.ts'

export async function openAgent(options: AgentOptions): Promise<Agent> {
  const { sessionId, home } = options
  const folder = realpathSync(options.folder)
  const { log, folder: ownFolder } = sessionPaths(home, sessionId)
  const [spillFolder, scratchFolder] = [join(ownFolder, 'outputs'), join(ownFolder, 'scratch')]
  await createSessionFolder(scratchFolder, home)
  const { context, promptTools, sources, expandPrompt } = await openPermissions(options, {
    folder,
    log,
    ownFolder,
  })
  const readState = createReadState(folder, join(ownFolder, 'seen-files.jsonl'))
  const shells = createBackgroundShells()
  const tools = offerTools(options, context, { spillFolder, readState, shells, ...promptTools })
  const mcp = await openServers({ ...options, folder, ownFolder, env: createCommandEnvironment(options) })
  const denials: PermissionDenial[] = []
  let session: Session | null = null
  const { onMemoryLoaded, waitForHooks } = createMemoryHooks(() => session)
  const tidemark = createAgentEngine(
    options,
    { folder, log, scratchFolder, tools: Object.keys(tools), context, onMemoryLoaded, sources, mcp },
    readState,
  )
  const opening = tidemark.open(sessionId, {
    tools: mcp === null ? tools : joinTools(tools, mcp, (name) => isOffered(options, name)),
    ...createPermissions(options, context, denials),
    ...createHookCommands(options, () => context.mode),
    ...(options.onEvent === undefined ? {} : { onEvent: options.onEvent }),
  })
  opening.catch(() => mcp?.close())
  session = await opening
  return {
    session,
    denials,
    toolNames: [...Object.keys(tools), HISTORY_TOOL_NAME],
    isPlanning: () => context.mode === 'plan',
    expandPrompt,
    run(prompt, runOptions) {
      mcp?.restart()
      const run = session.run(prompt, { maxCalls: NO_CALL_LIMIT, ...runOptions })
      forgetReadsOfStopped(run, readState)
      return run
    },
    async close() {
      await waitForHooks()
      await shells.close()
      await tidemark.close()
      await mcp?.close()
    },
  }
}

async function createSessionFolder(path: string, home: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 }).catch((error: Error) => {
    throw new TidemarkError('bad-option', `The session cannot be stored in ${home}: ${error.message}`)
  })
}

/** A turn that was stopped may have read files whose results are not in the context. */
function forgetReadsOfStopped({ outcome }: Run, readState: ReturnType<typeof createReadState>): void {
  const forgetShown = () => readState.forget({ kind: 'aborted', toolUseIds: [], filePaths: [] })
  outcome.then(({ ok }) => ok || forgetShown(), forgetShown)
}

function offerTools(
  options: AgentOptions,
  context: PermissionContext,
  parts: Pick<AgentEnvironment, 'spillFolder' | 'readState' | 'shells' | 'skills' | 'endPlanMode'>,
) {
  const all = createAgentTools({
    ...parts,
    cwd: context.folder,
    env: createCommandEnvironment(options),
    now: Date.now,
    ...createHiding(context),
    ...(options.askUser === undefined ? {} : { askUser: options.askUser }),
  })
  return Object.fromEntries(Object.entries(all).filter(([name]) => isOffered(options, name)))
}

/** Returns the hooks of the settings as an option of a session. */
function createHookCommands(
  options: AgentOptions,
  permissionMode: () => PermissionMode,
): Pick<TidemarkOptions, 'hookCommands'> {
  const { hooks, findHookObjection } = options.settings
  if (hooks === undefined) return {}
  const env = createCommandEnvironment(options)
  const check = findHookObjection === undefined ? {} : { findObjection: findHookObjection }
  return { hookCommands: { settings: hooks, env, permissionMode, ...check } }
}

const NO_CALL_LIMIT = Number.MAX_SAFE_INTEGER

interface AgentFacts {
  readonly folder: string
  readonly log: string
  readonly scratchFolder: string
  readonly tools: readonly string[]
  readonly context: PermissionContext
  readonly onMemoryLoaded: (file: LoadedInstructions) => void
  readonly sources: readonly ContextSource[]
  readonly mcp: McpServers | null
}

function createAgentEngine(
  options: AgentOptions,
  facts: AgentFacts,
  readState: ReturnType<typeof createReadState>,
): Tidemark {
  const { folder, log, scratchFolder, tools, mcp } = facts
  const { model, home, settings, env, askUser, appendedPrompt, engine } = options
  const { policy, cleanups } = createToolOptions({ readState })
  return createTidemark({
    model,
    home,
    env,
    source: 'repl_main_thread',
    cwd: folder,
    system: createSystemPrompt({
      folder,
      model: model.id,
      shell: env.SHELL ?? '/bin/sh',
      scratchFolder,
      tools,
      today: new Date().toISOString().slice(0, 10),
      isUnattended: askUser === undefined,
      historyTool: HISTORY_TOOL_NAME,
      windowTokens: model.window,
      appended: appendedPrompt ?? null,
      ...(mcp === null ? {} : { readMcpInstructions: mcp.prepareRequest }),
    }),
    ...createServerOptions(mcp, cleanups),
    history: true,
    transcript: true,
    autonomous: askUser === undefined,
    interactive: askUser !== undefined,
    carriers: [
      ...createMemorySources({
        ...{ settings, env, context: facts.context, onLoaded: facts.onMemoryLoaded },
        onUnread: (file) => options.onUnread?.('memory file', file),
      }),
      ...diskSources({ folder, transcript: log }),
      ...facts.sources,
    ],
    policy: joinPolicies(policy, settings.policy ?? {}),
    ...engine,
  })
}

/**
 * Adds the user's policy to that of the agent, whose user may come back to an idle session. Tools whose results must not
 * be spilled stay exempt.
 */
function joinPolicies({ spill }: PolicyOverrides, user: PolicyOverrides): PolicyOverrides {
  const own = user.spill?.exceptTools ?? []
  // A value of the wrong type is left as it is, for the check of the whole policy.
  if (!isObject(user.spill ?? {}) || !Array.isArray(own)) return user
  const exceptTools = [...(spill?.exceptTools ?? []), ...own]
  const cache = isObject(user.cache ?? {}) ? { cache: { idle: 'auto' as const, ...user.cache } } : {}
  return { ...user, ...cache, spill: { ...user.spill, exceptTools } }
}
