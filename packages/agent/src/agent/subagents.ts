/**
 * Subagents: conversations that an agent starts for a part of its work. Each has its own context window, engine, files that it has seen,
 * and a log under the starting session. It may do at most what the starting agent may do. Only its result enters the starting conversation.
 */

import type { ContextSource, SessionEvent } from 'tidemark'
import { agentsSource, type SessionHooks } from 'tidemark'
import { sessionPaths } from 'tidemark/logs'
import { defuseReminderTags } from 'tidemark/project'
import { isKnownRecord, isToolResult, readToolResultText, toBlocks } from 'tidemark/records'
import { cutText, ToolError } from '../tools/tool-definition.ts'
import { type AgentDefinition, chooseSubagentModel } from './agent-definitions.ts'
import type {
  Agent,
  AgentOptions,
  InheritedMcpServers,
  PermissionDenial,
  SharedSubagentState,
  WorkingSubagent,
} from './agent-options.ts'
import { decidePermission, type PermissionContext } from './permissions.ts'
import { runSubagent } from './run-subagent.ts'
import { EMPTY_SUBAGENT_RECORD, type SubagentRecord } from './subagent-records.ts'

export interface SubagentsOptions {
  /** The options of the agent that starts subagents. */
  readonly agent: AgentOptions
  readonly context: PermissionContext
  readonly denials: PermissionDenial[]
  readonly isOffered: (tool: string) => boolean
  readonly readServers: () => InheritedMcpServers
  readonly team: SharedSubagentState
  readonly readDefinitions: () => Promise<readonly AgentDefinition[]>
  readonly openAgent: (options: AgentOptions) => Promise<Agent>
}

interface TaskRequest {
  readonly description: string
  readonly prompt: string
  /** The name of a definition. A resumed agent keeps its own. */
  readonly type: string
  readonly isBackground: boolean
  /** The id of a subagent whose conversation is continued; null for a new one. */
  readonly resumes: string | null
  /** Aborted if the turn was stopped. A subagent that already works continues. */
  readonly signal: AbortSignal
}

/** The subagents that one agent has started. */
export interface Subagents {
  readonly sources: readonly ContextSource[]
  readonly hooks: Pick<SessionHooks, 'stop'>
  /** Starts an agent without waiting for its end. `onProgress` gets a line for each of its tool calls. Throws a `ToolError`. */
  start(request: TaskRequest, onProgress?: (line: string) => void): Promise<SubagentRecord>
  /** Returns a subagent that this agent has started. Throws a `ToolError` if there is none. */
  find(id: string): SubagentRecord
  findWorking(id: string): WorkingSubagent | null
  /** Records that the result of a tool call contains a subagent's result, so that it is not delivered again. */
  noteAnswer(callId: string, agentId: string): void
  /** Must be called with each event of the session. */
  noteEvent(event: SessionEvent): void
  /** Stops the agents that are working. They can be resumed. */
  close(): Promise<void>
}

const DEFAULT_LIMITS = { maxRunning: 10, maxDepth: 2 } as const
/** Maximum subagents in one session, including ended ones. */
const MAX_IN_SESSION = 200

/** Returns true if an agent may start subagents, because it is below the maximum depth. */
export function mayStartSubagents({ settings, inherited }: AgentOptions): boolean {
  return (inherited?.depth ?? 0) < (settings.subagents?.maxDepth ?? DEFAULT_LIMITS.maxDepth)
}

