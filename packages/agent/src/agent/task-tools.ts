/** The tools Task, TaskOutput and TaskStop: starting subagents, reading their results, and stopping them. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { formatCount } from '@tidemark/terminal/render/format-numbers'
import type { Session, ToolOutput } from 'tidemark'
import { DEFAULT_SUBAGENT_TYPE } from '../tools/tool-access.ts'
import {
  type AgentTool,
  type AgentToolContext,
  cutText,
  defineTool,
  ToolError,
} from '../tools/tool-definition.ts'
import { type AgentDefinition, readAgentDefinitions } from './agent-definitions.ts'
import { NO_LIMIT_USAGE, toLimitUsage } from './agent-limits.ts'
import { type AgentOptions, isToolOffered, type SharedSubagentState } from './agent-options.ts'
import { createPromptFilePlaces } from './agent-permissions.ts'
import { openSubagentStore, type SubagentRecord } from './subagent-records.ts'
import {
  createSubagents,
  formatSubagentResult,
  mayStartSubagents,
  type Subagents,
  type SubagentsOptions,
} from './subagents.ts'

interface OpenedSubagents {
  /** Null if this agent may not start subagents. */
  readonly subagents: Subagents | null
  readonly taskTools: Readonly<Record<string, AgentTool>>
  readonly team: SharedSubagentState
  /** Reads the present definitions; none if this agent may not start subagents. */
  listDefinitions(): Promise<readonly AgentDefinition[]>
}

/** Opens the subagents of an agent, with the tools that start and stop them. Reports problems in definitions to the user. */
export async function openSubagentTools(
  options: AgentOptions,
  parts: Pick<SubagentsOptions, 'context' | 'denials' | 'readServers' | 'openAgent'> & {
    /** The folder with the files of the session. */
    readonly ownFolder: string
    readonly findSession: () => Session | null
  },
): Promise<OpenedSubagents> {
  const { settings, inherited, onUnread, onNotice } = options
  const team = inherited?.team ?? (await createTeam(join(parts.ownFolder, 'subagents'), parts.findSession))
  if (!mayStartSubagents(options) || !isToolOffered(options, 'Task'))
    return { subagents: null, taskTools: {}, team, listDefinitions: async () => [] }
  const places = createPromptFilePlaces(options, parts.context)
  const read = () => readAgentDefinitions(places, settings.isItemTrusted ?? (() => false))
  const { definitions, unread, problems } = await read()
  for (const file of unread) onUnread?.('definition of an agent', file)
  if (inherited === undefined) for (const problem of problems) onNotice?.(problem)
  const listDefinitions = async () => (await read()).definitions
  const subagents = createSubagents({
    ...parts,
    agent: options,
    isOffered: (tool) => isToolOffered(options, tool),
    team,
    readDefinitions: listDefinitions,
  })
  const taskTools = createTaskTools({ subagents, definitions, home: team.records.home })
  return { subagents, taskTools, team, listDefinitions }
}

async function createTeam(home: string, findSession: () => Session | null): Promise<SharedSubagentState> {
  const runHooks: SharedSubagentState['runHooks'] = async (point, input) =>
    (await findSession()?.runHooks(point, input)) ?? []
  const readMainSpending: SharedSubagentState['readMainSpending'] = () => {
    const session = findSession()
    return session === null ? NO_LIMIT_USAGE : toLimitUsage(session.money())
  }
  return { records: await openSubagentStore(home), working: new Map(), runHooks, readMainSpending }
}

interface TaskToolsOptions {
  readonly subagents: Subagents
  /** The definitions at the start of the session, for the description of Task. */
  readonly definitions: readonly AgentDefinition[]
  /** The Tidemark home of the subagents' sessions. */
  readonly home: string
}

function createTaskTools(options: TaskToolsOptions): Readonly<Record<string, AgentTool>> {
  return {
    Task: createTaskTool(options),
    TaskOutput: createTaskOutputTool(options),
    TaskStop: createTaskStopTool(options),
  }
}

interface TaskInput {
  readonly description: string
  readonly prompt: string
  readonly subagent_type?: string
  readonly run_in_background?: boolean
  readonly resume?: string
}

