/** What the register holds: every tool call and result of the view, with what clearing must know of each. */
import { IndexMap } from '../conversation/index-map.ts'
import { List } from '../conversation/list.ts'
import { Trie } from '../conversation/trie.ts'
import type { Entry } from '../view/entry.ts'
import type { RegisterRules } from './register-rules.ts'
import type { Deletion, Memory, Response, ToolCall, ToolResult } from './registered.ts'
import { NOTHING_SUPERSEDED, type Supersession } from './supersede.ts'

export interface Register {
  readonly rules: RegisterRules
  /** What has been taken in. */
  readonly entries: List<Entry>
  readonly calls: List<ToolCall>
  /** From the id of a call to its place in `calls`, and to that of its result in `results`. */
  readonly callPlaces: IndexMap
  readonly results: List<ToolResult>
  readonly resultPlaces: IndexMap
  /** Index among the results of the first that is clearable and shown; null where none is. */
  readonly firstActive: number | null
  /** In the order in which they began. */
  readonly responses: List<Response>
  readonly supersession: Supersession
  /** By path: the newest complete read, which a later "unchanged" refers to. */
  readonly newestRead: Trie<string>
  /** By call: the results that refer to its text. */
  readonly pointedAtBy: Trie<readonly string[]>
  readonly memories: List<Memory>
  /** Standing deletions from the provider's cache. */
  readonly deletions: readonly Deletion[]
  /** Results that the provider has taken out though the view still shows them, and by which way. */
  readonly remote: Trie<'cached' | 'native'>
  /** Index among the calls behind the last that the provider cleared by itself, and the tokens it said that freed. */
  readonly native: { readonly cut: number; readonly tokens: number } | null
  /** Responses that think, in order, and how many of the first the provider has left the thinking out of. */
  readonly thinkers: List<string>
  readonly thoughtless: number | null
  /** Clearable results with their large inputs that are shown and that nobody has taken out. */
  readonly active: Tally
  /** Of those, what has come since the last clearing. */
  readonly fresh: Tally
  /** Responses that may still get answers: those said in a row. */
  readonly asking: readonly number[]
  /** Index of the first call of theirs. */
  readonly askedFrom: number
  /** Something of the user's has come since. */
  readonly isAnswering: boolean
  /** Place of the newest record that a model said, or -1: results in front of it have been seen. */
  readonly answeredAt: number
  /** Place of the newest words of a user that answer no call, or -1. */
  readonly promptAt: number
  /** The newest record under the role of the user. */
  readonly userUuid: string | null
}

export interface Tally {
  readonly count: number
  /** As estimated. */
  readonly tokens: number
}

export const NO_TALLY: Tally = { count: 0, tokens: 0 }

export function emptyRegister(rules: RegisterRules): Register {
  return {
    rules,
    entries: List.of(),
    calls: List.of(),
    callPlaces: IndexMap.empty(),
    results: List.of(),
    resultPlaces: IndexMap.empty(),
    firstActive: null,
    responses: List.of(),
    supersession: NOTHING_SUPERSEDED,
    newestRead: Trie.empty(),
    pointedAtBy: Trie.empty(),
    memories: List.of(),
    deletions: [],
    remote: Trie.empty(),
    native: null,
    thinkers: List.of(),
    thoughtless: null,
    active: NO_TALLY,
    fresh: NO_TALLY,
    asking: [],
    askedFrom: 0,
    isAnswering: false,
    answeredAt: -1,
    promptAt: -1,
    userUuid: null,
  }
}

export function callOf({ calls, callPlaces }: Register, id: string): ToolCall | undefined {
  const place = callPlaces.get(id)
  return place === undefined ? undefined : calls.at(place)
}

export function resultOf({ results, resultPlaces }: Register, id: string): ToolResult | undefined {
  const place = resultPlaces.get(id)
  return place === undefined ? undefined : results.at(place)
}

/** Tokens, as estimated, of a result and of the large inputs of its call. */
export function sizeOfItem({ tokens, isCleared, call }: ToolResult): number {
  return (isCleared ? 0 : tokens) + call.inputs.reduce((sum, input) => sum + input.tokens, 0)
}
