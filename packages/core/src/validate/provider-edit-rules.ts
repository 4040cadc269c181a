/** The provider's own summaries: the request for one, and where its block may stand afterwards. */
import { isCompactionBlock } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import type { ContextEditRules, Profile } from '../policy/provider-profile.ts'
import { type Fields, fieldAt, isAbsent, type ReadBlock, type ReadMessage, type Report } from './finding.ts'
import { thinks } from './thinking-rules.ts'
import { type CallState, isForced } from './tool-rules.ts'

/** Where the first signed block is. A signed block replaces what it summarises; any other comes after it. */
export interface CompactionState {
  readonly signed: string | null
}

export const startCompaction: CompactionState = { signed: null }

interface SummaryRules {
  readonly profile: Profile
  readonly report: Report
}

export function stepCompaction(
  state: CompactionState,
  message: ReadMessage,
  rules: SummaryRules,
): CompactionState {
  return message.blocks
    .filter(({ block }) => isCompactionBlock(block))
    .reduce((before, item) => afterBlock(before, item, rules), state)
}

function afterBlock(
  state: CompactionState,
  { block, path }: ReadBlock,
  rules: SummaryRules,
): CompactionState {
  const { profile, report } = rules
  if (!profile.compaction.blocks) report('compaction-refused', path, 'Expected no compaction block.')
  if (typeof block.signature !== 'string') return state
  if (state.signed !== null) {
    report('compaction-repeated', path, 'Expected one signed compaction block, the newest.')
    return state
  }
  if (path !== 'messages.0.content.0') {
    report(
      'compaction-misplaced',
      path,
      'Expected the compaction block first, in place of what it summarises.',
    )
  }
  return { signed: path }
}

interface SummaryEnd {
  readonly request: Fields
  readonly betas: ReadonlySet<unknown>
  /** Calls of the provider's that are under way. */
  readonly waiting: CallState['waiting']
}

export function finishCompaction(state: CompactionState, end: SummaryEnd, rules: SummaryRules): void {
  if (state.signed !== null) checkBesideBlock(state.signed, end, rules)
  if (isAbsent(end.request.compaction)) return
  checkRequest(end, rules)
  for (const { path } of end.waiting.values()) {
    rules.report(
      'compaction-incomplete-turn',
      path,
      'Expected every call to have its result before a summary.',
    )
  }
}

function checkBesideBlock(
  path: string,
  { request, betas }: SummaryEnd,
  { profile, report }: SummaryRules,
): void {
  const { compaction, contextEdits } = profile
  checkBeta(path, betas, { profile, report })
  reportPresent(compaction.notWithBlock, request, { report, beside: 'a signed compaction block' })
  for (const [edit, place] of editsOf(request)) {
    if (contextEdits.compact === null || edit.type !== contextEdits.compact) continue
    report('compaction-combination', place, 'Expected no further summary beside a signed compaction block.')
  }
}

function checkBeta(path: string, betas: ReadonlySet<unknown>, { profile, report }: SummaryRules): void {
  const { beta } = profile.compaction
  if (beta !== null && !betas.has(beta)) report('beta-missing', path, `Expected the beta ${beta}.`)
}

function checkRequest({ request, betas }: SummaryEnd, { profile, report }: SummaryRules): void {
  const { onDemand, notWithRequest } = profile.compaction
  if (!onDemand) {
    report('compaction-refused', 'compaction', 'Expected no request for a summary.')
    return
  }
  checkBeta('compaction', betas, { profile, report })
  checkForm(request.compaction, { profile, report })
  reportPresent(notWithRequest, request, { report, beside: 'a request for a summary' })
  if (isForced(request)) {
    report('compaction-combination', 'tool_choice', 'Expected no forced call beside a request for a summary.')
  }
}

function checkForm(compaction: unknown, { profile, report }: SummaryRules): void {
  if (!isObject(compaction) || compaction.type !== 'summarize') {
    report('compaction-request', 'compaction', "Expected an object of type 'summarize'.")
    return
  }
  const { instructions } = compaction
  const most = profile.compaction.maxInstructionCharacters
  const fits =
    typeof instructions === 'string' && (instructions.length <= most || [...instructions].length <= most)
  if (!isAbsent(instructions) && !fits) {
    report(
      'compaction-request',
      'compaction.instructions',
      `Expected a string of at most ${most} characters.`,
    )
  }
}

interface Excluding {
  readonly report: Report
  readonly beside: string
}

function reportPresent(paths: readonly string[], request: Fields, { report, beside }: Excluding): void {
  for (const path of paths) {
    if (!isAbsent(fieldAt(request, path))) {
      report('compaction-combination', path, `Expected no ${path} beside ${beside}.`)
    }
  }
}

// `context_management`: edits that the provider makes by itself, and the parameters each takes.

interface EditRules {
  readonly profile: Profile
  readonly report: Report
}

type Edit = readonly [edit: Fields, path: string]

