/**
 * Definitions of subagents: two built-in ones, and the files in `.claude/agents` of the user and of the project. A
 * definition can narrow what a subagent may do, never widen it. A project's definition counts only if the user has trusted
 * it as it is now.
 */

import { createHash } from 'node:crypto'
import type { ModelChoice } from 'tidemark'
import { lookUpModel, modelCatalogue } from 'tidemark/catalogue'
import {
  type FoundPromptFile,
  type PromptFilePlaces,
  readMatterList,
  readMatterText,
  readPromptFiles,
} from 'tidemark/project'
import {
  AGENT_TOOL_NAMES,
  DEFAULT_SUBAGENT_TYPE,
  isPathWithin,
  matchesToolName,
  resolveRealPath,
  toShownPath,
} from '../tools/tool-access.ts'
import { ToolError } from '../tools/tool-definition.ts'
import type { TrustItem } from './folder-trust.ts'

/** What a subagent of one type is told and may do. */
export interface AgentDefinition {
  readonly name: string
  /** The purpose of the subagent, for the model that may start it. */
  readonly description: string
  readonly instructions: string
  /** Names of its tools, such as `Read` or `mcp__files__*`; null for all tools of the starting agent. */
  readonly tools: readonly string[] | null
  readonly forbiddenTools: readonly string[]
  /** A model id, or `sonnet`, `opus` or `haiku`; null for the model of the starting agent. */
  readonly model: string | null
  /** The context window in tokens, if it should be smaller than the model's. */
  readonly window: number | null
  /** Number of model calls after which the subagent ends with a partial result; null for the limit of the settings. */
  readonly maxTurns: number | null
  /** True if the subagent works in plan mode, whatever the mode of the starting agent. */
  readonly isPlanning: boolean
}

const COMMON = { forbiddenTools: [], model: null, window: null, maxTurns: null } as const

const BUILT_IN_AGENTS: readonly AgentDefinition[] = [
  {
    ...COMMON,
    name: DEFAULT_SUBAGENT_TYPE,
    description: 'Any task of several steps that needs its own context. It has the same tools as you.',
    instructions: 'Do the whole task, and verify the result as far as you can.',
    tools: null,
    isPlanning: false,
  },
  {
    ...COMMON,
    name: 'explore',
    description:
      'Finds out how something works or where it is, in many files, and returns what matters. It only reads.',
    instructions: 'Search widely, read what matters, and answer with places as path:line. Change nothing.',
    tools: ['Read', 'Grep', 'Glob', 'WebFetch', 'TodoWrite', 'mcp__*'],
    isPlanning: true,
  },
]

interface AgentDefinitions {
  readonly definitions: readonly AgentDefinition[]
  /** Files that exist but could not or must not be read, with the reason. */
  readonly unread: readonly { readonly path: string; readonly why: string }[]
  /** Sentences for the user about tools and models that definitions name but that do not exist. */
  readonly problems: readonly string[]
}

/** Reads the definitions: the user's, the project's trusted ones, the built-in ones. The first one of a name counts. */
export async function readAgentDefinitions(
  places: PromptFilePlaces,
  isTrusted: (item: TrustItem) => boolean,
): Promise<AgentDefinitions> {
  const { all, unread } = await readPromptFiles(places, 'agent')
  const mayUse = (file: FoundPromptFile): boolean =>
    file.origin === 'user' || isTrusted(describeDefinition(file, places.project))
  // Untrusted files are removed first, so that they cannot take the name of a trusted file.
  const usable = all.filter(mayUse)
  const used = usable.filter(({ name }, index) => usable.findIndex((one) => one.name === name) === index)
  const definitions = used.map(toDefinition)
  const known = new Set(definitions.map(({ name }) => name))
  return {
    definitions: [...definitions, ...BUILT_IN_AGENTS.filter(({ name }) => !known.has(name))],
    unread,
    problems: used.flatMap((file) => describeDefinitionProblem(file) ?? []),
  }
}

/**
 * Names the tools and the model of a definition that do not exist; null if all do. Tools of MCP servers, which may appear later,
 * count as existing.
 */
function describeDefinitionProblem(file: FoundPromptFile): string | null {
  const { name, tools, forbiddenTools, model } = toDefinition(file)
  const named = [...(tools ?? []), ...forbiddenTools].filter((tool) => !/^mcp__|\*/.test(tool))
  const unknown = [...new Set(named)].filter((tool) => !AGENT_TOOL_NAMES.includes(tool))
  const isKnownModel = model === null || FAMILY.test(model) || lookUpModel(modelCatalogue, model).found
  const parts = [
    ...(unknown.length === 0 ? [] : [`there is no tool ${unknown.join(', ')}`]),
    ...(isKnownModel ? [] : [`the model ${model} is not in the catalogue`]),
  ]
  return parts.length === 0 ? null : `The agent ${name} (${file.path}): ${parts.join('; ')}.`
}

