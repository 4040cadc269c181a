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
  type ContextSource,
  createTidemark,
  diskSources,
  type ModelChoice,
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
  createMemoryHooks,
  createMemorySources,
  type LoadedInstructions,
  mayReadUnasked,
} from './memory-sources.ts'
import {
  decidePermission,
  hasSearchLimits,
  type PermissionContext,
  type PermissionMode,
  PLAN_TOOL,
} from './permissions.ts'
import { openPlanMode } from './plan-mode.ts'
import { type AgentPrompt, openPromptCommands } from './prompt-commands.ts'
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
  /** Called once for each memory file, skill or slash command that exists and could not or may not be read. */
  readonly onUnread?: (
    kind: 'memory file' | 'skill or command',
    file: { readonly path: string; readonly why: string },
  ) => void
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
  /** Returns true while plan mode is on. */
  isPlanning(): boolean
  /**
   * Replaces a slash command by the text of its file, for `run`; any other prompt is returned as it is. `notices`: sentences
   * for the user.
   */
  expandPrompt(
    prompt: AgentPrompt,
    signal?: AbortSignal,
  ): Promise<{ readonly prompt: AgentPrompt; readonly notices: readonly string[] }>
  /** Runs a prompt; null continues an interrupted turn. Without `maxCalls`, it takes as many calls as the work needs. */
  run(prompt: string | readonly object[] | null, options?: { signal?: AbortSignal; maxCalls?: number }): Run
  /** Ends all commands and closes the session. */
  close(): Promise<void>
}

export async function openAgent(options: AgentOptions): Promise<Agent> {
  const { sessionId, home } = options
  const folder = realpathSync(options.folder)
  const { log, folder: ownFolder } = sessionPaths(home, sessionId)
  const [spillFolder, scratchFolder] = [join(ownFolder, 'outputs'), join(ownFolder, 'scratch')]
  await mkdir(scratchFolder, { recursive: true, mode: 0o700 }).catch((error: Error) => {
    throw new TidemarkError('bad-option', `The session cannot be stored in ${home}: ${error.message}`)
  })
  const places = { folder, log, ownFolder }
  const { context, promptTools, sources, expandPrompt } = await openPermissions(options, places)
  const readState = createReadState(folder, join(ownFolder, 'seen-files.jsonl'))
  const shells = createBackgroundShells()
  const tools = offerTools(options, {
    cwd: folder,
    spillFolder,
    env: createCommandEnvironment(options),
    now: Date.now,
    readState,
    shells,
    ...createHiding(context),
    ...promptTools,
    ...(options.askUser === undefined ? {} : { askUser: options.askUser }),
  })
  const denials: PermissionDenial[] = []
  let session: Session | null = null
  const { onMemoryLoaded, waitForHooks } = createMemoryHooks(() => session)
  const tidemark = createAgentEngine(
    options,
    { folder, log, scratchFolder, tools: Object.keys(tools), context, onMemoryLoaded, sources },
    readState,
  )
  session = await tidemark.open(sessionId, {
    tools,
    ...createPermissions(options, context, denials),
    ...createHookCommands(options, () => context.mode),
    ...(options.onEvent === undefined ? {} : { onEvent: options.onEvent }),
  })
  return {
    session,
    denials,
    toolNames: [...Object.keys(tools), HISTORY_TOOL_NAME],
    isPlanning: () => context.mode === 'plan',
    expandPrompt,
    run(prompt, runOptions) {
      const run = session.run(prompt, { maxCalls: NO_CALL_LIMIT, ...runOptions })
      // A turn that was stopped may have read files whose results are not in the context.
      const forgetShown = () => readState.forget({ kind: 'aborted', toolUseIds: [], filePaths: [] })
      run.outcome.then(({ ok }) => ok || forgetShown(), forgetShown)
      return run
    },
    async close() {
      await waitForHooks()
      await shells.close()
      await tidemark.close()
    },
  }
}

/** A tool that nobody can answer is not offered. */
function isOffered({ toolNames, askUser }: AgentOptions, name: string): boolean {
  return (toolNames?.includes(name) ?? true) && (name !== 'AskUser' || askUser !== undefined)
}

function offerTools(options: AgentOptions, environment: AgentEnvironment) {
  const all = Object.entries(createAgentTools(environment))
  return Object.fromEntries(all.filter(([name]) => isOffered(options, name)))
}

/** Opens what decides about tool calls: rules, plan mode, and the slash commands, which bring rules of their own. */
async function openPermissions(
  options: AgentOptions,
  { folder, log, ownFolder }: { readonly folder: string; readonly log: string; readonly ownFolder: string },
) {
  const { settings, home, mode, allowed = [], env } = options
  const plan = await openPlanMode({
    file: join(ownFolder, 'plan-mode.json'),
    given: mode,
    usual: settings.permissionMode,
    canAsk: options.askPermission !== undefined,
  })
  let granted: readonly string[] = []
  const readableFolders = [ownFolder, log]
  const context: PermissionContext = {
    get rules() {
      const { permissions } = settings
      return { ...permissions, allow: [...permissions.allow, ...allowed, ...granted] }
    },
    get mode() {
      return plan.readMode()
    },
    folder,
    readableFolders,
    guardedPaths: [findTrustFolder(home), ...(settings.hookFiles ?? [])],
  }
  const prompts = await openPromptCommands({
    places: {
      home: env.HOME ?? homedir(),
      project: folder,
      isPermitted: (path) => mayReadUnasked(path, folder, context),
    },
    env: createCommandEnvironment(options),
    context,
    isTrusted: settings.isItemTrusted ?? (() => false),
  })
  readableFolders.push(...prompts.skillFolders)
  for (const file of prompts.unread) options.onUnread?.('skill or command', file)
  const expandPrompt: Agent['expandPrompt'] = async (prompt, signal) => {
    const { allowed: rules, ...expanded } = await prompts.expand(prompt, signal)
    // What a slash command allows counts until the next prompt.
    granted = rules
    return expanded
  }
  const promptTools: Pick<AgentEnvironment, 'skills' | 'endPlanMode'> = {
    ...(prompts.skills === null ? {} : { skills: prompts.skills }),
    ...(plan.isUsed ? { endPlanMode: () => plan.end() } : {}),
  }
  const sources = [plan.source, ...(isOffered(options, 'Skill') ? prompts.sources : [])]
  return { context, promptTools, sources, expandPrompt }
}

/** Returns the environment of commands and hooks. They get no key of the model, unless the user's settings give one. */
function createCommandEnvironment({ env, settings }: AgentOptions): AgentOptions['env'] {
  const { ANTHROPIC_API_KEY: _key, ANTHROPIC_AUTH_TOKEN: _token, ...others } = env
  return { ...others, ...settings.env }
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
  readonly onMemoryLoaded: (file: LoadedInstructions) => void
  readonly sources: readonly ContextSource[]
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
    carriers: [
      ...createMemorySources({
        ...{ settings, env, context: facts.context, onLoaded: facts.onMemoryLoaded },
        onUnread: (file) => options.onUnread?.('memory file', file),
      }),
      ...diskSources({ folder, transcript: log }),
      ...facts.sources,
    ],
    cleanups,
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
          ? `${reason} Nobody can be asked.${explainAllowing(tool, suggestion)}`
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

function explainAllowing(tool: string, suggestion: string | null): string {
  if (tool === PLAN_TOOL)
    return ' Give the plan as your answer and end your turn: the user can approve it with another --permission-mode.'
  return suggestion === null
    ? ''
    : ` The user can allow it with --allowed-tools '${suggestion}', or in permissions.allow of the settings.`
}