export function createSubagents(options: SubagentsOptions): Subagents {
  const { agent, team } = options
  const { records, working } = team
  const listOwn = (): readonly SubagentRecord[] =>
    records.list().filter(({ startedBy }) => startedBy === agent.sessionId)
  const answers = new Map<string, string>()
  const noteDelivered = (id: string | undefined): void => {
    const record = records.find(id ?? '')
    if (record === null || record.isDelivered || record.status === 'running') return
    // If this cannot be stored, a resumed session delivers the result once more.
    records.save({ ...record, isDelivered: true }).catch(() => undefined)
  }
  return {
    sources: [createStatusSource(listOwn), createResultSource(listOwn, records.home)],
    hooks: agent.waitsForSubagents === false ? {} : { stop: [createStopHook(listOwn, working)] },
    start: (request, onProgress) => startSubagent(options, request, onProgress),
    find(id) {
      const record = listOwn().find((each) => each.id === id)
      if (record !== undefined) return record
      const known = listOwn().map((each) => each.id)
      throw new ToolError(
        `There is no agent ${id}. ${known.length === 0 ? 'None was started.' : `There are: ${known.join(', ')}.`}`,
      )
    },
    findWorking: (id) => working.get(id) ?? null,
    noteAnswer: (callId, agentId) => void answers.set(callId, agentId),
    noteEvent(event) {
      if (event.type === 'tool-ended') {
        noteDelivered(answers.get(event.call.id))
        answers.delete(event.call.id)
      }
      if (event.type !== 'appended') return
      for (const record of event.records)
        if (record.type === 'attachment') noteDelivered(readResultAgentId(record))
    },
    async close() {
      const own = listOwn().flatMap(({ id }) => working.get(id) ?? [])
      for (const each of own) each.stop('interrupted')
      await Promise.all(own.map(({ ended }) => ended))
    },
  }
}

async function startSubagent(
  options: SubagentsOptions,
  request: TaskRequest,
  onProgress: (line: string) => void = () => {},
): Promise<SubagentRecord> {
  const { agent, context, team } = options
  const { records, working } = team
  const type = request.resumes === null ? request.type : findResumable(options, request.resumes).type
  const definition = await findDefinition(options, type)
  if (type !== request.type) checkTypeAllowed(type, context)
  const model = chooseSubagentModel(definition, agent.model)
  // No await from here on, so that no parallel call can also start the last allowed subagent or resume the same one.
  checkLimits(options, request)
  if (request.signal.aborted) throw new ToolError('The agent was not started, because the turn was stopped.')
  const before = request.resumes === null ? null : findResumable(options, request.resumes)
  const record: SubagentRecord = {
    ...EMPTY_SUBAGENT_RECORD,
    startedAt: Date.now(),
    ...(before ?? { id: records.createId(), type: definition.name }),
    description: cutText(request.description.trim(), 200),
    startedBy: agent.sessionId,
    depth: (agent.inherited?.depth ?? 0) + 1,
    isBackground: request.isBackground,
    // A subagent that was started to read only continues so, even if plan mode has ended.
    isPlanning: before?.isPlanning === true || definition.isPlanning || context.mode === 'plan',
    status: 'running',
    problem: null,
    isDelivered: false,
  }
  const stop = new AbortController()
  const ended = Promise.withResolvers<SubagentRecord>()
  working.set(record.id, { stop: (status) => stop.abort(status), ended: ended.promise })
  try {
    await records.save(record)
  } catch (error) {
    const { message } = error as Error
    const problem = { reason: 'failed', message }
    const failed: SubagentRecord = { ...record, status: 'failed', problem, isDelivered: true }
    // In this process, the subagent must not count as working any more, even if that cannot be stored.
    await records.save(failed).catch(() => undefined)
    working.delete(record.id)
    ended.resolve(failed)
    throw new ToolError(`The agent cannot be started: ${message}`)
  }
  const child = createChildOptions(options, { record, definition, model })
  runSubagent({ ...options, child, record, prompt: request.prompt, signal: stop.signal, onProgress })
    .finally(() => working.delete(record.id))
    .then(ended.resolve)
  return record
}

