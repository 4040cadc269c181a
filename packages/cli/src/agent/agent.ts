/**
 * The agent: a Tidemark session with tools for files, commands and the web in one working directory, permissions for
 * them, and a system prompt. It has no screen; `tidemark chat` prints what it does.
 */
import { realpathSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { HISTORY_TOOL_NAME, isObject } from '@tidemark/core'
import {
  createTidemark,
  diskSources,
  type ModelChoice,
  memoryFiles,
  type PolicyOverrides,
  type Run,
  type Session,
  type SessionEvent,
  type Tidemark,
  TidemarkError,
  type TidemarkOptions,
} from 'tidemark'
import { sessionPaths } from 'tidemark/internal'
import type { AgentEnvironment, AskUser } from '../tools/agent-environment.ts'
import { createAgentTools, createToolOptions } from '../tools/agent-tools.ts'
import { createBackgroundShells } from '../tools/background-shells.ts'
import { createReadState } from '../tools/read-state.ts'
import { describeToolAccess } from '../tools/tool-access.ts'
import { findTrustFolder } from './folder-trust.ts'
import {
  decidePermission,
  hasSearchLimits,
  type PermissionContext,
  type PermissionMode,
} from './permissions.ts'
import type { AgentSettings } from './settings.ts'
import { createSystemPrompt } from './system-prompt.ts'

export interface AgentOptions {
  /** The working directory. */
  readonly folder: string
  /** The Tidemark home, for the session and its files. */
  readonly home: string
  readonly sessionId: string
  readonly model: ModelChoice
  readonly settings: AgentSettings
  /** Permission rules of the command line, besides those of the settings. */
  readonly allowed?: readonly string[]
  readonly mode?: PermissionMode
  /** Names of the tools that the model gets. Default: all. AskUser is left out if there is no `askUser`. */
  readonly toolNames?: readonly string[]
  readonly appendedPrompt?: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Asks the user a question of the model. Without it, nobody can answer. */
  readonly askUser?: AskUser
  /** Asks the user for a permission. Without it, what no rule allows is refused. */
  readonly askPermission?: AskPermission
  readonly onEvent?: (event: SessionEvent) => void
  /** Called once for each memory file that exists and could not or may not be read. */
  readonly onUnreadMemory?: (file: { readonly path: string; readonly why: string }) => void
  /** Further options of the engine, for tests and the tour. */
  readonly engine?: Partial<TidemarkOptions>
}

export type AskPermission = (request: {
  readonly tool: string
  readonly input: object
  readonly reason: string
  /** A rule that would allow calls like this one. */
  readonly suggestion: string | null
}) => Promise<{ readonly isAllowed: boolean; readonly reason?: string }>

/** A tool call that was refused because no rule allowed it. */
export interface PermissionDenial {
  readonly tool: string
  readonly input: object
  readonly reason: string
  readonly suggestion: string | null
}

export interface Agent {
  readonly session: Session
  readonly denials: readonly PermissionDenial[]
  readonly toolNames: readonly string[]
  /** Runs a prompt; null continues an interrupted turn. Without `maxCalls`, it takes as many calls as the work needs. */
  run(prompt: string | readonly object[] | null, options?: { signal?: AbortSignal; maxCalls?: number }): Run
  /** Ends all commands and closes the session. */
  close(): Promise<void>
}

export async function openAgent(options: AgentOptions): Promise<Agent> {
  const { settings, sessionId, home } = options
  const folder = realpathSync(options.folder)
  const { log, folder: ownFolder } = sessionPaths(home, sessionId)
  const [spillFolder, scratchFolder] = [join(ownFolder, 'outputs'), join(ownFolder, 'scratch')]
  await mkdir(scratchFolder, { recursive: true, mode: 0o700 }).catch((error: Error) => {
    throw new TidemarkError('bad-option', `The session cannot be stored in ${home}: ${error.message}`)
  })
  const context: PermissionContext = {
    rules: { ...settings.permissions, allow: [...settings.permissions.allow, ...(options.allowed ?? [])] },
    mode: options.mode ?? settings.permissionMode ?? 'default',
    folder,
    readableFolders: [ownFolder, log],
    guardedPaths: [findTrustFolder(home), ...(settings.hookFiles ?? [])],
  }
  const readState = createReadState(folder, join(ownFolder, 'seen-files.jsonl'))
  const shells = createBackgroundShells()
  const tools = createOfferedTools(options, { context, spillFolder, readState, shells })
  const denials: PermissionDenial[] = []
  let session: Session | null = null
  let memoryHooks: Promise<unknown> = Promise.resolve()
  const onMemoryLoaded: AgentFacts['onMemoryLoaded'] = (file) => {
    // The turn does not wait for them. A hook that fails is told by an event of the session.
    memoryHooks = memoryHooks
      .then(() => session?.runHooks('instructionsLoaded', describeMemoryFile(file)))
      .catch(() => undefined)
  }
  const tidemark = createAgentEngine(
    options,
    { folder, log, scratchFolder, tools: Object.keys(tools), context, onMemoryLoaded },
    readState,
  )
  session = await tidemark.open(sessionId, {
    tools,
    ...createPermissions(options, context, denials),
    ...createHookCommands(options, context.mode),
    ...(options.onEvent === undefined ? {} : { onEvent: options.onEvent }),
  })
  return {
    session,
    denials,
    toolNames: [...Object.keys(tools), HISTORY_TOOL_NAME],
    run(prompt, runOptions) {
      const run = session.run(prompt, { maxCalls: NO_CALL_LIMIT, ...runOptions })
      // A turn that was stopped may have read files whose results are not in the context.
      const forgetShown = () => readState.forget({ kind: 'aborted', toolUseIds: [], filePaths: [] })
      run.outcome.then(({ ok }) => ok || forgetShown(), forgetShown)
      return run
    },
    async close() {
      await Promise.all([shells.close(), memoryHooks])
      await tidemark.close()
    },
  }
}

/** Creates the tools that the model is offered. One that nobody can answer is left out. */
function createOfferedTools(
  options: AgentOptions,
  given: {
    readonly context: PermissionContext
  } & Pick<AgentEnvironment, 'spillFolder' | 'readState' | 'shells'>,
): ReturnType<typeof createAgentTools> {
  const { context, ...environment } = given
  const { toolNames, askUser } = options
  const all = createAgentTools({
    ...environment,
    cwd: context.folder,
    env: createCommandEnvironment(options),
    now: Date.now,
    ...createHiding(context),
    ...(askUser === undefined ? {} : { askUser }),
  })
  const isOffered = (name: string): boolean =>
    (toolNames?.includes(name) ?? true) && (name !== 'AskUser' || askUser !== undefined)
  return Object.fromEntries(Object.entries(all).filter(([name]) => isOffered(name)))
}

/** Returns the environment of commands and hooks. They get no key of the model, unless the user's settings give one. */
function createCommandEnvironment({ env, settings }: AgentOptions): AgentOptions['env'] {
  const { ANTHROPIC_API_KEY: _key, ANTHROPIC_AUTH_TOKEN: _token, ...others } = env
  return { ...others, ...settings.env }
}

/** Returns the hooks of the settings as an option of a session. */
function createHookCommands(
  options: AgentOptions,
  permissionMode: PermissionMode,
): Pick<TidemarkOptions, 'hookCommands'> {
  const { hooks, findHookObjection } = options.settings
  if (hooks === undefined) return {}
  const env = createCommandEnvironment(options)
  const check = findHookObjection === undefined ? {} : { findObjection: findHookObjection }
  return { hookCommands: { settings: hooks, env, permissionMode, ...check } }
}

/** Hides files from searches in a folder around them, if a rule denies reading them or asks first. */
function createHiding(context: PermissionContext): Pick<AgentEnvironment, 'isHidden'> {
  if (!hasSearchLimits(context.rules)) return {}
  const decide = (tool: string, path: string) =>
    decidePermission(tool, { kind: 'read', paths: [path] }, context).decision
  return {
    isHidden(tool, file, root) {
      const decision = decide(tool, file)
      // If the search itself was asked about, the user has answered for the files in it.
      return decision === 'deny' || (decision === 'ask' && decide(tool, root) !== 'ask')
    },
  }
}

const NO_CALL_LIMIT = Number.MAX_SAFE_INTEGER

interface AgentFacts {
  readonly folder: string
  readonly log: string
  readonly scratchFolder: string
  readonly tools: readonly string[]
  readonly context: PermissionContext
  readonly onMemoryLoaded: (file: LoadedMemory) => void
}

type LoadedMemory = Parameters<NonNullable<Parameters<typeof memoryFiles>[0]['onRead']>>[0]['loaded'][number]

/** Describes a memory file for the InstructionsLoaded hooks. */
function describeMemoryFile({ path, importedBy, origin, reason }: LoadedMemory) {
  const projectType = path.endsWith('.local.md') ? ('Local' as const) : ('Project' as const)
  return {
    filePath: path,
    memoryType: origin === 'user' ? ('User' as const) : projectType,
    loadReason: reason,
    ...(importedBy === null ? {} : { parentFilePath: importedBy }),
  }
}

function createAgentEngine(
  options: AgentOptions,
  facts: AgentFacts,
  readState: ReturnType<typeof createReadState>,
): Tidemark {
  const { folder, log, scratchFolder, tools } = facts
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
    }),
    history: true,
    transcript: true,
    autonomous: askUser === undefined,
    interactive: askUser !== undefined,
    carriers: [...createMemorySources(options, facts), ...diskSources({ folder, transcript: log })],
    cleanups,
    policy: joinPolicies(policy, settings.policy ?? {}),
    ...engine,
  })
}

