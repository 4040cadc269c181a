/**
 * A model updates the notes in a fork of the conversation, which reads the cached prefix and writes nothing to the
 * cache. The model may edit the notes file only: edits are applied to the text in memory, no tool is ever run, and any
 * other call is refused and reported. Returns the new notes; stores nothing.
 */
import { createNotesLimits } from '../compaction/compact.ts'
import { listTracedMessages, listUnansweredCalls } from '../context/flatten-context.ts'
import type { NotesFailureReason, TurnEvent } from '../engine/events.ts'
import type { Reply } from '../engine/reply.ts'
import type { SessionState } from '../engine/session-state.ts'
import { isTurnAborted, type TurnContext } from '../engine/session-writer.ts'
import { buildForkRequest, measureForkCacheRead, runSideCall } from '../engine/side-call.ts'
import { type Block, isToolUse, joinTextBlocks, type ToolUseBlock, toBlocks } from '../log/block.ts'
import { acceptModelNotes, type NotesLimits } from '../notes/notes-file.ts'
import {
  applyNotesTextAnswer,
  applyNotesToolCall,
  writeNotesUpdatePrompt,
} from '../notes/notes-update-prompt.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import type { ForkMessage } from '../request/fork-request.ts'
import { redact } from '../text/redact.ts'

/** Query source (label) of updates of the notes. */
const NOTES_SOURCE = 'session_memory'

interface NotesExtractionInput {
  /** The session when the last response had arrived: its last request is answered, so its prefix is cached. */
  readonly state: SessionState
  /** The current notes, or the template. */
  readonly notes: string
  readonly template: string
  /** Where the notes are, as the model knows it. */
  readonly path: string
  /** Instructions of the user in place of the default ones. */
  readonly instructions?: string
}

/** How an update of the notes ended. `coveredUuid`: the newest record that the new notes cover; null if no record is known. */
export type NewNotesResult =
  | { readonly ok: true; readonly text: string; readonly coveredUuid: string | null }
  | { readonly ok: false; readonly reason: NotesFailureReason; readonly message: string }

/** Maximum number of responses in one update: edits, results, further edits. */
const MAX_ROUNDS = 5

/** The result of an update that was stopped. */
export const ABORTED_NOTES_UPDATE: NewNotesResult = {
  ok: false,
  reason: 'aborted',
  message: 'The update was stopped.',
}

/**
 * Asks the model for new notes, in up to `MAX_ROUNDS` calls. Fails if the answer changed nothing, was cut off or broke the
 * template; the calls have then been paid for. Secrets are removed from the text.
 */
export async function* updateNotesWithModel(
  turn: TurnContext,
  input: NotesExtractionInput,
): AsyncGenerator<TurnEvent, NewNotesResult> {
  const limits = createNotesLimits(turn)
  const messages: ForkMessage[] = [createPrompt(turn, input, limits)]
  // While tool calls of the newest response wait for their results, the fork continues from the request before it.
  const asSent = listUnansweredCalls(input.state.flat).length > 0
  let { notes } = input
  let coveredUuid: string | null = null
  // Records that a move to another branch has removed from the conversation meanwhile must not be sent again.
  const isStopped = (): boolean =>
    isTurnAborted(turn) || !turn.state.session.branch.extends(input.state.session.branch)
  for (let round = 0; round < MAX_ROUNDS && !isStopped(); round += 1) {
    const fork = buildForkRequest(input.state, { source: NOTES_SOURCE, messages, asSent }, turn.host)
    if (!fork.ok)
      return failExtraction('nothing-to-fork', `There is no request to continue from: ${fork.reason}.`)
    coveredUuid ??= findLastOrigin(fork.request)
    const call = { request: fork.request, source: NOTES_SOURCE, forkOf: turn.host.source }
    const result = yield* runSideCall(turn, call)
    const { answer } = result
    if (!answer.ok)
      return answer.reason === 'aborted'
        ? ABORTED_NOTES_UPDATE
        : failExtraction('model-failed', describeAnswer(answer))
    yield { type: 'fork', fork: measureForkCacheRead(NOTES_SOURCE, answer.reply, result) }
    const { reply } = answer
    if (reply.stop === 'cut' || reply.cutInputs.length > 0)
      return failExtraction('cut-off', 'The output limit ended the answer.')
    const calls = toBlocks(reply.message.content).filter(isToolUse)
    if (calls.length === 0) {
      const edit = applyNotesTextAnswer(notes, joinTextBlocks(reply.message.content))
      if (edit?.ok === false) return failExtraction('bad-notes', edit.message)
      notes = edit?.notes ?? notes
      break
    }
    const done = yield* editNotes(turn, notes, calls, input.path)
    notes = done.notes
    messages.push(toForkMessage(reply), { role: 'user', content: done.results })
  }
  // A stopped update may have lost its claim to another update, so it must not replace anything.
  if (isStopped()) return ABORTED_NOTES_UPDATE
  if (notes === input.notes) return failExtraction('no-change', 'The answer changed nothing in the notes.')
  const checked = acceptModelNotes(redact(notes), input.template, limits)
  if (!checked.ok) return failExtraction('bad-notes', checked.message)
  return { ok: true, text: checked.text, coveredUuid }
}