function toDefinition({ name, description, body, matter }: FoundPromptFile): AgentDefinition {
  const readCount = (field: string): number | null => {
    const text = readMatterText(matter, field)?.replaceAll('_', '') ?? ''
    return /^[1-9]\d{0,8}$/.test(text) ? Number(text) : null
  }
  const model = readMatterText(matter, 'model')
  return {
    name,
    description: description === '' ? `The agent ${name}.` : description,
    instructions: body.trim(),
    tools: matter.has('tools') ? readMatterList(matter, 'tools') : null,
    forbiddenTools: readMatterList(matter, 'disallowedTools'),
    model: model === null || model === '' || model === 'inherit' ? null : model,
    window: readCount('window'),
    maxTurns: readCount('maxTurns'),
    isPlanning: readMatterText(matter, 'permissionMode') === 'plan',
  }
}

/** Returns true if a definition lets its subagents have a tool. That the starting agent has the tool is not checked. */
export function canAgentUseTool({ tools, forbiddenTools }: AgentDefinition, tool: string): boolean {
  const isNamed = (name: string): boolean => matchesToolName(name, tool)
  // A definition cannot forbid a part of a tool, so `Bash(rm:*)` forbids Bash.
  const isForbidden = forbiddenTools.some((name) => isNamed(name.replace(/\(.*$/s, '')))
  return (tools === null || tools.some(isNamed)) && !isForbidden
}

/**
 * Returns the model of a subagent. A larger window than the model's is ignored. Throws a `ToolError` if there is no such model.
 */
export function chooseSubagentModel({ name, model, window }: AgentDefinition, own: ModelChoice): ModelChoice {
  const chosen = model === null ? own : findModel(name, model, own)
  if (window === null || (chosen.window !== null && chosen.window <= window)) return chosen
  return { ...chosen, window }
}

const FAMILY = /^(?:sonnet|opus|haiku)$/

function findModel(agent: string, model: string, own: ModelChoice): ModelChoice {
  const isFamily = FAMILY.test(model)
  if (model === own.id || (isFamily && own.id.includes(model))) return own
  // The catalogue lists the newest model of each family first.
  const id = isFamily ? modelCatalogue.models.find((each) => each.id.includes(model))?.id : model
  try {
    if (id !== undefined && own.sibling !== undefined) return own.sibling(id)
  } catch (error) {
    throw new ToolError(`The agent ${agent} cannot be started: ${(error as Error).message}`)
  }
  throw new ToolError(`The agent ${agent} cannot be started: there is no model ${model}.`)
}

// Trust. A project's definition becomes the system prompt of an agent that has the user's permissions.

function describeDefinition(file: FoundPromptFile, project: string): TrustItem {
  const { name, path, matter, body } = file
  const { tools, model, isPlanning } = toDefinition(file)
  const hash = createHash('sha256')
    .update(JSON.stringify([matter, body]))
    .digest('hex')
  return {
    setting: 'agents',
    parts: [
      `${name}:`,
      tools === null ? 'all tools,' : `tools ${tools.join(', ')},`,
      ...(model === null ? [] : [`model ${model},`]),
      ...(isPlanning ? ['only reads,'] : []),
      `as in ${toShownPath(path, project)},`,
      `sha256 ${hash}`,
    ],
  }
}

/** Lists the definitions of a project, for the user to trust. */
export async function listAgentTrustItems(folder: string, home: string): Promise<readonly TrustItem[]> {
  const project = resolveRealPath(folder)
  // In the home folder, these files are the user's own.
  if (project === resolveRealPath(home)) return []
  const isPermitted = (path: string): boolean => isPathWithin(path, project)
  const { all } = await readPromptFiles({ home: null, project, isPermitted }, 'agent')
  return all.map((file) => describeDefinition(file, project))
}

/** Lists problems in the agents, skills and commands of a project, as sentences for the user. */
export async function listPromptFileProblems(folder: string): Promise<readonly string[]> {
  const project = resolveRealPath(folder)
  const places = { home: null, project, isPermitted: (path: string): boolean => isPathWithin(path, project) }
  const [prompts, agents] = [await readPromptFiles(places), await readPromptFiles(places, 'agent')]
  return [
    ...[...prompts.unread, ...agents.unread].map(({ path, why }) => `${path} is not used: ${why}.`),
    ...agents.files.flatMap((file) => describeDefinitionProblem(file) ?? []),
  ]
}
