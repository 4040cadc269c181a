/**
 * The events of hooks as commands see them: the JSON on standard input, and the meaning of exit code and output. The
 * format is the one that Claude Code documents for its hooks.
 */
import type { SessionHooks } from '@tidemark/core/engine/hooks'
import { isTextBlock, type MessageContent, toBlocks } from '@tidemark/core/log/block'
import { isObject, type JsonObject } from '@tidemark/core/log/json'
import type { HookProcessEnd } from './run-hook-command.ts'

type HookInputs = {
  readonly [Point in keyof SessionHooks]-?: Parameters<NonNullable<SessionHooks[Point]>[number]['run']>[0]
}

/** What a command can answer: the fields of the outputs of all hooks. Which of them count depends on the event. */
export interface HookAnswer {
  readonly additionalContext?: string
  readonly newCustomInstructions?: string
  readonly userDisplayMessage?: string
  readonly block?: string
  readonly endTurn?: string
  readonly decision?: 'allow' | 'ask' | 'deny'
  readonly reason?: string
  readonly input?: JsonObject
}

/** How one event is presented to commands, and what their answers may do. */
export interface HookEventFormat<Input> {
  /** The text that a matcher is compared with. Without it, the event has no matcher. */
  readonly subject?: (input: Input) => string
  /** Returns the fields of standard input that this event adds to those of all events. */
  readonly fields: (input: Input) => Readonly<Record<string, unknown>>
  /** What exit code 2 and `"decision": "block"` do: refuse with a reason. Without it, nothing can be blocked. */
  readonly blocks?: 'block' | 'deny'
  /** What `"continue": false` does. Without it, nothing. */
  readonly stops?: 'block' | 'endTurn'
  /** The field that plain text on standard output sets. Without it, plain text is dropped. */
  readonly text?: 'additionalContext' | 'newCustomInstructions'
  /** True if the JSON output may have `additionalContext`. */
  readonly addsContext?: boolean
  /** Reads fields that only the JSON of this event may have. */
  readonly readOwn?: (answer: AnswerObject, own: AnswerObject) => HookAnswer
}

type AnswerObject = Readonly<Record<string, unknown>>

const toolFields = ({ call }: HookInputs['preToolUse']) => ({
  tool_name: call.name,
  tool_input: call.input,
  tool_use_id: call.id,
})
const toolName = ({ call }: HookInputs['preToolUse']): string => call.name
const agentFields = ({ agentId, agentType }: HookInputs['subagentStart']) => ({
  agent_id: agentId,
  agent_type: agentType,
})
const agentType = (input: HookInputs['subagentStart']): string => input.agentType

export const HOOK_EVENT_FORMATS: {
  readonly [Point in keyof HookInputs]: HookEventFormat<HookInputs[Point]>
} = {
  userPromptSubmit: {
    fields: ({ prompt }) => ({ prompt: toText(prompt) }),
    blocks: 'block',
    stops: 'block',
    text: 'additionalContext',
    addsContext: true,
  },
  preToolUse: {
    subject: toolName,
    fields: toolFields,
    blocks: 'deny',
    stops: 'endTurn',
    addsContext: true,
    readOwn: readToolDecision,
  },
  permissionRequest: {
    subject: toolName,
    fields: (input) => ({ ...toolFields(input), reason: input.reason }),
    blocks: 'deny',
    stops: 'endTurn',
    readOwn: readPermission,
  },
  postToolUse: {
    subject: toolName,
    fields: (input) => ({
      ...toolFields(input),
      tool_response: { content: input.result.content ?? '', is_error: input.result.is_error ?? false },
    }),
    blocks: 'block',
    stops: 'endTurn',
    addsContext: true,
  },
  stop: {
    fields: ({ isContinued, stopReason }) => ({ stop_hook_active: isContinued, stop_reason: stopReason }),
    blocks: 'block',
    stops: 'endTurn',
  },
  preCompact: {
    subject: ({ trigger }) => trigger,
    fields: ({ trigger, customInstructions }) => ({ trigger, custom_instructions: customInstructions }),
    blocks: 'block',
    text: 'newCustomInstructions',
  },
  postCompact: {
    subject: ({ trigger }) => trigger,
    fields: ({ trigger, summary }) => ({ trigger, compact_summary: summary }),
    text: 'additionalContext',
    addsContext: true,
  },
  sessionStart: {
    subject: ({ source }) => source,
    fields: ({ source }) => ({ source }),
    text: 'additionalContext',
    addsContext: true,
  },
  sessionEnd: {
    subject: ({ reason }) => reason,
    fields: ({ reason }) => ({ reason }),
  },
  instructionsLoaded: {
    subject: ({ loadReason }) => loadReason,
    fields: (input) => ({
      file_path: input.filePath,
      memory_type: input.memoryType,
      load_reason: input.loadReason,
      globs: input.globs,
      trigger_file_path: input.triggerFilePath,
      parent_file_path: input.parentFilePath,
    }),
  },
  subagentStart: { subject: agentType, fields: agentFields, addsContext: true },
  subagentStop: {
    subject: agentType,
    fields: (input) => ({
      ...agentFields(input),
      agent_transcript_path: input.transcriptPath,
      last_assistant_message: input.lastMessage,
      stop_hook_active: input.isContinued,
    }),
    blocks: 'block',
    stops: 'endTurn',
  },
}