function checkLimits({ agent, team }: SubagentsOptions, { resumes }: TaskRequest): void {
  const { maxRunning } = { ...DEFAULT_LIMITS, ...agent.settings.subagents }
  if (team.working.size >= maxRunning)
    throw new ToolError(
      `${maxRunning} agents are working, which is the limit. Wait for one of them, or do it yourself.`,
    )
  if (resumes === null && team.records.list().length >= MAX_IN_SESSION)
    throw new ToolError(
      `This session has had ${MAX_IN_SESSION} agents, which is the limit. Resume one, or do it yourself.`,
    )
}

/** Checks the rules for the type of a resumed subagent, because the rules were applied to the type in the call. */
function checkTypeAllowed(type: string, context: PermissionContext): void {
  const access = { kind: 'none', paths: [], command: type } as const
  const { decision, reason } = decidePermission('Task', access, context)
  if (decision !== 'allow')
    throw new ToolError(`An agent of the type ${type} is not resumed: ${reason} Give its own subagent_type.`)
}

function findResumable({ agent, team }: SubagentsOptions, id: string): SubagentRecord {
  const record = team.records.find(id)
  if (record === null || record.startedBy !== agent.sessionId)
    throw new ToolError(`There is no agent ${id} to resume.`)
  if (team.working.has(id)) throw new ToolError(`The agent ${id} is still working.`)
  return record
}

async function findDefinition({ readDefinitions }: SubagentsOptions, type: string): Promise<AgentDefinition> {
  const definitions = await readDefinitions()
  const found = definitions.find(({ name }) => name === type)
  if (found !== undefined) return found
  throw new ToolError(
    `There is no agent of the type ${type}. The types: ${definitions.map(({ name }) => name).join(', ')}.`,
  )
}

/**
 * Returns the options of a subagent's session: folder, settings, environment, permissions and MCP servers of the agent
 * that starts it; model and definition as chosen. Questions about permissions name the subagent.
 */
function createChildOptions(
  { agent, context, denials, isOffered, readServers, team }: SubagentsOptions,
  chosen: Pick<AgentOptions, 'model'> & {
    readonly record: SubagentRecord
    readonly definition: AgentDefinition
  },
): AgentOptions {
  const { record, definition, model } = chosen
  const { folder, settings, env, engine, askPermission, onSubagent, limits, subagentLimits } = agent
  return {
    folder,
    settings,
    env,
    model,
    home: team.records.home,
    sessionId: record.id,
    ...(engine === undefined ? {} : { engine }),
    ...(limits === undefined ? {} : { limits }),
    ...(subagentLimits === undefined ? {} : { subagentLimits }),
    ...(onSubagent === undefined ? {} : { onSubagent }),
    ...(askPermission === undefined
      ? {}
      : { askPermission: (request) => askPermission({ agent: definition.name, ...request }) }),
    inherited: {
      definition,
      depth: record.depth,
      isPlanning: record.isPlanning,
      context,
      denials,
      isOffered,
      servers: readServers(),
      team,
    },
  }
}

// Messages to the starting conversation.

/** Maximum ended subagents that are listed after a compaction; the others can still be resumed. */
const LISTED = 20

/** Lists the subagents after a compaction: those that work or whose results were not delivered, and the newest of the others. */
function createStatusSource(listOwn: () => readonly SubagentRecord[]): ContextSource {
  return agentsSource(() => {
    const own = listOwn()
    const ended = own.filter(({ status }) => status !== 'running').slice(-LISTED)
    return own
      .filter((record) => record.status === 'running' || ended.includes(record) || !record.isDelivered)
      .map(({ id, type, description, status, isDelivered }) => ({
        id,
        purpose: `${type}: ${description}`,
        status,
        isCollected: isDelivered,
        isAskable: true,
        output: 'TaskOutput returns it; Task with resume asks the agent again.',
      }))
  })
}

const RESULT_TYPE = 'agent_result'
/** Maximum characters of a result that enter the conversation at once. TaskOutput returns the whole result. */
const RESULT_CHARACTERS = 10_000

