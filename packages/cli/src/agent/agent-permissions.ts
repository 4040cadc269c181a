/** The permissions of an agent's session: what decides about its tool calls, asks the user, and hides files from searches. */
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { TidemarkOptions } from 'tidemark'
import type { AgentEnvironment } from '../tools/agent-environment.ts'
import { describeToolAccess } from '../tools/tool-access.ts'
import {
  type Agent,
  type AgentOptions,
  createCommandEnvironment,
  isOffered,
  type PermissionDenial,
} from './agent-options.ts'
import { findTrustFolder } from './folder-trust.ts'
import { mayReadUnasked } from './memory-sources.ts'
import { decidePermission, hasSearchLimits, type PermissionContext, PLAN_TOOL } from './permissions.ts'
import { openPlanMode } from './plan-mode.ts'
import { openPromptCommands } from './prompt-commands.ts'

/** Opens what decides about tool calls: rules, plan mode, and the slash commands, which bring rules of their own. */
export async function openPermissions(
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

/** Hides files from searches in a folder around them, if a rule denies reading them or asks first. */
export function createHiding(context: PermissionContext): Pick<AgentEnvironment, 'isHidden'> {
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

/**
 * Returns the permission check, and the hook that asks the user, as options of a session. The hook runs after the hooks of
 * the settings, so it is asked only about what they have not decided.
 */
export function createPermissions(
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
