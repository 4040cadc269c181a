/** What the provider does to the context: summaries on request, their blocks, and the edits of `context_management`. */
import { isCompactionBlock } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import type { ContextEditRules } from '../policy/provider-profile.ts'
import {
  aFlag,
  aString,
  type Fields,
  fieldAt,
  isAbsent,
  listIn,
  type ReadMessage,
  type Rules,
  type Shape,
  type Shapes,
} from './finding.ts'
import { thinkingMode } from './thinking-rules.ts'
import { type CallState, isForced } from './tool-rules.ts'

/** Where the first signed compaction block is: it replaces what it summarises. Any other comes after what it summarises. */
export type SignedSummary = string | null

export function stepCompaction(
  signed: SignedSummary,
  { blocks }: ReadMessage,
  { profile, report }: Rules,
): SignedSummary {
  let first = signed
  for (const { block, path } of blocks) {
    if (!isCompactionBlock(block)) continue
    if (!profile.compaction.blocks) report('compaction-refused', path)
    if (typeof block.signature !== 'string') continue
    if (first !== null) report('compaction-repeated', path)
    else if (path !== 'messages.0.content.0') report('compaction-misplaced', path)
    first ??= path
  }
  return first
}

export function finishCompaction(
  signed: SignedSummary,
  request: Fields,
  { waiting }: CallState,
  rules: Rules,
): void {
  const { profile, report } = rules
  if (signed !== null) {
    checkBeta(signed, request, rules)
    checkExcluded(profile.compaction.notWithBlock, 'a signed compaction block', request, rules)
    for (const [edit, path] of editsOf(request)) {
      if (edit.type === profile.contextEdits.compact) report('compaction-combination', path)
    }
  }
  if (isAbsent(request.compaction)) return
  checkSummaryRequest(request, rules)
  for (const { path } of waiting.values()) report('compaction-incomplete-turn', path)
}

function checkBeta(path: string, { betas }: Fields, { profile, report }: Rules): void {
  const { beta } = profile.compaction
  if (beta !== null && !listIn(betas).includes(beta)) report('beta-missing', path, `the beta ${beta}`)
}

function checkExcluded(paths: readonly string[], beside: string, request: Fields, { report }: Rules): void {
  for (const path of paths) {
    if (isAbsent(fieldAt(request, path))) continue
    report('compaction-combination', path, `no ${path} beside ${beside}`)
  }
}

function checkSummaryRequest(request: Fields, rules: Rules): void {
  const { profile, report } = rules
  const { onDemand, notWithRequest, maxInstructionCharacters: most } = profile.compaction
  if (!onDemand) {
    report('compaction-refused', 'compaction', 'no request for a summary')
    return
  }
  checkBeta('compaction', request, rules)
  const { compaction } = request
  if (!isObject(compaction) || compaction.type !== 'summarize') {
    report('compaction-request', 'compaction')
  } else if (!isAbsent(compaction.instructions)) {
    const { instructions: text } = compaction
    const fits = typeof text === 'string' && (text.length <= most || [...text].length <= most)
    const path = 'compaction.instructions'
    if (!fits) report('compaction-request', path, `a string of at most ${most} characters`)
  }
  checkExcluded(notWithRequest, 'a request for a summary', request, rules)
  if (isForced(request)) {
    report('compaction-combination', 'tool_choice', 'no forced call beside a request for a summary')
  }
}

// `context_management`: edits that the provider makes by itself, and the parameters each takes.

const EDITS = 'context_management.edits'

type Edit = readonly [edit: Fields, path: string]

function isEdit(edit: unknown): edit is Fields {
  return isObject(edit) && typeof edit.type === 'string'
}

/** The edits of a request that can be read, each with its place. */
export function editsOf(request: Fields): readonly Edit[] {
  return listIn(fieldAt(request, EDITS)).flatMap((edit, index): readonly Edit[] =>
    isEdit(edit) ? [[edit, `${EDITS}.${index}`]] : [],
  )
}

export function checkEdits(request: Fields, rules: Rules): void {
  const { profile, report } = rules
  const management = request.context_management
  if (isAbsent(management)) return
  const { clearThinking, clearToolUses, compact } = profile.contextEdits
  const known = [clearThinking, clearToolUses, compact].filter((name) => name !== null)
  if (known.length === 0) {
    report('edits-refused', 'context_management')
    return
  }
  const edits = isObject(management) ? management.edits : undefined
  if (!isObject(management) || !(isAbsent(edits) || Array.isArray(edits))) {
    report('edit-shape', 'context_management', 'an object with a list of edits')
  }
  for (const [index, edit] of listIn(edits).entries()) {
    if (!isEdit(edit)) report('edit-shape', `${EDITS}.${index}`)
  }
  for (const [index, [edit, path]] of editsOf(request).entries()) {
    if (!known.some((name) => name === edit.type)) {
      report('edit-unsupported', `${path}.type`, `one of: ${known.join(', ')}`)
      continue
    }
    if (edit.type === clearThinking) {
      if (index > 0) report('edit-order', path)
      const isOff = thinkingMode(request, profile.thinking) === 'disabled'
      if (isOff) report('edit-without-thinking', path)
    }
    checkParameters(edit, path, rules)
  }
}

function checkParameters(edit: Fields, path: string, { profile, report }: Rules): void {
  const parameters = parametersOf(edit.type, profile.contextEdits)
  for (const [name, value] of Object.entries(edit)) {
    if (name === 'type' || isAbsent(value)) continue
    const parameter = Object.hasOwn(parameters, name) ? parameters[name] : undefined
    const expected = parameter?.expected ?? `no parameter but ${Object.keys(parameters).join(', ')}`
    if (parameter?.fits(value) !== true) report('edit-parameter', `${path}.${name}`, expected)
  }
}

/** An amount of something: `{type, value}`, a whole number from `least` up. */
function amountOf(types: readonly string[], least: number): Shape {
  return {
    expected: `an object of type ${types.join(' or ')} with a whole value of at least ${least}`,
    fits: (value) =>
      isObject(value) &&
      types.some((type) => type === value.type) &&
      Number.isInteger(value.value) &&
      Number(value.value) >= least,
  }
}

const names: Shape = {
  expected: 'a list of tool names',
  fits: (value) => Array.isArray(value) && Array.from(value).every((item) => typeof item === 'string'),
}
const namesOrFlag: Shape = {
  expected: 'true, false or a list of tool names',
  fits: (value) => aFlag.fits(value) || names.fits(value),
}
const turnsOrAll: Shape = {
  expected: "an object of type thinking_turns with a whole value of at least 1, of type all, or 'all'",
  fits: (value) =>
    value === 'all' ||
    (isObject(value) && value.type === 'all') ||
    amountOf(['thinking_turns'], 1).fits(value),
}
const clearToolUsesParameters: Shapes = {
  trigger: amountOf(['input_tokens', 'tool_uses'], 1),
  keep: amountOf(['tool_uses'], 0),
  clear_at_least: amountOf(['input_tokens'], 1),
  exclude_tools: names,
  clear_tool_inputs: namesOrFlag,
}

function parametersOf(type: unknown, edits: ContextEditRules): Shapes {
  if (type === edits.clearThinking) return { keep: turnsOrAll }
  if (type !== edits.compact) return clearToolUsesParameters
  const trigger = amountOf(['input_tokens'], edits.minimumCompactTrigger)
  return { trigger, pause_after_compaction: aFlag, instructions: aString }
}
