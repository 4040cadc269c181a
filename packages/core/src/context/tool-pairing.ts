/**
 * Tool calls and their results: the only file that knows the rule. Every call of a response has its result in the
 * user message right behind it, and every result has its call there. A missing result is completed, what has no
 * partner is left out, and each repair is reported.
 *
 * A call waits while its result may still come: a client's call until a response follows the user message behind it,
 * a server's until anything but tool results follows it. A call that repeats an earlier id never waits.
 */

import {
  isServerToolResult,
  isServerToolUse,
  isToolResult,
  isToolUse,
  type ToolResultBlock,
} from '../log/block.ts'
import { List } from '../log/persistent-collections.ts'
import {
  type Draft,
  isEmpty,
  type Part,
  type Repair,
  type RepairKind,
  resultsOf,
  withParts,
} from './message-parts.ts'

/** The answer to a call that never got one. The same text whether completed here or appended as a record. */
export const MISSING_RESULT_TEXT = 'The tool call was interrupted and returned no result.'

/** What stands where a response made nothing but calls whose ids were used before. */
export const REPEATED_CALL_TEXT = '[A call that repeated the id of an earlier one was left out.]'

export function missingResult(id: string): ToolResultBlock {
  return { type: 'tool_result', tool_use_id: id, content: MISSING_RESULT_TEXT, is_error: true }
}

/** A call without a result. */
export interface OpenCall {
  readonly id: string
  /** uuid of the record that holds the call. */
  readonly origin: string
}

export interface Paired {
  readonly drafts: readonly Draft[]
  readonly repairs: readonly Repair[]
  /** Client calls that wait, and server calls that do. */
  readonly waiting: readonly OpenCall[]
  readonly waitingServer: readonly OpenCall[]
}

/** `isKnownCall`: was there such a call in what is finished already? */
export function pairTools(drafts: readonly Draft[], isKnownCall: (id: string) => boolean): Paired {
  const repairs: Repair[] = []
  const seen = new Set<string>()
  const known = (id: string): boolean => seen.has(id) || isKnownCall(id)
  const paired: Draft[] = []
  let asked: Draft[] = []
  let group: Draft[] = []
  let waiting: readonly OpenCall[] = []
  const waitingServer = openServerCalls(drafts)
  const close = (): void => {
    const answered = answer(asked, group, known, repairs)
    paired.push(...answered.drafts)
    waiting = answered.open
    asked = []
    group = []
  }
  for (const draft of pairServerTools(drafts, waitingServer, repairs)) {
    if (draft.role !== 'assistant') {
      group.push(draft)
      continue
    }
    if (group.length > 0) close()
    const unique = uniqueCalls(draft, known, repairs)
    asked.push(unique)
    for (const id of callsOf(unique)) seen.add(id)
  }
  close()
  return { drafts: paired.filter((draft) => !isEmpty(draft)), repairs, waiting, waitingServer }
}

/** No result that comes can change these messages any more. */
export function isSettled(drafts: readonly Draft[]): boolean {
  const last = drafts.at(-1)
  const mayBeAnswered = last?.role === 'assistant' && callsOf(last).length > 0
  return !mayBeAnswered && openServerCalls(drafts).length === 0
}

export function callsOf(draft: Draft): readonly string[] {
  return [...draft.parts].flatMap(({ block }) => (isToolUse(block) ? [block.id] : []))
}

function uniqueCalls(draft: Draft, known: (id: string) => boolean, repairs: Repair[]): Draft {
  const own = new Set<string>()
  const parts = [...draft.parts].filter(({ block, origin }) => {
    if (!isToolUse(block)) return true
    const repeated = own.has(block.id) || known(block.id)
    if (repeated) repairs.push({ kind: 'duplicate-call', origin, id: block.id })
    own.add(block.id)
    return !repeated
  })
  return withParts(draft, parts.length === 0 ? repeatedOf(draft) : parts)
}

/** A response in whose place nothing stands would put together what it parted: what was sent may not change. */
function repeatedOf({ parts }: Draft): readonly Part[] {
  const first = parts.at(0)
  if (first === undefined) return []
  return [{ block: { type: 'text', text: REPEATED_CALL_TEXT }, origin: first.origin }]
}