/** The edits of a request that can be read, each with its place. */
export function editsOf(request: Fields): readonly Edit[] {
  return listOf(request).flatMap((edit, index): readonly Edit[] =>
    isEdit(edit) ? [[edit, pathOf(index)]] : [],
  )
}

function listOf({ context_management: management }: Fields): readonly unknown[] {
  const edits = isObject(management) ? management.edits : undefined
  return Array.isArray(edits) ? Array.from(edits) : []
}

function isEdit(edit: unknown): edit is Fields {
  return isObject(edit) && typeof edit.type === 'string'
}

function pathOf(index: number): string {
  return `context_management.edits.${index}`
}

export function checkEdits(request: Fields, rules: EditRules): void {
  const management = request.context_management
  if (isAbsent(management)) return
  const { contextEdits } = rules.profile
  const known = [contextEdits.clearThinking, contextEdits.clearToolUses, contextEdits.compact]
  if (known.every((name) => name === null)) {
    rules.report('edits-refused', 'context_management', 'Expected no context_management.')
    return
  }
  checkShape(request, rules.report)
  editsOf(request).forEach(([edit, path], index) => {
    if (!known.some((name) => name === edit.type)) {
      const types = known.filter((name) => name !== null).join(', ')
      rules.report('edit-unsupported', `${path}.type`, `Expected one of: ${types}.`)
      return
    }
    if (edit.type === contextEdits.clearThinking) checkClearThinking(request, { path, index }, rules)
    checkParameters(edit, path, rules)
  })
}

function checkShape(request: Fields, report: Report): void {
  const management = request.context_management
  if (!isObject(management) || !(isAbsent(management.edits) || Array.isArray(management.edits))) {
    report('edit-shape', 'context_management', 'Expected an object with a list of edits.')
  }
  for (const [index, edit] of listOf(request).entries()) {
    if (!isEdit(edit)) report('edit-shape', pathOf(index), 'Expected an object with a type.')
  }
}

interface Place {
  readonly path: string
  readonly index: number
}

function checkClearThinking(request: Fields, { path, index }: Place, { profile, report }: EditRules): void {
  if (index > 0) report('edit-order', path, 'Expected the clearing of thinking to be the first edit.')
  if (!thinks(request, profile.thinking)) {
    report('edit-without-thinking', path, 'Expected the clearing of thinking only while the model thinks.')
  }
}

interface Parameter {
  readonly expected: string
  fits(value: unknown): boolean
}

/** An amount of something: `{type, value}`, a whole number from `least` up. */
function amountOf(types: readonly string[], least: number): Parameter {
  return {
    expected: `an object of type ${types.join(' or ')} with a whole value of at least ${least}`,
    fits: (value) =>
      isObject(value) &&
      types.some((type) => type === value.type) &&
      Number.isInteger(value.value) &&
      Number(value.value) >= least,
  }
}

const isNames = (value: unknown): boolean =>
  Array.isArray(value) && Array.from(value).every((item) => typeof item === 'string')

const names: Parameter = { expected: 'a list of tool names', fits: isNames }
const flag: Parameter = { expected: 'true or false', fits: (value) => typeof value === 'boolean' }
const text: Parameter = { expected: 'a string', fits: (value) => typeof value === 'string' }
const namesOrFlag: Parameter = {
  expected: 'true, false or a list of tool names',
  fits: (value) => typeof value === 'boolean' || isNames(value),
}
const turnsOrAll: Parameter = {
  expected: "an object of type thinking_turns with a whole value of at least 1, of type all, or 'all'",
  fits: (value) =>
    value === 'all' ||
    (isObject(value) && value.type === 'all') ||
    amountOf(['thinking_turns'], 1).fits(value),
}

type Parameters = { readonly [name: string]: Parameter }

function parametersOf(type: unknown, edits: ContextEditRules): Parameters {
  if (type === edits.clearThinking) return { keep: turnsOrAll }
  if (type === edits.compact) {
    const trigger = amountOf(['input_tokens'], edits.minimumCompactTrigger)
    return { trigger, pause_after_compaction: flag, instructions: text }
  }
  return {
    trigger: amountOf(['input_tokens', 'tool_uses'], 1),
    keep: amountOf(['tool_uses'], 0),
    clear_at_least: amountOf(['input_tokens'], 1),
    exclude_tools: names,
    clear_tool_inputs: namesOrFlag,
  }
}

function checkParameters(edit: Fields, path: string, { profile, report }: EditRules): void {
  const parameters = parametersOf(edit.type, profile.contextEdits)
  for (const [name, value] of Object.entries(edit)) {
    if (name === 'type' || isAbsent(value)) continue
    const parameter = Object.hasOwn(parameters, name) ? parameters[name] : undefined
    const expected = parameter?.expected ?? `no parameter but ${Object.keys(parameters).join(', ')}`
    if (parameter?.fits(value) !== true) report('edit-parameter', `${path}.${name}`, `Expected ${expected}.`)
  }
}
