/** System messages in mid-conversation: the fields they may have, and where they may stand. */
import { isServerToolResult } from '../../conversation/block.ts'
import { isObject } from '../../conversation/json.ts'
import type { Profile } from '../../policy/profile.ts'
import type { Fields, Report } from './finding.ts'
import type { ReadMessage } from './read.ts'

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

export interface SystemRules {
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
