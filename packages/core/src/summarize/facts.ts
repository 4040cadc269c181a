/**
 * What a summary may not lose, read off the records by fixed rules. Always made from the whole history up to the
 * cut, never from an earlier summary, so that nothing fades however often a session is compacted; only a summary of
 * what is not in the log at all is taken along as it stands.
 */
import { blocksOf, isText } from '../conversation/block.ts'
import { isSyntheticError, type KnownRecord } from '../conversation/record.ts'
import { type FailedCall, type FailingCommand, failedCallsOf, failingCommandsOf } from './failing-command.ts'
import { type PersonMessage, personMessagesOf } from './person-message.ts'
import { redact } from './redact.ts'
import { type TodoItem, todosOf, todosPlace } from './todo-state.ts'
import { type ToolRun, toolRunsOf } from './tool-run.ts'
import { type TouchedFile, touchedFilesOf } from './touched-file.ts'

export interface Facts {
  readonly messages: readonly PersonMessage[]
  readonly files: readonly TouchedFile[]
  readonly commands: readonly FailingCommand[]
  readonly failedCalls: readonly FailedCall[]
  readonly todos: readonly TodoItem[]
  /** The person has spoken since the list was last changed. */
  readonly areTodosOlder: boolean
  readonly plan: Said | null
  /** The newest text of the model. */
  readonly lastAnswer: Said | null
  readonly runs: readonly ToolRun[]
  /** The summary at the start of a log whose earlier records are elsewhere. */
  readonly earlier: Said | null
  readonly clean: (text: string) => string
}

export interface Said {
  readonly text: string
  readonly uuid: string
}

/** `history`: the records of the branch in order, up to the cut; for a partial summary `from` a cut, those behind it. */
export function factsOf(history: readonly KnownRecord[], clean: (text: string) => string = redact): Facts {
  const runs = toolRunsOf(history)
  const messages = personMessagesOf(history, clean)
  return {
    messages,
    files: touchedFilesOf(runs, clean),
    commands: failingCommandsOf(runs, clean),
    failedCalls: failedCallsOf(runs, clean),
    todos: todosOf(runs, clean),
    areTodosOlder: (messages.at(-1)?.place ?? -1) > todosPlace(runs),
    plan: planOf(history, runs, clean),
    lastAnswer: lastAnswer(history, clean),
    runs,
    earlier: earlierSummary(history, clean),
    clean,
  }
}

/** The same facts without what other messages of the view show word for word. */
export function withoutMessages(facts: Facts, uuids: ReadonlySet<string>): Facts {
  return { ...facts, messages: facts.messages.filter(({ uuid }) => !uuids.has(uuid)) }
}

function planOf(
  history: readonly KnownRecord[],
  runs: readonly ToolRun[],
  clean: (text: string) => string,
): Said | null {
  const attached = history.findLast(
    (record) => record.type === 'attachment' && typeof record.attachment.planContent === 'string',
  )
  if (attached?.type === 'attachment')
    return { text: clean(String(attached.attachment.planContent)), uuid: attached.uuid }
  const run = runs.findLast(({ input }) => planIn(input) !== null)
  return run === undefined ? null : { text: clean(planIn(run.input) ?? ''), uuid: run.uuid }
}

function planIn(input: unknown): string | null {
  const plan = typeof input === 'object' && input !== null && 'plan' in input ? input.plan : null
  return typeof plan === 'string' && plan.trim() !== '' ? plan : null
}

function lastAnswer(history: readonly KnownRecord[], clean: (text: string) => string): Said | null {
  for (let place = history.length - 1; place >= 0; place -= 1) {
    const record = history[place]
    if (record?.type !== 'assistant' || isSyntheticError(record)) continue
    const text = textOf(record)
    if (text.trim() !== '') return { text: clean(text), uuid: record.uuid }
  }
  return null
}

function earlierSummary(history: readonly KnownRecord[], clean: (text: string) => string): Said | null {
  const first = history.find((record) => record.type === 'user' || record.type === 'assistant')
  if (first?.isCompactSummary !== true) return null
  return { text: clean(textOf(first)), uuid: first.uuid }
}

function textOf(record: KnownRecord): string {
  if (record.type !== 'user' && record.type !== 'assistant') return ''
  return blocksOf(record.message.content)
    .flatMap((block) => (isText(block) ? [block.text] : []))
    .join('\n')
}
