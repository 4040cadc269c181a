/**
 * Runs the tool calls of a response. Each result is appended as soon as it arrives; large results are stored as blobs first. An
 * aborted turn does not wait for tools that ignore the signal: the next turn appends an error result for them.
 */
import type { TurnEvent, TurnFailure } from '../engine/events.ts'
import type { ToolResultContent } from '../engine/host.ts'
import type { Reply } from '../engine/reply.ts'
import {
  appendUnlinkedRecords,
  isTurnAborted,
  type TurnContext,
  type UnlinkedRecord,
  waitUnlessAborted,
} from '../engine/session-writer.ts'
import { describeMisfit, fitToolInput } from '../engine/tool-input.ts'
import { describeThrown } from '../errors.ts'
import { runHistoryTool } from '../history/history-tool.ts'
import { spillLargeResult } from '../history/spill-results.ts'
import { isToolUse, type ToolResultBlock, type ToolUseBlock, toBlocks } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'
import type { RecordedUserInput } from '../log/record.ts'
import type { HookOutput } from '../sources/builtin-sources.ts'
import { replaceLoneSurrogates } from '../text/truncate-text.ts'
import {
  createHookRecords,
  decideToolPermission,
  runPostToolUseHooks,
  type ToolHooksOutcome,
} from './turn-hooks.ts'

interface ToolCall {
  readonly call: ToolUseBlock
  /** True if the input of the tool call was cut off. The tool does not run, and the call gets an error result. */
  readonly isCut: boolean
}

/** Returns the tool calls of a response, in order, each with whether its input was cut off. */
export function listToolCalls({ message, cutInputs }: Reply): readonly ToolCall[] {
  const cut = new Set(cutInputs.map(({ index }) => index))
  return toBlocks(message.content).flatMap((block, index) =>
    isToolUse(block) ? [{ call: block, isCut: cut.has(index) }] : [],
  )
}

const ABORTED: TurnFailure = { ok: false, reason: 'aborted' }

/**
 * Runs the tool calls in order, and appends their results. Neighbouring calls whose tools allow it run at the same time.
 * The context that hooks add is appended after all results, even if the turn is aborted, or ended by a hook, before the
 * last call. A tool that fails gives an error result; a failure is returned if the turn cannot go on.
 */
export async function* runTools(
  turn: TurnContext,
  calls: readonly ToolCall[],
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  const hooked: HookedCalls = { context: [], endTurn: [] }
  for (const group of groupCalls(turn, calls)) {
    if (hooked.endTurn.length > 0) break
    for (const { call, isCut } of group) if (!isCut) yield { type: 'tool-started', call }
    if (isTurnAborted(turn)) break
    const failure = yield* runCallGroup(turn, group, hooked)
    if (failure !== null) return failure
  }
  const failure = yield* appendUnlinkedRecords(turn, createHookRecords(turn, hooked.context))
  if (failure !== null || isTurnAborted(turn)) return failure ?? ABORTED
  if (hooked.endTurn.length === 0) return null
  return { ok: false, reason: 'blocked', message: `A hook ended the turn: ${hooked.endTurn.join('\n')}` }
}

/** The outputs of the hooks of all calls of a response so far. */
interface HookedCalls {
  readonly context: HookOutput[]
  /** Reasons to end the turn. */
  readonly endTurn: string[]
}

/**
 * Splits the calls into groups that run one after another. The calls of a group run at the same time. Calls with the
 * same id are put into different groups, because results belong to calls with one id in their order.
 */
function groupCalls({ host }: TurnContext, calls: readonly ToolCall[]): readonly (readonly ToolCall[])[] {
  const { isParallelTool = () => true } = host
  const groups: ToolCall[][] = []
  let isOpen = false
  for (const each of calls) {
    const isParallel = each.isCut || isParallelTool(each.call.name)
    const group = isParallel && isOpen ? groups.at(-1) : undefined
    if (group === undefined || group.some(({ call }) => call.id === each.call.id)) groups.push([each])
    else group.push(each)
    isOpen = isParallel
  }
  return groups
}