function createPrompt(
  { host }: TurnContext,
  { notes, path, instructions }: NotesExtractionInput,
  limits: NotesLimits,
): ForkMessage {
  const { titleMinimumWords: minimum, titleMaximumWords: maximum } = host.policy.notes
  const titleWords = { minimum, maximum }
  const own = instructions === undefined ? {} : { instructions }
  const text = writeNotesUpdatePrompt({ notes, path, limits, titleWords, ...own })
  return { role: 'user', content: [{ type: 'text', text }] }
}

/** Applies the tool calls to the notes, and returns a result for each. Calls for anything else are refused. */
function* editNotes(
  { host }: TurnContext,
  given: string,
  calls: readonly ToolUseBlock[],
  path: string,
): Generator<TurnEvent, { readonly notes: string; readonly results: readonly Block[] }> {
  let notes = given
  const results: Block[] = []
  for (const call of calls) {
    const edit = applyNotesToolCall(notes, call, { path, tools: host.policy.rehydrate.files })
    if (edit.ok) notes = edit.notes
    else if (edit.refused) yield { type: 'notes-tool-refused', call, message: edit.message }
    const content = edit.ok ? 'The file was changed.' : edit.message
    results.push({
      type: 'tool_result',
      tool_use_id: call.id,
      content,
      ...(edit.ok ? {} : { is_error: true }),
    })
  }
  return { notes, results }
}

/** Returns a reply as a message of the next request: its thinking must be sent back byte for byte. */
function toForkMessage({ message, rawBlocks }: Reply): ForkMessage {
  const raw = new Map(rawBlocks.map(({ index, text }) => [index, text]))
  const own = { role: 'assistant' as const, content: toBlocks(message.content) }
  return { message: own, origins: [], ...(raw.size === 0 ? {} : { raw }) }
}

/** Returns the uuid of the newest record in a request: the last record that the model was shown. */
function findLastOrigin({ messages }: AssembledRequest): string | null {
  for (const { origins } of listTracedMessages(messages).toReversed()) {
    const origin = origins.findLast((uuid) => uuid !== '')
    if (origin !== undefined) return origin
  }
  return null
}

function describeAnswer(answer: object): string {
  if ('failure' in answer && answer.failure instanceof Object && 'message' in answer.failure)
    return String(answer.failure.message)
  if ('message' in answer) return String(answer.message)
  return 'reason' in answer ? `The call failed: ${String(answer.reason)}.` : 'The call failed.'
}

function failExtraction(reason: NotesFailureReason, message: string): NewNotesResult {
  return { ok: false, reason, message }
}