/** Delivers the results of ended subagents that no tool call has returned, each once. */
function createResultSource(listOwn: () => readonly SubagentRecord[], home: string): ContextSource {
  return {
    name: 'agent-results',
    kind: 'host',
    tellsChanges: true,
    isWhole: false,
    limit: () => null,
    async *render({ moment, session }) {
      if (moment === 'compaction') return
      const ended = listOwn().filter(({ status, isDelivered }) => status !== 'running' && !isDelivered)
      for (const record of ended) {
        const { id, type, status, description } = record
        const whole = formatSubagentResult(record, home)
        if (isInBranch(session, whole)) continue
        const cut = whole.length > RESULT_CHARACTERS ? `\n[cut: TaskOutput returns the whole]` : ''
        const text = `${id} (${type}, ${status}): ${description}\n${cutText(whole, RESULT_CHARACTERS)}${cut}`
        // The subagent may quote a web page or file, which must not look like a message of the program.
        const content = defuseReminderTags(text)
        yield { id, attachment: { type: RESULT_TYPE, agentId: id, content }, source: id }
      }
    },
  }
}

/** Returns true if the conversation has this result, even if a kill came before the record said so. */
function isInBranch(
  { branch, records }: Parameters<ContextSource['render']>[0]['session'],
  result: string,
): boolean {
  return branch.toArray().some((index) => {
    const record = records.at(index)
    if (record === undefined || !isKnownRecord(record) || record.type !== 'user') return false
    return toBlocks(record.message.content).some(
      (block) => isToolResult(block) && readToolResultText(block.content) === result,
    )
  })
}

/** Returns the id of the subagent whose result an attachment delivers. */
function readResultAgentId(record: object): string | undefined {
  const { attachment } = record as {
    readonly attachment?: { readonly type?: string; readonly agentId?: unknown }
  }
  return attachment?.type === RESULT_TYPE ? String(attachment.agentId) : undefined
}

const SECONDS_TO_WAIT = 86_400

/** At the end of a turn, waits for background subagents, then lets the model continue with their results. */
function createStopHook(
  listOwn: () => readonly SubagentRecord[],
  working: SharedSubagentState['working'],
): NonNullable<SessionHooks['stop']>[number] {
  return {
    name: 'subagents',
    waitsForWork: true,
    timeoutSeconds: SECONDS_TO_WAIT,
    async run() {
      await Promise.all(listOwn().flatMap(({ id }) => working.get(id)?.ended ?? []))
      const undelivered = listOwn().filter(({ isDelivered, isBackground }) => isBackground && !isDelivered)
      if (undelivered.length === 0) return undefined
      const ids = undelivered.map(({ id }) => id).join(', ')
      return { block: `agents in the background have ended (${ids}), and you are told their results.` }
    },
  }
}

/** Formats the result of a subagent for the model; if it did not finish, the reason, its files and its last text. */
export function formatSubagentResult(record: SubagentRecord, home: string): string {
  const { id, type, status, text, problem, calls, costUsd, filesChanged, filesRead } = record
  const facts = `${calls} ${calls === 1 ? 'call' : 'calls'} to the model, ${costUsd === null ? 'cost unknown' : `$${costUsd.toFixed(4)}`}`
  const resumeHint = `Task with resume "${id}" goes on with its conversation.`
  if (status === 'finished') return `${text ?? '(no text)'}\n\n[${id} (${type}): ${facts}. ${resumeHint}]`
  const list = (paths: readonly string[]): string => (paths.length === 0 ? 'none' : paths.join(', '))
  return [
    `The agent ${id} (${type}) has not finished: ${status}${problem === null ? '' : ` (${problem.reason}): ${problem.message}`}`,
    'Partial result:',
    `- files changed: ${list(filesChanged)}`,
    `- files read: ${list(filesRead)}`,
    `- ${facts}`,
    `- last text: ${text ?? 'none'}`,
    `- log: ${sessionPaths(home, id).log}`,
    resumeHint,
  ].join('\n')
}
