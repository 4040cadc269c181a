/**
 * Output of `tidemark chat -p`: the answer as text, one JSON value, or one JSON line for each thing that happens. The
 * field names are those that programs around agents know.
 */

import { describeEvent } from '@tidemark/terminal/render/describe-event'
import { formatCost } from '@tidemark/terminal/render/format-numbers'
import { formatJson } from '@tidemark/terminal/render/json-output'
import { escapeForApproval, removeControlCharacters, toSafeLine } from '@tidemark/terminal/render/text'
import { createColors, type Terminal } from '@tidemark/terminal/terminal'
import type { RunOutcome, SessionEvent } from 'tidemark'
import type { Agent } from './agent-options.ts'
import { formatAllowedToolsOption, PLAN_TOOL } from './permissions.ts'
import type { SubagentEvent, SubagentRecord } from './subagent-records.ts'

export type OutputFormat = 'text' | 'json' | 'stream-json'

/** Prints a run. Results and lines go to standard output; warnings, in formats other than `stream-json`, to standard error. */
export interface ChatOutput {
  /** Prints the facts of the session, in `stream-json`. */
  begin(agent: Agent, folder: string): void
  event(event: SessionEvent, agent: Agent): void
  /** Prints that a subagent has begun or ended, in `stream-json`. */
  subagent(event: SubagentEvent, sessionId: string): void
  /** Prints the result of one prompt. */
  end(outcome: RunOutcome, agent: Agent, durationMs: number): void
}

export function createChatOutput(format: OutputFormat, terminal: Terminal): ChatOutput {
  const calls = createCallCounter()
  const print = (line: object): void => terminal.write(`${formatJson(line)}\n`)
  const note = (event: SessionEvent): void => {
    calls.add(event)
    const told = describeEvent(event)
    if (told?.tone === 'warning' || event.type === 'compact') terminal.warn(`tidemark: ${told?.text}\n`)
  }
  if (format === 'text')
    return {
      begin() {},
      subagent() {},
      event: note,
      end(outcome, agent) {
        printAnswer(outcome, agent, terminal)
        if (terminal.isErrorTty === true) printSessionLine(agent, terminal)
      },
    }
  if (format === 'json')
    return {
      begin() {},
      subagent() {},
      event: note,
      end: (outcome, agent, durationMs) => print(toResultLine(outcome, agent, durationMs, calls.take())),
    }
  return {
    begin: ({ session, toolNames }, folder) =>
      print({
        type: 'system',
        subtype: 'init',
        session_id: session.id,
        cwd: folder,
        model: session.model,
        tools: toolNames,
      }),
    subagent({ type, agent }, sessionId) {
      if (type === 'subagent-progress') return
      const { description, isBackground: is_background } = agent
      const facts = { ...toSubagentFields(agent), description, is_background }
      print({ type: 'system', subtype: type.replace('-', '_'), ...facts, session_id: sessionId })
    },
    event(event, { session }) {
      calls.add(event)
      for (const line of toStreamLines(event)) print({ ...line, session_id: session.id })
    },
    end: (outcome, agent, durationMs) => print(toResultLine(outcome, agent, durationMs, calls.take())),
  }
}

function printAnswer(outcome: RunOutcome, { denials, session, isPlanning }: Agent, terminal: Terminal): void {
  if (outcome.ok) terminal.write(`${removeControlCharacters(outcome.text).trimEnd()}\n`)
  else terminal.warn(`tidemark: ${toSafeLine(outcome.message)}\n`)
  // A rule with characters that a terminal hides cannot be copied from there, so it is left out.
  const rules = [...new Set(denials.flatMap(({ suggestions }) => suggestions))].filter(
    (rule) => escapeForApproval(rule) === rule,
  )
  if (denials.length === 0) return
  const isPlanWaiting = isPlanning() && denials.some(({ tool }) => tool === PLAN_TOOL)
  if (isPlanWaiting)
    terminal.warn(
      `tidemark: The plan waits for your approval. To approve it: tidemark chat --resume ${session.id} -p "Carry out the plan." --permission-mode accept-edits\n`,
    )
  const calls = denials.length === 1 ? '1 tool call was' : `${denials.length} tool calls were`
  const advice = rules.length === 0 ? '' : ` To allow them: ${formatAllowedToolsOption(rules)}`
  terminal.warn(`tidemark: ${calls} refused.${advice}\n`)
}

/** Prints the id of the session, for continuing it, and its cost so far. */
function printSessionLine(agent: Agent, terminal: Terminal): void {
  const { dim } = createColors({ ...terminal, isTty: true })
  const cost = formatCost(sumSessionCost(agent), 0)
  terminal.warn(`${dim(`session ${agent.session.id}, cost ${cost}`)}\n`)
}

/** Returns the cost of the session and its subagents in dollars; null if a price is not known. */
function sumSessionCost({ session, subagents }: Agent): number | null {
  return addCosts([session.money().spent.total, ...subagents().map(({ costUsd }) => costUsd)])
}

interface CallTotals {
  readonly calls: number
  readonly compactions: number
  readonly clearings: number
  readonly cacheBreaks: number
  readonly usage: {
    readonly input_tokens: number
    readonly output_tokens: number
    readonly cache_read_input_tokens: number
    readonly cache_creation_input_tokens: number
  }
}