function toText(content: MessageContent): string {
  return toBlocks(content)
    .filter(isTextBlock)
    .map(({ text }) => text)
    .join('\n')
}

/**
 * Reads how a command ended. Exit code 0: its output counts. 2: it blocks, with standard error as the reason. Throws if
 * the command failed, which changes nothing and is shown to the user.
 */
export function readHookAnswer(
  event: string,
  shape: HookEventFormat<never>,
  end: HookProcessEnd,
): HookAnswer | undefined {
  const errors = end.errors.trim()
  if (end.code === 2 && shape.blocks !== undefined) return createBlock(shape.blocks, errors)
  if (end.code !== 0) {
    const how = end.code === null ? `was ended by ${end.signal}` : `exited with ${end.code}`
    throw new Error(`The command ${how}${errors === '' ? '.' : `: ${errors}`}`)
  }
  const text = end.output.trim()
  if (text.startsWith('{')) return readJsonAnswer(event, shape, parseAnswer(text, end.isCut))
  return text === '' || shape.text === undefined ? undefined : { [shape.text]: text }
}

function createBlock(kind: 'block' | 'deny', reason: string): HookAnswer {
  const given = reason === '' ? 'A hook forbids it, and gives no reason.' : reason
  return kind === 'deny' ? { decision: 'deny', reason: given } : { block: given }
}

function parseAnswer(text: string, isCut: boolean): AnswerObject {
  if (isCut) throw new Error('The command printed JSON that is longer than 1 MB, which is not read.')
  try {
    return JSON.parse(text) as AnswerObject
  } catch (error) {
    throw new Error(`The command printed what begins like JSON and is not: ${(error as Error).message}`)
  }
}

function readJsonAnswer(event: string, shape: HookEventFormat<never>, answer: AnswerObject): HookAnswer {
  const own = isObject(answer.hookSpecificOutput) ? answer.hookSpecificOutput : {}
  const named = own.hookEventName
  if (named !== undefined && named !== event)
    throw new Error(`The command answered for the event ${JSON.stringify(named)} instead of ${event}.`)
  const context = own.additionalContext ?? answer.additionalContext
  const common = {
    ...pickText('userDisplayMessage', answer.systemMessage),
    ...(shape.addsContext === true ? pickText('additionalContext', context) : {}),
  }
  if (answer.continue === false && shape.stops !== undefined)
    return { ...common, [shape.stops]: readText(answer.stopReason) ?? 'A hook stopped it.' }
  if (shape.readOwn !== undefined) return { ...common, ...shape.readOwn(answer, own) }
  if (answer.decision === undefined || answer.decision === null || answer.decision === 'approve')
    return common
  if (answer.decision !== 'block')
    throw new Error(`The command answered with the unknown decision ${JSON.stringify(answer.decision)}.`)
  if (shape.blocks === undefined) throw new Error(`The event ${event} cannot be blocked.`)
  return { ...common, ...createBlock(shape.blocks, readText(answer.reason) ?? '') }
}

function readText(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}

/** Returns an object with the field; an empty object if the value is not a text. */
function pickText(field: keyof HookAnswer, value: unknown): HookAnswer {
  const text = readText(value)
  return text === undefined ? {} : { [field]: text }
}

/** Former values of `decision`, which older hooks print. */
const OLD_DECISIONS: Readonly<Record<string, string>> = { approve: 'allow', block: 'deny' }

/** Reads the decision of a PreToolUse hook. An unknown decision is passed on, and the engine then denies the call. */
function readToolDecision(answer: AnswerObject, own: AnswerObject): HookAnswer {
  const decision = own.permissionDecision ?? toNewDecision(answer.decision)
  return {
    ...(decision === undefined || decision === null ? {} : { decision: decision as 'deny' }),
    ...pickText('reason', own.permissionDecisionReason ?? answer.reason),
    ...pickInput(own.updatedInput),
  }
}

function toNewDecision(given: unknown): unknown {
  return typeof given === 'string' ? (OLD_DECISIONS[given] ?? given) : given
}

function readPermission(answer: AnswerObject, own: AnswerObject): HookAnswer {
  const given = isObject(own.decision) ? own.decision : {}
  const decision = given.behavior ?? toNewDecision(answer.decision)
  const message = pickText('reason', given.message ?? answer.reason)
  return {
    ...(decision === undefined || decision === null ? {} : { decision: decision as 'deny' }),
    ...message,
    ...pickInput(given.updatedInput),
    ...(given.interrupt === true && decision === 'deny'
      ? { endTurn: message.reason ?? 'A hook stopped it.' }
      : {}),
  }
}

function pickInput(value: unknown): HookAnswer {
  if (value === undefined || value === null) return {}
  if (!isObject(value)) throw new Error('The command answered with an updatedInput that is no object.')
  return { input: value as JsonObject }
}