/** Runs the calls of one group at the same time and appends each result as soon as it arrives. */
async function* runCallGroup(
  turn: TurnContext,
  group: readonly ToolCall[],
  hooked: HookedCalls,
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  const news = createNewsQueue()
  const running = new Map(group.map((each, index) => [index, runToolCall(turn, each, index, news.add)]))
  while (running.size > 0) {
    const end = await Promise.race([...running.values(), news.whenAdded()])
    yield* news.take()
    if (end === null) continue
    running.delete(end.index)
    yield* end.events
    hooked.context.push(...end.context)
    if (end.endTurn !== null) hooked.endTurn.push(end.endTurn)
    if (end.result === null) continue
    const arrived = yield* createToolResultRecord(turn, end.call, end.result, end.userInputs)
    const failure = yield* appendUnlinkedRecords(turn, [arrived.body])
    if (failure !== null) {
      // Wait until all tools that obey the signal have ended, so that none runs after the turn.
      await Promise.all(running.values())
      return failure
    }
    yield { type: 'tool-ended', call: end.call, result: arrived.result }
  }
  return null
}

interface NewsQueue {
  readonly add: (event: TurnEvent) => void
  /** Returns the events added since the last call. */
  readonly take: () => readonly TurnEvent[]
  /** Resolves to null when an event has been added. */
  readonly whenAdded: () => Promise<null>
}

/** Creates a queue for events of tools that are still running. */
function createNewsQueue(): NewsQueue {
  let events: TurnEvent[] = []
  let announce = (_: null): void => {}
  const wait = (): Promise<null> =>
    new Promise((resolve) => {
      announce = resolve
    })
  let added = wait()
  return {
    add(event) {
      events.push(event)
      announce(null)
    },
    take() {
      const taken = events
      if (taken.length > 0) {
        events = []
        added = wait()
      }
      return taken
    },
    whenAdded: () => added,
  }
}

/** The result of a tool call, with the parts of it that the user typed. */
interface CallResult {
  readonly result: ToolResultBlock
  readonly userInputs: readonly RecordedUserInput[]
}

interface ToolCallEnd extends ToolHooksOutcome, Omit<CallResult, 'result'> {
  readonly index: number
  readonly call: ToolUseBlock
  /** Result of the tool; null if the turn was aborted and the tool did not stop. */
  readonly result: ToolResultBlock | null
}

const NO_HOOKS: ToolHooksOutcome = { events: [], context: [], endTurn: null }

async function runToolCall(
  turn: TurnContext,
  { call, isCut }: ToolCall,
  index: number,
  addNews: (event: TurnEvent) => void,
): Promise<ToolCallEnd> {
  if (isCut) return { index, call, ...toCallResult(call, CUT_INPUT_RESULT), ...NO_HOOKS }
  const end = await waitUnlessAborted(turn, callTool(turn, call, addNews))
  if (end === null) return { index, call, result: null, userInputs: [], ...NO_HOOKS }
  return { index, call, ...end.value }
}

function toCallResult(
  { id }: ToolUseBlock,
  { content, is_error, userInputs = [] }: ToolResultContent,
): CallResult {
  const result = { type: 'tool_result' as const, tool_use_id: id, content }
  return {
    result: is_error === undefined ? result : { ...result, is_error },
    userInputs: userInputs.map((input) => ({ ...input, toolUseId: id })),
  }
}

const CUT_INPUT_RESULT: ToolResultContent = {
  content: 'The input of this call broke off, so it was not run. Call again with a whole input.',
  is_error: true,
}

/**
 * Runs the tool of a call if hooks and permissions let it, with its input fitted to the tool's schema. A misfit, a
 * refusal or an exception becomes an error result.
 */