/** The responses in a row and the messages up to the next one, with the answers right behind the calls. */
function answer(
  asked: readonly Draft[],
  group: readonly Draft[],
  known: (id: string) => boolean,
  repairs: Repair[],
): { readonly drafts: readonly Draft[]; readonly open: readonly OpenCall[] } {
  const open = new Set(asked.flatMap(callsOf))
  const given: Part[] = []
  for (const part of group.flatMap(resultsOf)) {
    const { tool_use_id: id } = part.block as ToolResultBlock
    if (open.delete(id)) given.push(part)
    else repairs.push({ kind: strayKind(id, given, known), origin: part.origin, id })
  }
  const calls = asked.flatMap((draft) => [...draft.parts])
  const missing = calls.flatMap(({ block, origin }) =>
    isToolUse(block) && open.has(block.id) ? [{ id: block.id, origin }] : [],
  )
  for (const { id, origin } of missing) {
    repairs.push({ kind: 'missing-result', origin, id })
    given.push({ block: missingResult(id), origin })
  }
  const rest = group.map((draft) => ({
    draft,
    others: [...draft.parts].filter((part) => !isToolResult(part.block)),
  }))
  return { drafts: [...asked, ...placed(given, rest)], open: missing }
}

function strayKind(id: string, given: readonly Part[], known: (id: string) => boolean): RepairKind {
  if (given.some(({ block }) => isToolResult(block) && block.tool_use_id === id)) return 'duplicate-result'
  return known(id) ? 'late-result' : 'orphan-result'
}

/** The answers go in front of the first message behind the call, if it is a user's; otherwise they are one of their own. */
function placed(
  given: readonly Part[],
  rest: readonly { readonly draft: Draft; readonly others: readonly Part[] }[],
): readonly Draft[] {
  const [first, ...later] = rest
  const behind = later.map(({ draft, others }) => withParts(draft, others))
  if (first !== undefined && first.draft.role === 'user')
    return [withParts(first.draft, [...given, ...first.others]), ...behind]
  const all = first === undefined ? behind : [withParts(first.draft, first.others), ...behind]
  return given.length === 0
    ? all
    : [{ role: 'user', response: null, parts: List.of(given), whole: null, crossable: true }, ...all]
}

/** Server tools: call and answer are blocks of the model's own turn and stay or go together. */
function pairServerTools(
  drafts: readonly Draft[],
  waiting: readonly OpenCall[],
  repairs: Repair[],
): readonly Draft[] {
  const calls = new Set<string>()
  const kept = new Set([...serverResults(drafts), ...waiting.map(({ id }) => id)])
  return drafts.map((draft) => {
    const parts = [...draft.parts].filter(({ block, origin }) => {
      if (isServerToolUse(block)) {
        calls.add(block.id)
        if (kept.has(block.id)) return true
        repairs.push({ kind: 'open-server-call', origin, id: block.id })
        return false
      }
      if (draft.role !== 'assistant' || !isServerToolResult(block) || calls.has(block.tool_use_id))
        return true
      repairs.push({ kind: 'orphan-server-result', origin, id: block.tool_use_id })
      return false
    })
    return withParts(draft, parts)
  })
}

function serverResults(drafts: readonly Draft[]): ReadonlySet<string> {
  const answers = drafts.filter((draft) => draft.role === 'assistant').flatMap((draft) => [...draft.parts])
  return new Set(answers.flatMap(({ block }) => (isServerToolResult(block) ? [block.tool_use_id] : [])))
}

function openServerCalls(drafts: readonly Draft[]): readonly OpenCall[] {
  const answered = serverResults(drafts)
  const open: OpenCall[] = []
  for (const draft of drafts) {
    if (draft.role !== 'assistant' && resultsOf(draft).length < draft.parts.length) open.length = 0
    for (const { block, origin } of draft.parts)
      if (isServerToolUse(block) && !answered.has(block.id)) open.push({ id: block.id, origin })
  }
  return open
}