/**
 * Returns the sources of memory files. They are read where the model may read without a question, whatever else the
 * permission mode allows; in a trusted folder, that includes the folders above it up to the repository's.
 */
function createMemorySources(
  { settings, env, onUnreadMemory }: AgentOptions,
  { context, onMemoryLoaded }: AgentFacts,
): ReturnType<typeof memoryFiles> {
  const { isTrusted = false, memoryExcludes = [] } = settings
  const { folder, rules } = context
  return memoryFiles({
    cwd: folder,
    home: env.HOME ?? homedir(),
    excludes: memoryExcludes,
    isTrusted,
    onRead({ loaded, unread }) {
      for (const file of loaded) onMemoryLoaded(file)
      for (const file of unread) onUnreadMemory?.(file)
    },
    isPermitted(path, project) {
      const allow = [...rules.allow, `Read(${project}/**)`]
      const permissions: PermissionContext = { ...context, mode: 'default', rules: { ...rules, allow } }
      return decidePermission('Read', { kind: 'read', paths: [path] }, permissions).decision === 'allow'
    },
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

/**
 * Returns the permission check, and the hook that asks the user, as options of a session. The hook runs after the hooks of
 * the settings, so it is asked only about what they have not decided.
 */
function createPermissions(
  { askPermission }: AgentOptions,
  context: PermissionContext,
  denials: PermissionDenial[],
): Pick<TidemarkOptions, 'canUseTool' | 'hooks'> {
  const decide = (name: string, input: object) =>
    decidePermission(name, describeToolAccess(name, input, context.folder), context)
  const canUseTool: TidemarkOptions['canUseTool'] = ({ name, input: given }) => {
    const input = given as object
    const { decision, reason, suggestion } = decide(name, input)
    if (decision === 'deny') denials.push({ tool: name, input, reason, suggestion })
    return { decision, reason }
  }
  const askHook = {
    name: 'permission',
    timeoutSeconds: SECONDS_TO_ANSWER,
    async run({ call, reason }: PermissionQuestion) {
      const { name: tool } = call
      const input = call.input as object
      const { suggestion } = decide(tool, input)
      const answer = await askPermission?.({ tool, input, reason, suggestion })
      if (answer?.isAllowed === true) return { decision: 'allow' as const }
      denials.push({ tool, input, reason, suggestion })
      const said = answer?.reason ?? ''
      const refusal =
        answer === undefined
          ? `${reason} Nobody can be asked.${explainAllowing(suggestion)}`
          : `The user refused it.${said === '' ? '' : ` The user said: ${said}`}`
      return { decision: 'deny' as const, reason: refusal }
    },
  }
  return { canUseTool, hooks: { permissionRequest: [askHook] } }
}

interface PermissionQuestion {
  readonly call: { readonly name: string; readonly input: unknown }
  readonly reason: string
}

/** A user may take a day to answer. */
const SECONDS_TO_ANSWER = 86_400

function explainAllowing(suggestion: string | null): string {
  return suggestion === null
    ? ''
    : ` The user can allow it with --allowed-tools '${suggestion}', or in permissions.allow of the settings.`
}
