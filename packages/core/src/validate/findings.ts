/**
 * Defines findings. A finding has the code of the broken rule, the path of the faulty value in the API request, and the
 * expected value.
 */
import type { ProviderProfile } from '../policy/provider-profile.ts'

/**
 * The expected value for each finding code, as text. A check that knows more, such as a limit or a name, gives its own
 * text.
 */
export const EXPECTATIONS = {
  // Finding codes for parts of the wrong type or structure.
  'message-field': 'no fields but those of its role',
  'block-shape': 'an object with a type',
  'block-field': 'fields of the types that the block must have',
  'block-refused': 'blocks of this type only where they may stand',
  // Finding codes for the fields of a request other than its messages.
  'max-tokens': 'a limit to the answer',
  'prewarm-combination': 'a request that only fills the cache to stand alone',
  'field-refused': 'no field that the provider refuses',
  'betas-shape': 'a list of strings',
  'beta-missing': 'the beta that this needs',
  // Finding codes for text and for the order of turns.
  'messages-empty': 'at least one message of user or assistant',
  'message-empty': 'content: only the last message may be empty, and only of the assistant',
  'text-blank': 'text with more than white space in it',
  'first-role': 'the first message to be from the user',
  'role-repeated': 'roles that alternate',
  'prefill-refused': 'the last message to be from the user',
  'trailing-whitespace': 'the text of the last message not to end in white space',
  // Finding codes for mid-conversation system messages.
  'system-refused': 'no system message among the messages',
  'system-misplaced':
    'it behind a user turn, or an assistant turn that ends in a result of the provider, and before an assistant turn or at the end',
  'clear-at-role': 'clear_at on system messages only',
  'turn-scoped-content': 'text alone in a system message for one turn',
  'turn-scoped-marker': 'no cache marker in a system message for one turn',
  // Finding codes for tool definitions and tool choice.
  'tools-shape': 'an object',
  'tool-name': 'a name that matches the pattern',
  'tool-name-repeated': 'a name that no other tool has',
  'tool-count': 'fewer deferred tools',
  'tool-schema': "a schema of type 'object'",
  'tools-undeclared': 'the tools that the messages use to be declared',
  'tool-choice': 'a choice only where tools are declared',
  'tool-choice-forced': "'auto' or 'none'",
  'tool-change-refused': 'no change of tools among the messages',
  'tool-change-unknown': 'the name of a declared tool',
  // Finding codes for tool calls and their results.
  'tool-id': 'an id that matches the pattern',
  'tool-id-repeated': 'an id that no other call has',
  'tool-result-missing': 'a tool_result for each tool_use in the next message',
  'tool-result-unexpected': 'a call in the message before that this answers',
  'tool-result-repeated': 'one result for each call',
  'tool-result-late': 'the results before anything else in the message',
  'server-result-missing': "a result of the provider's call before the turn ends",
  'server-result-unexpected': 'a call before it that has no result yet',
  'server-wait-results-only': 'nothing but results while the provider runs a call',
  // Finding codes for thinking settings and thinking blocks.
  'thinking-shape': 'an object with a type',
  'thinking-mode': 'a mode that the model has',
  'thinking-budget': "a budget only with type 'enabled'",
  'thinking-binding': "prefix_mismatch_behavior 'error' or 'drop_block'",
  'thinking-signature': 'the signature that came with the block',
  'thinking-not-first': 'thinking first in the last turn',
  'thinking-last': 'text or a call behind the last thinking of the turn',
  // Finding codes for cache markers.
  'marker-shape': 'a cache marker as the provider spells it',
  'marker-ttl': 'a lifetime that the provider has',
  'marker-field': 'no field but type and ttl, and a scope where there is one',
  'marker-refused': 'a block to put the marker on',
  'marker-count': 'fewer markers',
  'marker-order': 'a lifetime no longer than that of the markers before it, along tools, system and messages',
  'marker-automatic': 'markers on blocks alone, none on the request',
  'cache-edit-refused': 'neither cache edits nor references for them',
  // Finding codes for context edits.
  'edits-refused': 'no context edits',
  'edit-shape': 'an object with a type',
  'edit-unsupported': 'an edit that the provider has',
  'edit-parameter': 'parameters of the types they must have',
  'edit-order': 'the clearing of thinking to be the first edit',
  'edit-without-thinking': 'the clearing of thinking only while the model thinks',
  // Finding codes for compaction by the provider.
  'compaction-refused': 'no compaction block',
  'compaction-request': "an object of type 'summarize'",
  'compaction-combination': 'no further summary beside a signed compaction block',
  'compaction-incomplete-turn': 'every call to have its result before a summary',
  'compaction-nothing': 'something to summarise',
  'compaction-misplaced': 'the compaction block first, in place of what it summarises',
  'compaction-repeated': 'one signed compaction block, the newest',
  // Finding codes for limits on counts and sizes.
  'message-count': 'fewer messages',
  'body-size': 'fewer bytes of JSON',
  'image-count': 'fewer images',
  'image-size': 'a smaller image',
  'many-image-size': 'smaller images where there are many',
} as const

export type FindingCode = keyof typeof EXPECTATIONS

export const findingCodes: readonly FindingCode[] = Object.keys(EXPECTATIONS) as FindingCode[]

/** A rule that the request breaks, and where. */
export interface Finding {
  readonly code: FindingCode
  /** Path of the faulty value, as in `messages.3.content.1`; empty for the request as a whole. */
  readonly path: string
  /** Text that says which value was expected at `path`. */
  readonly message: string
}

/** Reports a finding. `expected`: overrides the text of the code. */
export type ReportFinding = (code: FindingCode, path: string, expected?: string) => void

/** The input of every check: the provider's rules, and the function that reports findings. */
export interface CheckInput {
  readonly profile: ProviderProfile
  readonly report: ReportFinding
}
