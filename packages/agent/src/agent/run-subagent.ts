/**
 * Runs one subagent: opens its session, works on the prompt, and closes it. Hooks run at its start and end. Its progress is stored after
 * each step, so that a kill loses no work that was paid for.
 */

import type { Run, RunOutcome, SessionEvent } from 'tidemark'
import { sessionPaths } from 'tidemark/logs'
import { wrapInReminder } from 'tidemark/project'
import { describeToolCall, isTextBlock, toBlocks } from 'tidemark/records'
import { cutText } from '../tools/tool-definition.ts'
import { DEFAULT_SUBAGENT_LIMITS, toLimitUsage } from './agent-limits.ts'
import type { Agent, AgentOptions, SharedSubagentState } from './agent-options.ts'
import { describeProgress } from './chat-output.ts'
import type { SubagentEvent, SubagentRecord } from './subagent-records.ts'

interface SubagentRun {
  readonly openAgent: (options: AgentOptions) => Promise<Agent>
  readonly team: SharedSubagentState
  /** The options of the subagent's session. */
  readonly child: AgentOptions
  readonly record: SubagentRecord
  readonly prompt: string
  /** Stops the subagent. The abort reason becomes its status. */
  readonly signal: AbortSignal
  /** Called with a line for each tool call. */
  readonly onProgress: (line: string) => void
}

/** Runs a subagent to its end and stores the result. Never throws: a failure is a status of the record. */
export async function runSubagent(run: SubagentRun): Promise<SubagentRecord> {
  const { child, team, record } = run
  const emit = (type: SubagentEvent['type'], agent: SubagentRecord, text?: string): void =>
    child.onSubagent?.({ type, agent, ...(text === undefined ? {} : { text }) })
  const state = { record }
  emit('subagent-started', record)
  const onEvent = (event: SessionEvent): void => {
    const line = event.type === 'tool-started' ? describeProgress(event) : null
    if (line !== null) {
      run.onProgress(line)
      emit('subagent-progress', state.record, line)
    }
    const next = noteEvent(state.record, event)
    if (next === state.record) return
    state.record = next
    if (event.type !== 'priced') team.records.save(next).catch(() => undefined)
  }
  const end = await runSession(run, onEvent, (costUsd) => {
    state.record = { ...state.record, costUsd }
  })
  const ended: SubagentRecord = { ...state.record, ...end }
  // If the result cannot be stored, it is still in memory. A resumed session then finds the subagent interrupted.
  await team.records.save(ended).catch(() => undefined)
  emit('subagent-ended', ended)
  return ended
}

type SubagentEnd = Pick<SubagentRecord, 'status' | 'problem'> & Partial<Pick<SubagentRecord, 'text'>>

async function runSession(
  run: SubagentRun,
  onEvent: (event: SessionEvent) => void,
  onCost: (costUsd: number | null) => void,
): Promise<SubagentEnd> {
  const { child, openAgent, signal } = run
  let agent: Agent | null = null
  try {
    agent = await openAgent({ ...child, onEvent })
    return toEnd(await converse(run, agent), signal)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return { status: 'failed', problem: { reason: 'failed', message } }
  } finally {
    if (agent !== null) {
      onCost(agent.session.money().spent.total)
      await agent.close().catch(() => undefined)
    }
  }
}

/** Maximum number of times that hooks may let a subagent continue when it wants to end. */
const MAX_ROUNDS = 25
const CONTEXT_CHARACTERS = 10_000

/** Works on the prompt, then on messages from the hooks at its end. */
async function converse(
  { team, child, record, prompt, signal }: SubagentRun,
  agent: Agent,
): Promise<RunOutcome> {
  const names = { agentId: record.id, agentType: record.type }
  const maxCalls = child.inherited?.definition.maxTurns ?? DEFAULT_CALLS
  const limits = child.subagentLimits ?? child.settings.subagents?.limits ?? DEFAULT_SUBAGENT_LIMITS
  const send = (text: string): Promise<RunOutcome> => readToEnd(agent.run(text, { signal, maxCalls, limits }))
  const added = (await team.runHooks('subagentStart', names)).flatMap(({ additionalContext: text }) =>
    text === undefined || text.trim() === '' ? [] : [text],
  )
  const context = cutText(added.join('\n'), CONTEXT_CHARACTERS)
  let outcome = await send(
    context === '' ? prompt : `${prompt}\n\n${wrapInReminder(`A hook of the user adds this.\n${context}`)}`,
  )
  for (let round = 0; round < MAX_ROUNDS && outcome.ok; round += 1) {
    const answers = await team.runHooks('subagentStop', {
      ...names,
      transcriptPath: sessionPaths(child.home, record.id).log,
      lastMessage: outcome.text,
      isContinued: round > 0,
    })
    const reasons = answers.flatMap(({ block }) => block ?? [])
    if (reasons.length === 0 || answers.some(({ endTurn }) => endTurn !== undefined)) break
    outcome = await send(`A check before your end says that something is left to do: ${reasons.join('\n')}`)
  }
  return outcome
}

/** Maximum model calls in one run without a limit in the definition. The limits usually end the run earlier. */
const DEFAULT_CALLS = 10_000

async function readToEnd(run: Run): Promise<RunOutcome> {
  // Events must be read, because unread events stay in memory.
  for await (const _ of run);
  return await run.outcome
}

function toEnd(outcome: RunOutcome, signal: AbortSignal): SubagentEnd {
  if (outcome.ok) return { status: 'finished', problem: null, text: outcome.text }
  const { reason, message } = outcome
  if (!signal.aborted) return { status: 'failed', problem: { reason, message } }
  const isProgram = signal.reason === 'interrupted'
  return {
    status: isProgram ? 'interrupted' : 'stopped',
    problem: { reason: 'aborted', message: isProgram ? 'The program ended.' : 'It was stopped.' },
  }
}

/** Maximum number of paths in each list of a record. */
const MAX_PATHS = 100

/** Returns the record updated by an event; the same object if the event does not change it. */
function noteEvent(record: SubagentRecord, event: SessionEvent): SubagentRecord {
  if (event.type === 'compact') return { ...record, compactions: record.compactions + 1 }
  if (event.type === 'priced')
    return { ...record, costUsd: event.totals.spent.total, used: toLimitUsage(event.totals) }
  if (event.type === 'answered') {
    const texts = toBlocks(event.reply.message.content).filter(isTextBlock)
    const text = texts.map((block) => block.text).join('')
    return { ...record, calls: record.calls + 1, ...(text.trim() === '' ? {} : { text }) }
  }
  if (event.type !== 'tool-ended' || event.result.is_error === true) return record
  const { touches } = describeToolCall(event.call.name, event.call.input)
  const add = (known: readonly string[], isRead: boolean): readonly string[] => {
    const paths = touches.filter(({ action }) => (action === 'read') === isRead).map(({ path }) => path)
    const fresh = paths.filter((path) => !known.includes(path))
    return fresh.length === 0 ? known : [...known, ...fresh].slice(0, MAX_PATHS)
  }
  const [filesRead, filesChanged] = [add(record.filesRead, true), add(record.filesChanged, false)]
  if (filesRead === record.filesRead && filesChanged === record.filesChanged) return record
  return { ...record, filesRead, filesChanged }
}