/** Counts model calls and rewrites from events. `take` returns the totals since the last call of `take`. */
function createCallCounter(): { add(event: SessionEvent): void; take(): CallTotals } {
  let totals = { calls: 0, compactions: 0, clearings: 0, cacheBreaks: 0 }
  let usage = [0, 0, 0, 0]
  return {
    add(event) {
      if (event.type === 'compact') totals.compactions += 1
      if (event.type === 'microcompact') totals.clearings += 1
      if (event.type === 'cache-break') totals.cacheBreaks += 1
      if (event.type === 'answered') totals.calls += 1
      if (event.type !== 'priced') return
      const { input, output, cacheRead, writeShort, writeLong } = event.call.tokens
      usage = [input, output, cacheRead, writeShort + writeLong].map(
        (tokens, index) => tokens + (usage[index] ?? 0),
      )
    },
    take() {
      const [
        input_tokens = 0,
        output_tokens = 0,
        cache_read_input_tokens = 0,
        cache_creation_input_tokens = 0,
      ] = usage
      const taken = {
        ...totals,
        usage: { input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens },
      }
      totals = { calls: 0, compactions: 0, clearings: 0, cacheBreaks: 0 }
      usage = [0, 0, 0, 0]
      return taken
    },
  }
}

function toResultLine(
  outcome: RunOutcome,
  agent: Agent,
  durationMs: number,
  { calls, usage, compactions, clearings, cacheBreaks }: CallTotals,
): object {
  const { session, denials } = agent
  const { savedByCache } = session.money()
  const agents = agent.subagents()
  const agentsCost = addCosts(agents.map(({ costUsd }) => costUsd))
  return {
    type: 'result',
    subtype: outcome.ok ? 'success' : outcome.reason === 'call-limit' ? 'error_max_turns' : 'error',
    is_error: !outcome.ok,
    result: outcome.ok ? outcome.text : outcome.message,
    stop_reason: outcome.ok ? outcome.stopReason : outcome.reason,
    session_id: session.id,
    num_turns: calls,
    duration_ms: Math.round(durationMs),
    total_cost_usd: sumSessionCost(agent),
    subagents_cost_usd: agentsCost,
    saved_by_cache_usd: savedByCache.total,
    usage,
    compactions,
    clearings,
    cache_breaks: cacheBreaks,
    subagents: agents.map(toSubagentFields),
    permission_denials: denials.map(({ tool, input, reason }) => ({
      tool_name: tool,
      tool_input: input,
      reason,
    })),
  }
}

/** Adds costs; null if one of them is not known. */
function addCosts(costs: readonly (number | null)[]): number | null {
  return costs.reduce((sum, cost) => (sum === null || cost === null ? null : sum + cost), 0)
}

function toSubagentFields({ id, type, status, calls, compactions, costUsd }: SubagentRecord): object {
  return { agent_id: id, agent_type: type, status, num_turns: calls, compactions, cost_usd: costUsd }
}

/** Converts an event to lines of `stream-json`: messages as they are logged, and what was done to the context. */
function toStreamLines(event: SessionEvent): readonly object[] {
  switch (event.type) {
    case 'appended':
      return event.records.flatMap((record) => {
        if (record.type !== 'assistant' && record.type !== 'user') return []
        const { type, message, uuid } = record as { type: string; message?: unknown; uuid?: string }
        return [{ type, message, uuid }]
      })
    case 'tool-progress':
      return [{ type: 'tool_progress', tool_use_id: event.call.id, text: event.text }]
    case 'compact': {
      const { id, trigger, tokensBefore, tokensAfter, summarizer } = event.compaction
      return [
        {
          type: 'system',
          subtype: 'compact_boundary',
          uuid: id,
          compact_metadata: { trigger, pre_tokens: tokensBefore, post_tokens: tokensAfter, summarizer },
        },
      ]
    }
    case 'microcompact':
      return [
        {
          type: 'system',
          subtype: 'microcompact_boundary',
          uuid: event.id,
          pre_tokens: event.tokensBefore,
          post_tokens: event.tokensAfter,
        },
      ]
    case 'cache-break':
      return [
        {
          type: 'system',
          subtype: 'cache_break',
          reason: event.event.sentence,
          tokens_lost: event.event.tokensLost,
        },
      ]
    case 'retrying':
      return [
        {
          type: 'system',
          subtype: 'retry',
          attempt: event.attempt,
          delay_ms: event.delayMs,
          reason: event.cause.message,
        },
      ]
    default: {
      const told = describeEvent(event)
      return told?.tone === 'warning' ? [{ type: 'system', subtype: 'notice', message: told.text }] : []
    }
  }
}

/** Returns one line about what the agent is doing, for the progress line; null if the event changes nothing. */
export function describeProgress(event: SessionEvent): string | null {
  switch (event.type) {
    case 'request-sent':
      return 'waiting for the model …'
    case 'tool-started': {
      const { name, input } = event.call
      const subject = Object.values(input as object).find((value) => typeof value === 'string')
      return toSafeLine(`${name} ${subject ?? ''}`.trim())
    }
    case 'phase':
      return event.phase === 'done' ? null : `${event.phase} …`
    case 'retrying':
      return `${toSafeLine(event.cause.message)}; trying again (${event.attempt}) …`
    case 'compact':
      return 'compacted'
    default:
      return null
  }
}
