/** The permissions of an agent's session: what decides about its tool calls, asks the user, and hides files from searches. */

import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { PERMISSION_HOOK_NAME } from '@tidemark/terminal/render/describe-event'
import type { ContextSource, SessionHooks, TidemarkOptions } from 'tidemark'
import type { PromptFilePlaces } from 'tidemark/project'
import type { OpenSandboxResult } from '../sandbox/sandbox.ts'
import { describeToolAccess, resolveRealPath } from '../tools/tool-access.ts'
import type { ToolEnvironment } from '../tools/tool-environment.ts'
import {
  type Agent,
  type AgentOptions,
  createCommandEnvironment,
  isToolOffered,
  type PermissionDenial,
  type SubagentInheritance,
} from './agent-options.ts'
import { formatTrustItem } from './folder-trust.ts'
import { listGitTrustItems } from './git-programs.ts'
import { mayReadUnasked } from './memory-sources.ts'
import {
  decidePermission,
  formatAllowedToolsOption,
  hasReadRestrictions,
  type PermissionContext,
  PLAN_TOOL,
  REFUSED_BY_USER,
} from './permissions.ts'
import { openPlanMode } from './plan-mode.ts'
import { openPromptCommands, type PromptCommands } from './prompt-commands.ts'
import { openSessionSandbox } from './session-sandbox.ts'
import { findUserSettingsPath } from './settings.ts'

interface SessionPlace {
  /** The working directory. */
  readonly folder: string
  readonly log: string
  /** The folder with the files of the session. */
  readonly ownFolder: string
}

/** What decides about the tool calls of a session, and what else depends on it: sandbox, slash commands, skills and plan mode. */
export interface ToolPermissions
  extends Pick<Agent, 'expandPrompt' | 'listPromptFiles' | 'switchMode' | 'sandbox'> {
  readonly context: PermissionContext
  readonly promptTools: Pick<ToolEnvironment, 'skills' | 'endPlanMode'>
  readonly sources: readonly ContextSource[]
  readonly cleanups: NonNullable<TidemarkOptions['cleanups']>
}

