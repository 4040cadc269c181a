/**
 * Calls and their answers: the only file that knows the rule. Every call of a response is answered in the
 * user message right behind it, every answer has its call there; what is missing is completed, what has no
 * partner is left out, and each such repair is told.
 */

import { List } from '../log/append-list.ts'
import {
  isServerToolResult,
  isServerToolUse,
  isToolResult,
  isToolUse,
  type ToolResultBlock,
} from '../log/block.ts'
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

export interface Paired {
  readonly drafts: readonly Draft[]
  readonly repairs: readonly Repair[]
}

/** `isKnownCall`: was there such a call in what is finished already? */
export function pairTools(drafts: readonly Draft[], isKnownCall: (id: string) => boolean): Paired {
  const repairs: Repair[] = []
  const seen = new Set<string>()
  const known = (id: string): boolean => seen.has(id) || isKnownCall(id)
  const paired: Draft[] = []
  let asked: Draft[] = []
  let group: Draft[] = []
  const close = (): void => {
    paired.push(...answer(asked, group, known, repairs))
    asked = []
    group = []
  }
  for (const draft of pairServerTools(drafts, repairs)) {
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
  return { drafts: paired.filter((draft) => !isEmpty(draft)), repairs }
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
): readonly Draft[] {
  const open = new Set(asked.flatMap(callsOf))
  const given: Part[] = []
  for (const part of group.flatMap(resultsOf)) {
    const { tool_use_id: id } = part.block as ToolResultBlock
    if (open.delete(id)) given.push(part)
    else repairs.push({ kind: strayKind(id, given, known), origin: part.origin, id })
  }
  for (const id of open) {
    const origin = originOf(asked, id)
    repairs.push({ kind: 'missing-result', origin, id })
    given.push({ block: missingResult(id), origin })
  }
  const rest = group.map((draft) => ({
    draft,
    others: [...draft.parts].filter((part) => !isToolResult(part.block)),
  }))
  return [...asked, ...placed(given, rest)]
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

function originOf(asked: readonly Draft[], id: string): string {
  const part = asked
    .flatMap((draft) => [...draft.parts])
    .find(({ block }) => isToolUse(block) && block.id === id)
  return part?.origin ?? ''
}

/** Server tools: call and answer are blocks of the model's own turn and stay or go together. */
function pairServerTools(drafts: readonly Draft[], repairs: Repair[]): readonly Draft[] {
  const calls = new Set<string>()
  const open = new Set(openServerCalls(drafts))
  return drafts.map((draft) => {
    const parts = [...draft.parts].filter(({ block, origin }) => {
      if (isServerToolUse(block)) {
        calls.add(block.id)
        if (answeredOrWaiting(drafts, block.id, open)) return true
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

function answeredOrWaiting(drafts: readonly Draft[], id: string, open: ReadonlySet<string>): boolean {
  return open.has(id) || serverResults(drafts).has(id)
}

function serverResults(drafts: readonly Draft[]): ReadonlySet<string> {
  const answers = drafts.filter((draft) => draft.role === 'assistant').flatMap((draft) => [...draft.parts])
  return new Set(answers.flatMap(({ block }) => (isServerToolResult(block) ? [block.tool_use_id] : [])))
}

/** Server calls without answer that the turn may still bring one for: nothing but tool results has come since. */
export function openServerCalls(drafts: readonly Draft[]): readonly string[] {
  const answered = serverResults(drafts)
  const open: string[] = []
  for (const draft of drafts) {
    if (draft.role !== 'assistant' && resultsOf(draft).length < draft.parts.length) open.length = 0
    for (const { block } of draft.parts)
      if (isServerToolUse(block) && !answered.has(block.id)) open.push(block.id)
  }
  return open
}
