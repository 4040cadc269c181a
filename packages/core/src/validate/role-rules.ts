/** Who speaks when: the first message, messages in a row, empty ones, an answer begun for the model, system messages. */
import { isCompactionBlock, isServerToolResult, isText, isThinking } from '../log/block.ts'
import { type Fields, fieldAt, isAbsent, type ReadBlock, type ReadMessage, type Rules } from './finding.ts'
import { type CallState, isToolChange } from './tool-rules.ts'

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

const isSummary = ({ block }: ReadBlock): boolean => isCompactionBlock(block)

export function stepRoles(
  { last, afterSummary, hasContent, emptyTail }: RoleState,
  message: ReadMessage,
  { profile: { roles }, report }: Rules,
): RoleState {
  const { role, isEmpty, path, blocks } = message
  if (emptyTail !== null) report('message-empty', emptyTail)
  if (role === 'system') return { last, afterSummary, hasContent, emptyTail: null }
  if (isEmpty && role === 'user') report('message-empty', path)
  if (last === null) {
    const opensRight = role === 'user' || blocks.slice(0, 1).some(isSummary)
    if (roles.first === 'user' && !opensRight) report('first-role', path)
  } else if (last.role === role && roles.consecutive === 'refused' && !afterSummary) {
    report('role-repeated', path, `another role than ${role}, which spoke before`)
  }
  return {
    last: message,
    afterSummary: last === null && blocks.length > 0 && blocks.every(isSummary),
    hasContent: hasContent || !isEmpty,
    emptyTail: isEmpty && role === 'assistant' ? path : null,
  }
}

/** Is the last message one that a model may answer? Calls without a result are reported as such, not here. */
export function finishRoles(
  { last, hasContent }: RoleState,
  request: Fields,
  { pending, waiting }: CallState,
  { profile, report }: Rules,
): void {
  if (last === null) {
    report('messages-empty', 'messages')
    return
  }
  if (!isAbsent(request.compaction)) {
    if (!hasContent) report('compaction-nothing', 'messages')
    return
  }
  if (last.role !== 'assistant' || pending.size > 0 || waiting.size > 0) return
  const block = last.blocks.at(-1)?.block
  if (block !== undefined) {
    // The provider interrupted the turn here; or the turn is reported for its thinking.
    if (isServerToolResult(block) || isCompactionBlock(block)) return
    if (isThinking(block) && profile.thinking.closing !== 'allowed') return
  }
  if (profile.roles.prefill === 'refused') report('prefill-refused', last.path)
  else if (block !== undefined && isText(block) && block.text !== block.text.trimEnd()) {
    report('trailing-whitespace', last.path)
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

export function stepSystem(state: SystemState, message: ReadMessage, rules: Rules): SystemState {
  checkFields(message, rules)
  const { role, blocks } = message
  if (role === 'system') return inSection(state, message, rules)
  if (state.section !== null && role === 'user') rules.report('system-misplaced', state.section)
  const isPaused = blocks.slice(-1).some(({ block }) => isServerToolResult(block))
  return { before: role === 'user' ? 'user' : isPaused ? 'paused' : 'other', section: null, speaks: false }
}

function inSection(state: SystemState, message: ReadMessage, { profile, report }: Rules): SystemState {
  const { path, blocks, fields } = message
  if (profile.roles.system === 'refused') {
    report('system-refused', path)
    return state
  }
  if (isTurnScoped(fields)) {
    if (blocks.some(({ block }) => block.type !== 'text')) report('turn-scoped-content', path)
    if (fields.output_config !== undefined) report('turn-scoped-output-config', path)
  }
  if (message.isEmpty) {
    const setsEffort = typeof fieldAt(fields, 'output_config.effort') === 'string'
    if (!setsEffort) report('message-empty', path, 'content, or an effort to set')
    return state
  }
  if (state.before === 'paused') {
    for (const { path: place } of blocks.filter(isToolChange)) {
      report('system-misplaced', place, 'no change of tools behind a paused turn: resume it first')
    }
  }
  if (state.speaks) return state
  if (state.before === 'other') report('system-misplaced', path)
  return { ...state, section: state.before === 'other' ? null : path, speaks: true }
}

/** A system message that holds for one turn only. */
export function isTurnScoped({ role, clear_at: clearAt }: Fields): boolean {
  return role === 'system' && clearAt === 'next_user_message'
}

function checkFields({ role, path, fields }: ReadMessage, { profile: { roles }, report }: Rules): void {
  const allowed = ['role', 'content']
  if (role === 'system' && roles.turnScoped) allowed.push('clear_at')
  if (role === 'system' && roles.messageEffort) allowed.push('output_config')
  for (const [field, value] of Object.entries(fields)) {
    if (value === undefined) continue
    const place = `${path}.${field}`
    if (field === 'clear_at' && roles.turnScoped) {
      if (role !== 'system') report('clear-at-role', place)
    } else if (!allowed.includes(field)) {
      report('message-field', place, `no field but ${allowed.join(', ')}`)
    }
  }
  const { clear_at: clearAt } = fields
  const isKnown = clearAt === undefined || clearAt === 'next_user_message' || clearAt === 'never'
  if (allowed.includes('clear_at') && !isKnown) report('clear-at-value', `${path}.clear_at`)
}