function createTaskTool({ subagents, definitions, home }: TaskToolsOptions): AgentTool {
  return defineTool<TaskInput>({
    description: `Starts an agent with its own context for a part of the work, and returns its answer. Use it for work that reads or tries much of which you need only the result, and for independent parts: several calls in one message run at the same time. The agent sees nothing of this conversation, so the prompt must say everything: the goal, what is known, and what to return. Only you see its answer. The types:\n${listTypes(definitions)}`,
    fields: {
      description: { type: 'string', description: 'The task in three to six words.' },
      prompt: { type: 'string', description: 'The whole task.' },
      subagent_type: {
        type: 'string',
        description: `The type of the agent. Default: ${DEFAULT_SUBAGENT_TYPE}.`,
      },
      run_in_background: {
        type: 'boolean',
        description:
          'Return at once with an id while the agent works on. You are told its result when it ends; do not wait for it in a loop.',
      },
      resume: {
        type: 'string',
        description:
          'The id of an agent that has ended: it goes on with its conversation, and its type stays.',
      },
    },
    required: ['description', 'prompt'],
    parallel: true,
    async run({ description, prompt, subagent_type, run_in_background = false, resume }, context) {
      if (prompt.trim() === '') throw new ToolError('The prompt is empty.')
      const record = await subagents.start(
        {
          description,
          prompt,
          type: subagent_type?.trim() || DEFAULT_SUBAGENT_TYPE,
          isBackground: run_in_background,
          resumes: resume?.trim() || null,
          signal: context.signal,
        },
        run_in_background ? undefined : context.progress,
      )
      if (run_in_background)
        return `The agent ${record.id} (${record.type}) works in the background. You are told its result when it ends; TaskStop ends it.`
      return await waitForAnswer(record.id, { subagents, home, context })
    },
  })
}

/** Waits for a subagent in the foreground. If the turn is aborted, the subagent is stopped. */
async function waitForAnswer(
  id: string,
  given: { readonly subagents: Subagents; readonly home: string; readonly context: AgentToolContext },
): Promise<ToolOutput> {
  const { subagents, home, context } = given
  const working = subagents.findWorking(id)
  const stop = (): void => working?.stop('stopped')
  context.signal.addEventListener('abort', stop)
  if (context.signal.aborted) stop()
  const record = (await working?.ended) ?? subagents.find(id)
  context.signal.removeEventListener('abort', stop)
  return answer(record, { subagents, home, context })
}

function answer(
  record: SubagentRecord,
  { subagents, home, context }: { subagents: Subagents; home: string; context: AgentToolContext },
): ToolOutput {
  subagents.noteAnswer(context.id, record.id)
  return { content: formatSubagentResult(record, home), isError: record.status !== 'finished' }
}

const DEFAULT_WAIT_SECONDS = 60
const MAX_WAIT_SECONDS = 600

function createTaskOutputTool({ subagents, home }: TaskToolsOptions): AgentTool {
  return defineTool<{ agent_id: string; wait_seconds?: number }>({
    description: 'Returns the result of an agent, or what it is doing if it is still working.',
    fields: {
      agent_id: { type: 'string', description: 'The id that Task returned.' },
      wait_seconds: {
        type: 'number',
        description: `Seconds to wait for its end. Default ${DEFAULT_WAIT_SECONDS}, at most ${MAX_WAIT_SECONDS}; 0 returns at once.`,
      },
    },
    required: ['agent_id'],
    parallel: true,
    async run({ agent_id, wait_seconds = DEFAULT_WAIT_SECONDS }, context) {
      subagents.find(agent_id)
      const ended = subagents.findWorking(agent_id)?.ended
      if (ended !== undefined) await waitAtMost(ended, wait_seconds, context.signal)
      const record = subagents.find(agent_id)
      if (record.status !== 'running') return answer(record, { subagents, home, context })
      return `The agent ${agent_id} is still working: ${formatCount(record.calls, 'call')} to the model so far. You are told its result when it ends.`
    },
  })
}

async function waitAtMost(ended: Promise<unknown>, seconds: number, signal: AbortSignal): Promise<void> {
  const over = new AbortController()
  const limit = Math.min(MAX_WAIT_SECONDS, Math.max(0, seconds)) * 1000
  const timer = sleep(limit, undefined, { signal: AbortSignal.any([signal, over.signal]) })
  await Promise.race([ended, timer.catch(() => undefined)])
  over.abort()
}

function createTaskStopTool({ subagents, home }: TaskToolsOptions): AgentTool {
  return defineTool<{ agent_id: string }>({
    description: 'Stops an agent, and returns what it has done. It can be resumed with Task.',
    fields: { agent_id: { type: 'string', description: 'The id that Task returned.' } },
    required: ['agent_id'],
    async run({ agent_id }, { id }) {
      const { status } = subagents.find(agent_id)
      const working = subagents.findWorking(agent_id)
      if (working === null) return `The agent ${agent_id} had ended already (${status}).`
      working.stop('stopped')
      subagents.noteAnswer(id, agent_id)
      return formatSubagentResult(await working.ended, home)
    },
  })
}

const DESCRIPTION_CHARACTERS = 1_000
const ALL_CHARACTERS = 10_000

/** Lists the types with their descriptions, sorted by name, so that the tool's definition does not change. */
function listTypes(definitions: readonly AgentDefinition[]): string {
  const lines = definitions
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
    .map(({ name, description }) => `- ${name}: ${cutText(description, DESCRIPTION_CHARACTERS)}`)
  const text = lines.join('\n')
  return text.length <= ALL_CHARACTERS ? text : `${cutText(text, ALL_CHARACTERS)} …`
}
