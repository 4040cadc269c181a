/** Who speaks when: the first message, messages in a row, empty ones, and an answer begun for the model. */
import { type Block, isCompactionBlock, isServerToolResult, isText, isThinking } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import type { Profile } from '../policy/provider-profile.ts'
import type { Fields, ReadMessage, Report } from './finding.ts'

export interface RoleState {
  /** The last message of user or assistant; system messages stand beside the turns. */
  readonly last: ReadMessage | null
  /** That message is a compaction block and nothing else, at the very start: any role may follow. */
  readonly afterSummary: boolean
  readonly hasContent: boolean
  /** An assistant message without content, so far the last message of all. */
  readonly emptyTail: string | null
}

export const startRoles: RoleState = { last: null, afterSummary: false, hasContent: false, emptyTail: null }

interface RoleRules {
  readonly profile: Profile
  readonly report: Report
}

export function stepRoles(state: RoleState, message: ReadMessage, rules: RoleRules): RoleState {
  const { role, isEmpty, path } = message
  if (state.emptyTail !== null) reportEmpty(state.emptyTail, rules.report)
  if (role === 'system') return { ...state, emptyTail: null }
  if (isEmpty && role === 'user') reportEmpty(path, rules.report)
  checkRole(state, message, rules)
  return {
    last: message,
    afterSummary: state.last === null && message.blocks.length > 0 && message.blocks.every(isSummary),
    hasContent: state.hasContent || !isEmpty,
    emptyTail: isEmpty && role === 'assistant' ? path : null,
  }
}

function isSummary({ block }: ReadMessage['blocks'][number]): boolean {
  return isCompactionBlock(block)
}

function reportEmpty(path: string, report: Report): void {
  report(
    'message-empty',
    path,
    'Expected content: only the last message may be empty, and only of the assistant.',
  )
}

function checkRole(
  { last, afterSummary }: RoleState,
  message: ReadMessage,
  { profile, report }: RoleRules,
): void {
  const { role, path, blocks } = message
  if (last === null) {
    const opensWithSummary = blocks[0] !== undefined && isSummary(blocks[0])
    if (profile.roles.first === 'user' && role !== 'user' && !opensWithSummary) {
      report('first-role', path, 'Expected the first message to be from the user.')
    }
  } else if (last.role === role && profile.roles.consecutive === 'refused' && !afterSummary) {
    report('role-repeated', path, `Expected another role than ${role}, which spoke before.`)
  }
}

/** How a turn ends that was interrupted by the provider, not begun by the caller; or one reported for its thinking. */
function isOwnEnd(block: Block, profile: Profile): boolean {
  if (isThinking(block)) return profile.thinking.closing !== 'allowed'
  return isServerToolResult(block) || isCompactionBlock(block)
}

interface End {
  /** A summary is asked for, so nothing is continued. */
  readonly summarizes: boolean
  /** A call of the last turn has no result yet: that is reported as such. */
  readonly hasUnanswered: boolean
  /** A call that the provider runs is under way: the model's turn goes on. */
  readonly isWaiting: boolean
}

export function finishRoles({ last, hasContent }: RoleState, end: End, { profile, report }: RoleRules): void {
  if (last === null) {
    report('messages-empty', 'messages', 'Expected at least one message of user or assistant.')
    return
  }
  if (end.summarizes) {
    if (!hasContent) report('compaction-nothing', 'messages', 'Expected something to summarise.')
    return
  }
  if (last.role !== 'assistant' || end.hasUnanswered || end.isWaiting) return
  const block = last.blocks.at(-1)?.block
  if (block !== undefined && isOwnEnd(block, profile)) return
  if (profile.roles.prefill === 'refused') {
    report('prefill-refused', last.path, 'Expected the last message to be from the user.')
  } else if (block !== undefined && isText(block) && block.text !== block.text.trimEnd()) {
    report(
      'trailing-whitespace',
      last.path,
      'Expected the text of the last message not to end in white space.',
    )
  }
}

// System messages in mid-conversation: the fields they may have, and where they may stand.