/** Opens what decides about tool calls: rules, plan mode, sandbox, and slash commands with their rules. Subagents inherit it. */
export async function openPermissions(options: AgentOptions, place: SessionPlace): Promise<ToolPermissions> {
  if (options.inherited !== undefined) return await inheritPermissions(options, options.inherited, place)
  const { folder, log, ownFolder } = place
  const { settings, home, mode, allowed = [] } = options
  let sandbox: OpenSandboxResult | null = null
  const plan = await openPlanMode({
    file: join(ownFolder, 'plan-mode.json'),
    given: mode,
    usual: settings.permissionMode,
    canAsk: options.askPermission !== undefined,
    canSwitch: options.canSwitchMode === true,
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
    guardedPaths: settings.hookFiles ?? [],
    protectedFolders: [home, dirname(findUserSettingsPath(options.env))].map((path) => resolveRealPath(path)),
    ownRules: settings.ownRules ?? [],
    findGitProgram: createGitCheck(settings, folder),
    get sandbox() {
      return sandbox?.ok === true ? sandbox.sandbox : undefined
    },
  }
  sandbox = await openSessionSandbox(options, context, ownFolder)
  const prompts = await openPrompts(options, context)
  readableFolders.push(...prompts.skillFolders)
  for (const file of prompts.unread) options.onUnread?.('skill or command', file)
  const expandPrompt: Agent['expandPrompt'] = async (prompt, signal) => {
    const { allowed: rules, ...expanded } = await prompts.expand(prompt, signal)
    // The rules that a slash command grants are valid until the next prompt.
    granted = rules
    return expanded
  }
  const promptTools: Pick<ToolEnvironment, 'skills' | 'endPlanMode'> = {
    ...(prompts.skills === null ? {} : { skills: prompts.skills }),
    ...(plan.isUsed ? { endPlanMode: () => plan.end() } : {}),
  }
  const forgetRules = createRuleCleanup(() => {
    granted = []
  })
  return {
    context,
    sandbox,
    promptTools,
    sources: [plan.source, ...(isToolOffered(options, 'Skill') ? prompts.sources : [])],
    expandPrompt,
    switchMode: plan.switchTo,
    listPromptFiles: prompts.list,
    cleanups: [forgetRules],
  }
}

/** Returns a check for untrusted programs that repositories make Git run. Made at each call: a checkout may bring hooks. */
function createGitCheck(
  { isItemTrusted = () => false }: AgentOptions['settings'],
  folder: string,
): NonNullable<PermissionContext['findGitProgram']> {
  return (starts) => {
    const item = [...new Set([folder, ...starts])]
      .flatMap(listGitTrustItems)
      .find((each) => !isItemTrusted(each))
    return item === undefined ? null : formatTrustItem(item).replace(/^git: /, '')
  }
}

function createRuleCleanup(forgetRules: () => void): NonNullable<TidemarkOptions['cleanups']>[number] {
  return {
    name: 'rules of a slash command',
    scope: 'main',
    forget({ kind }) {
      // The prompt with the command may no longer be in the conversation.
      if (kind === 'undo' || kind === 'rewind') forgetRules()
    },
  }
}

/**
 * Opens the permissions of a subagent: those of the agent that started it, read at each call. It has its own folder for files and its own
 * skills. If it was started in plan mode, it stays in plan mode.
 */
async function inheritPermissions(
  options: AgentOptions,
  { context: starter, isPlanning }: SubagentInheritance,
  { folder, log, ownFolder }: SessionPlace,
): Promise<ToolPermissions> {
  const readableFolders = [...(starter.readableFolders ?? []), ownFolder, log]
  const context: PermissionContext = {
    get rules() {
      return starter.rules
    },
    get mode() {
      return isPlanning ? 'plan' : starter.mode
    },
    folder,
    readableFolders,
    sandbox: starter.sandbox,
    guardedPaths: starter.guardedPaths ?? [],
    protectedFolders: starter.protectedFolders ?? [],
    ownRules: starter.ownRules ?? [],
    ...(starter.findGitProgram === undefined ? {} : { findGitProgram: starter.findGitProgram }),
  }
  const { skills, sources, skillFolders, list } = await openPrompts(options, context)
  readableFolders.push(...skillFolders)
  return {
    context,
    sandbox: null,
    promptTools: skills === null ? {} : { skills },
    sources: isToolOffered(options, 'Skill') ? sources : [],
    expandPrompt: async (prompt) => ({ prompt, notices: [] }),
    switchMode: async () => {},
    listPromptFiles: list,
    cleanups: [],
  }
}

function openPrompts(options: AgentOptions, context: PermissionContext): Promise<PromptCommands> {
  return openPromptCommands({
    places: createPromptFilePlaces(options, context),
    env: createCommandEnvironment(options),
    context,
    isTrusted: options.settings.isItemTrusted ?? (() => false),
    wasTrusted: options.settings.wasItemTrusted ?? (() => false),
  })
}

/** Returns where skills, slash commands and agents are, and which of the project's may be read. */
export function createPromptFilePlaces({ env }: AgentOptions, context: PermissionContext): PromptFilePlaces {
  const { folder } = context
  return {
    home: env.HOME ?? homedir(),
    project: folder,
    isPermitted: (path) => mayReadUnasked(path, folder, context),
  }
}

/**
 * Returns options with which questions to the user come one at a time, although several agents may ask. If an agent is stopped while its
 * question waits, the question is dropped.
 */
export function queueQuestionsInOptions(options: AgentOptions): AgentOptions {
  let last: Promise<unknown> = Promise.resolve()
  const waitInTurn = <Answer>(ask: () => Promise<Answer>): Promise<Answer> => {
    const answer = last.then(ask)
    last = answer.catch(() => undefined)
    return answer
  }
  const { askPermission, askUser } = options
  return {
    ...options,
    ...(askPermission === undefined
      ? {}
      : {
          askPermission: (request) =>
            waitInTurn(async () =>
              request.signal?.aborted === true ? { isAllowed: false } : await askPermission(request),
            ),
        }),
    ...(askUser === undefined
      ? {}
      : {
          askUser: (questions, signal) =>
            waitInTurn(async () => {
              signal?.throwIfAborted()
              return await askUser(questions, signal)
            }),
        }),
  }
}

/**
 * Returns the check that hides files from searches in a folder around them, if a rule denies reading them or requires a question; nothing
 * if no rule does so.
 */
export function createHiddenFileCheck(context: PermissionContext): Pick<ToolEnvironment, 'isHidden'> {
  if (!hasReadRestrictions(context.rules)) return {}
  const decide = (tool: string, path: string) =>
    decidePermission(tool, { kind: 'read', paths: [path] }, context).decision
  return {
    isHidden(tool, file, root) {
      const decision = decide(tool, file)
      // If the search itself needed a question, the user's answer covers the files in it.
      return decision === 'deny' || (decision === 'ask' && decide(tool, root) !== 'ask')
    },
  }
}

/**
 * Returns the permission check, and the hook that asks the user, as session options. The hook runs after the hooks of the
 * settings, so it only gets calls that these have not decided. Refused calls are added to `denials`, and the path that a call may
 * write, as it was checked, to `permittedWrites` under the id of the call.
 */
export function createPermissionOptions(
  { askPermission }: AgentOptions,
  context: PermissionContext,
  {
    denials,
    isReadOnly,
    shells,
    permittedWrites,
  }: {
    readonly permittedWrites: Map<string, string>
    readonly denials: PermissionDenial[]
    readonly isReadOnly: (tool: string) => boolean
    readonly shells: Pick<ToolEnvironment['shells'], 'folder'>
  },
): Required<Pick<TidemarkOptions, 'canUseTool'>> & {
  readonly hooks: Pick<SessionHooks, 'permissionRequest'>
} {
  const decide = (name: string, input: object, id?: string) => {
    const access = describeToolAccess(name, input, context.folder)
    const [written] = access.kind === 'write' ? access.paths : []
    if (id !== undefined && written !== undefined) permittedWrites.set(id, written)
    const folder = shells.folder ?? context.folder
    return decidePermission(name, { ...access, folder, isReadOnly: isReadOnly(name) }, context)
  }
  const canUseTool: NonNullable<TidemarkOptions['canUseTool']> = ({ id, name, input: given }) => {
    const input = given as object
    const { decision, reason, suggestions } = decide(name, input, id)
    if (decision === 'deny') denials.push({ tool: name, input, reason, suggestions })
    return { decision, reason }
  }
  const askHook = {
    name: PERMISSION_HOOK_NAME,
    timeoutSeconds: SECONDS_TO_ANSWER,
    async run({ call, reason }: PermissionQuestion, given?: Pick<AbortSignal, 'aborted'>) {
      const signal = given instanceof AbortSignal ? given : undefined
      const { name: tool } = call
      const input = call.input as object
      const { suggestions } = decide(tool, input)
      const place = tool === 'Bash' && shells.folder !== null ? { folder: shells.folder } : {}
      const answer = await askPermission?.({ tool, input, reason, suggestions, signal, ...place })
      if (answer?.isAllowed === true) return { decision: 'allow' as const }
      if (signal?.aborted === true) return { decision: 'deny' as const, reason: 'The agent was stopped.' }
      denials.push({ tool, input, reason, suggestions })
      const said = answer?.reason ?? ''
      const refusal =
        answer === undefined
          ? `${reason} Nobody can be asked.${explainAllowing(tool, suggestions)}`
          : `${REFUSED_BY_USER}${said === '' ? '' : ` The user said: ${said}`}`
      const byUser = answer === undefined ? {} : { userReason: said }
      return { decision: 'deny' as const, reason: refusal, ...byUser }
    },
  }
  return { canUseTool, hooks: { permissionRequest: [askHook] } }
}

interface PermissionQuestion {
  readonly call: { readonly name: string; readonly input: unknown }
  readonly reason: string
}

/** Time limit for an answer of the user: one day. */
const SECONDS_TO_ANSWER = 86_400

function explainAllowing(tool: string, suggestions: readonly string[]): string {
  if (tool === PLAN_TOOL)
    return ' Give the plan as your answer and end your turn: the user can approve it with another --permission-mode.'
  return suggestions.length === 0
    ? ''
    : ` The user can allow it with ${formatAllowedToolsOption(suggestions)}, or in permissions.allow of the settings.`
}