async function callTool(
  turn: TurnContext,
  given: ToolUseBlock,
  addNews: (event: TurnEvent) => void,
): Promise<ToolHooksOutcome & CallResult> {
  const { host, signal } = turn
  const finish = (content: ToolResultContent) => ({ ...toCallResult(given, content), ...NO_HOOKS })
  try {
    const answer = await answerHistoryCall(turn, given)
    if (answer !== null) return finish(answer)
    if ((await host.hasTool?.(given.name)) === false)
      return finish({ content: `There is no tool ${given.name}.`, is_error: true })
    const { input, problems } = fitToolInput(host.readOfferedPrefix().tools, given.name, given.input)
    if (problems.length > 0) return finish({ content: describeMisfit(given.name, problems), is_error: true })
    // Hooks and the tool get a copy of the input, because what they change must not change the conversation.
    const own = { ...given, input: copyJson(input as JsonObject) }
    const { call, refused, ...hooked } = await decideToolPermission(turn, own)
    if (isTurnAborted(turn)) return { ...toCallResult(given, NOT_BEGUN_RESULT), ...hooked }
    const changed = fitToolInput(host.readOfferedPrefix().tools, given.name, call.input)
    if (refused === null && changed.problems.length > 0) {
      const content = describeMisfit(given.name, changed.problems)
      return { ...toCallResult(given, { content, is_error: true }), ...hooked }
    }
    if (refused !== null) return { ...toCallResult(given, refused), ...hooked }
    const report = (text: string): void => addNews({ type: 'tool-progress', call: given, text })
    const { result, userInputs } = toCallResult(
      given,
      await catchToolError(() =>
        host.runTool({ ...call, input: changed.input as JsonObject }, signal, report),
      ),
    )
    const checked = await runPostToolUseHooks(turn, call, result)
    return {
      result: checked.result,
      userInputs,
      events: [...hooked.events, ...checked.events],
      context: [...hooked.context, ...checked.context],
      endTurn: checked.endTurn,
    }
  } catch (thrown) {
    return finish(toErrorResult(thrown))
  }
}

function copyJson(value: JsonObject): JsonObject {
  return JSON.parse(JSON.stringify(value)) as JsonObject
}

const NOT_BEGUN_RESULT: ToolResultContent = {
  content: 'The turn was interrupted before this call, so it was not run.',
  is_error: true,
}

async function catchToolError(
  run: () => ToolResultContent | Promise<ToolResultContent>,
): Promise<ToolResultContent> {
  try {
    return await run()
  } catch (thrown) {
    return toErrorResult(thrown)
  }
}

function toErrorResult(thrown: unknown): ToolResultContent {
  const content = describeThrown(thrown)
  return { content: content.trim() === '' ? 'The tool failed.' : content, is_error: true }
}

/**
 * Creates the record of a tool result. A large result is stored as blobs and shown with its beginning and end only.
 * `userInputs`: the parts of the result that the user typed.
 */
export async function* createToolResultRecord(
  { host }: TurnContext,
  call: ToolUseBlock,
  arrived: ToolResultBlock,
  userInputs: readonly RecordedUserInput[] = [],
): AsyncGenerator<TurnEvent, { readonly result: ToolResultBlock; readonly body: UnlinkedRecord }> {
  const compaction = host.compaction
  const given = replaceLoneSurrogates(arrived)
  const { result, spilled, failed } =
    compaction.blobs === undefined
      ? { result: given, spilled: [], failed: [] }
      : await spillLargeResult({
          result: given,
          tool: call.name,
          policy: host.policy.spill,
          budgets: compaction.scaled.budgets.spill,
          measure: compaction.estimator.text,
          blobs: compaction.blobs,
          paths: compaction.retrieval,
        })
  for (const why of failed) yield { type: 'spill-failed', toolUseId: call.id, why }
  const body = { type: 'user' as const, message: { role: 'user' as const, content: [result] }, userInputs }
  if (spilled.length === 0) return { result, body }
  yield { type: 'spilled', toolUseId: call.id, blobs: spilled.map(({ blob }) => blob) }
  return { result, body: { ...body, spilled } }
}

/** Runs the call if it is for the engine's history tool; returns null if it is for another tool. */
export async function answerHistoryCall(
  { state, host }: TurnContext,
  call: ToolUseBlock,
): Promise<ToolResultContent | null> {
  const compaction = host.compaction
  if (call.name !== compaction.retrieval.historyTool) return null
  const { content, is_error } = await runHistoryTool(call.input, {
    session: state.session,
    blobs: compaction.blobs ?? null,
    policy: host.policy.history,
    pageTokens: compaction.scaled.budgets.historyPage,
    measure: compaction.estimator.text,
  })
  return is_error === undefined ? { content } : { content, is_error }
}