/** System messages in a row are one section and are judged together; those without content only set an effort. */
export interface SystemState {
  /** What stands before the section: a user turn, a paused assistant turn, or something it may not follow. */
  readonly before: 'user' | 'paused' | 'other'
  /** The first message of the section that says something, as long as nothing is wrong with its place. */
  readonly section: string | null
  /** The section says something. */
  readonly speaks: boolean
}

export const startSystem: SystemState = { before: 'other', section: null, speaks: false }

interface SystemRules {
  readonly profile: Profile
  readonly report: Report
}

export function stepSystem(state: SystemState, message: ReadMessage, rules: SystemRules): SystemState {
  checkFields(message, rules)
  if (message.role === 'system') return inSection(state, message, rules)
  if (state.section !== null && message.role === 'user') reportPlace(state.section, rules.report)
  return { before: before(message), section: null, speaks: false }
}

function before({ role, blocks }: ReadMessage): SystemState['before'] {
  if (role === 'user') return 'user'
  const last = blocks.at(-1)?.block
  return last !== undefined && isServerToolResult(last) ? 'paused' : 'other'
}

function inSection(state: SystemState, message: ReadMessage, { profile, report }: SystemRules): SystemState {
  if (profile.roles.system === 'refused') {
    report('system-refused', message.path, 'Expected no system message among the messages.')
    return state
  }
  checkTurnScoped(message, report)
  if (message.isEmpty) {
    if (!setsEffort(message)) report('message-empty', message.path, 'Expected content, or an effort to set.')
    return state
  }
  if (state.before === 'paused') checkToolChanges(message, report)
  if (state.speaks) return state
  if (state.before === 'other') reportPlace(message.path, report)
  return { ...state, section: state.before === 'other' ? null : message.path, speaks: true }
}

function reportPlace(path: string, report: Report): void {
  const expected =
    'Expected it behind a user turn, or an assistant turn that ends in a result of the provider,'
  report('system-misplaced', path, `${expected} and before an assistant turn or at the end.`)
}

function setsEffort({ fields }: ReadMessage): boolean {
  return isObject(fields.output_config) && typeof fields.output_config.effort === 'string'
}

function checkToolChanges({ blocks }: ReadMessage, report: Report): void {
  for (const { block, path } of blocks) {
    if (block.type !== 'tool_addition' && block.type !== 'tool_removal') continue
    report('system-misplaced', path, 'Expected no change of tools behind a paused turn: resume it first.')
  }
}

export function isTurnScoped({ role, clear_at: clearAt }: Fields): boolean {
  return role === 'system' && clearAt === 'next_user_message'
}

function checkTurnScoped(message: ReadMessage, report: Report): void {
  const { path, fields, blocks } = message
  if (!isTurnScoped(fields)) return
  if (blocks.some(({ block }) => block.type !== 'text')) {
    report('turn-scoped-content', path, 'Expected text alone in a system message for one turn.')
  }
  if (fields.output_config !== undefined) {
    report('turn-scoped-output-config', path, 'Expected no output_config on a system message for one turn.')
  }
}

function checkFields({ role, path, fields }: ReadMessage, { profile, report }: SystemRules): void {
  const allowed = new Set(['role', 'content'])
  if (role === 'system' && profile.roles.turnScoped) allowed.add('clear_at')
  if (role === 'system' && profile.roles.messageEffort) allowed.add('output_config')
  for (const [field, value] of Object.entries(fields)) {
    if (value === undefined || allowed.has(field)) continue
    const isMisplaced = field === 'clear_at' && profile.roles.turnScoped
    if (isMisplaced) report('clear-at-role', `${path}.clear_at`, 'Expected clear_at on system messages only.')
    else report('message-field', `${path}.${field}`, `Expected no field but ${[...allowed].join(', ')}.`)
  }
  if (allowed.has('clear_at')) checkClearAt(fields.clear_at, `${path}.clear_at`, report)
}

function checkClearAt(value: unknown, path: string, report: Report): void {
  if (value === undefined || value === 'next_user_message' || value === 'never') return
  report('clear-at-value', path, "Expected 'next_user_message' or 'never'.")
}
