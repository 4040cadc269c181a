/** Who speaks when: the first message, messages in a row, empty ones, and an answer begun for the model. */
import {
  type Block,
  isCompactionBlock,
  isServerToolResult,
  isText,
  isThinking,
} from '../../conversation/block.ts'
import type { Profile } from '../../policy/profile.ts'
import type { Report } from './finding.ts'
import type { ReadMessage } from './read.ts'

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

export interface RoleRules {
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

export interface End {
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
