/** Checks the fields of an API request other than its messages, the provider features in use, and the betas they need. */

import { isCompactionBlock } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import type { BetaRule, ContextEditRules } from '../policy/provider-profile.ts'
import { checkBlock, checkBlockMarker, checkMarkerTtl } from './content-rules.ts'
import {
  type FieldShapes,
  flagShape,
  listToolNames,
  matchesRegExp,
  type ParsedMessage,
  parseContent,
  type RawFields,
  type RuleSet,
  readFieldAt,
  readThinkingMode,
  type Shape,
  stringShape,
  toArray,
} from './findings.ts'
import type { ToolCallState } from './message-rules.ts'

export function checkRequestFields(request: RawFields, rules: RuleSet): void {
  checkMaxTokens(request, rules)
  const { betas } = request
  const isNames = Array.isArray(betas) && Array.from(betas).every((beta) => typeof beta === 'string')
  if (betas != null && !isNames) rules.report('betas-shape', 'betas')
  const refused = rules.profile.capabilities.cacheDiagnostics ? [] : ['diagnostics']
  for (const path of new Set([...rules.profile.refusedFields, ...refused])) {
    if (readFieldAt(request, path) != null) rules.report('field-refused', path, `no ${path}`)
  }
  checkSystem(request.system, rules)
  checkTools(request, rules)
  for (const [index, tool] of toArray(request.tools).entries()) {
    const isMarked = isObject(tool) && tool.cache_control != null
    if (isMarked) checkMarkerTtl(tool.cache_control, `tools.${index}.cache_control`, rules)
  }
  checkToolChoice(request, rules)
  checkThinkingSettings(request, rules)
  checkEdits(request, rules)
}

function checkMaxTokens(request: RawFields, { profile, report }: RuleSet): void {
  const most = request.max_tokens
  if (most == null) {
    if (profile.maxOutputRequired) report('max-tokens', 'max_tokens')
    return
  }
  const least = profile.capabilities.prewarm ? 0 : 1
  const limit = profile.maxOutput ?? Number.MAX_SAFE_INTEGER
  if (typeof most !== 'number' || !Number.isInteger(most) || most < least || most > limit) {
    report('max-tokens', 'max_tokens', `a whole number from ${least} to ${limit}`)
    return
  }
  const excluded: readonly (readonly [string, boolean])[] = [
    ['stream', request.stream === true],
    ['thinking.type', readFieldAt(request, 'thinking.type') === 'enabled'],
    ['output_config.format', readFieldAt(request, 'output_config.format') != null],
    ['tool_choice', hasForcedToolChoice(request)],
  ]
  for (const [path, isPresent] of excluded) {
    if (most === 0 && isPresent) report('prewarm-combination', path, `no such ${path} where max_tokens is 0`)
  }
}

function checkSystem(system: unknown, rules: RuleSet): void {
  if (typeof system !== 'string' && !Array.isArray(system)) return
  for (const item of parseContent(system, 'system', rules.report)) {
    checkBlock(item, 'prompt', rules)
    if (item.block.cache_control != null) checkBlockMarker(item.block, item.path, rules)
  }
}

function checkTools({ tools }: RawFields, { profile, report }: RuleSet): void {
  if (tools != null && !Array.isArray(tools)) report('tools-shape', 'tools', 'a list of tools')
  const names = new Set<unknown>()
  let deferred = 0
  for (const [index, tool] of toArray(tools).entries()) {
    const path = `tools.${index}`
    if (!isObject(tool)) {
      report('tools-shape', path)
      continue
    }
    checkTool(tool, path, { profile, report })
    const isRepeated = typeof tool.name === 'string' && names.has(tool.name)
    if (isRepeated) report('tool-name-repeated', `${path}.name`)
    names.add(tool.name)
    if (tool.defer_loading === true) deferred += 1
  }
  const most = profile.sizes.deferredTools
  if (deferred > most) report('tool-count', 'tools', `at most ${most} deferred tools, not ${deferred}`)
}

/** Checks one tool. A client tool has no `type` or type `custom`. Provider tools need no schema, and some no name. */
function checkTool(
  { type, name, input_schema }: RawFields,
  path: string,
  { profile, report }: RuleSet,
): void {
  const isOwn = type == null || type === 'custom'
  const pattern = profile.tools.namePattern
  const isNamed = typeof name === 'string' && matchesRegExp(name, pattern)
  if ((isOwn || name != null) && !isNamed) {
    report('tool-name', `${path}.name`, `a name that matches ${pattern}`)
  }
  const hasSchema = isObject(input_schema) && input_schema.type === 'object'
  if (isOwn && !hasSchema) report('tool-schema', `${path}.input_schema`)
}

const TOOL_CHOICES: readonly unknown[] = ['auto', 'any', 'tool', 'none']

function hasForcedToolChoice({ tool_choice: choice }: RawFields): boolean {
  return isObject(choice) && (choice.type === 'any' || choice.type === 'tool')
}

function checkToolChoice(request: RawFields, { profile, report }: RuleSet): void {
  const choice = request.tool_choice
  if (choice == null) return
  if (!isObject(choice) || !TOOL_CHOICES.includes(choice.type)) {
    report('tool-choice', 'tool_choice', `an object of type ${TOOL_CHOICES.join(', ')}`)
    return
  }
  const isNamed = typeof choice.name === 'string' && listToolNames(request).has(choice.name)
  if (toArray(request.tools).length === 0) report('tool-choice', 'tool_choice')
  else if (choice.type === 'tool' && !isNamed) {
    report('tool-choice', 'tool_choice.name', 'the name of a declared tool')
  }
  const mode = readThinkingMode(request, profile.thinking)
  const isFree = profile.thinking.unforcedInModes.some((unforced) => unforced === mode)
  if (hasForcedToolChoice(request) && (profile.tools.forcedChoice === 'refused' || isFree)) {
    report('tool-choice-forced', 'tool_choice.type')
  }
}

function checkThinkingSettings(request: RawFields, rules: RuleSet): void {
  const { thinking } = request
  if (thinking == null) return
  if (!isObject(thinking)) {
    rules.report('thinking-shape', 'thinking')
    return
  }
  checkMode(request, thinking.type, rules)
  checkThinkingBudget(request, thinking, rules)
  const binding = thinking.block_binding
  if (binding == null) return
  const behaviour = isObject(binding) ? binding.prefix_mismatch_behavior : binding
  const isKnown = behaviour == null || behaviour === 'error' || behaviour === 'drop_block'
  if (!isObject(binding) || !isKnown) rules.report('thinking-binding', 'thinking.block_binding')
}

function checkMode(request: RawFields, mode: unknown, { profile: { thinking }, report }: RuleSet): void {
  if (!thinking.modes.some((known) => known === mode)) {
    report('thinking-mode', 'thinking.type', `one of: ${thinking.modes.join(', ')}`)
    return
  }
  const effort = readFieldAt(request, 'output_config.effort')
  if (mode !== 'disabled' || effort == null || thinking.disabledEfforts === null) return
  if (thinking.disabledEfforts.some((accepted) => accepted === effort)) return
  report('thinking-mode', 'thinking.type', `disabled only at effort ${thinking.disabledEfforts.join(', ')}`)
}

function checkThinkingBudget(
  request: RawFields,
  { type, budget_tokens: budget }: RawFields,
  { profile: { thinking }, report }: RuleSet,
): void {
  const path = 'thinking.budget_tokens'
  if (type !== 'enabled') {
    if (budget != null) report('thinking-budget', path)
    return
  }
  if (typeof budget !== 'number' || !Number.isInteger(budget) || budget < thinking.minimumBudget) {
    report('thinking-budget', path, `a whole number of at least ${thinking.minimumBudget}`)
    return
  }
  const most = request.max_tokens
  const mayExceed = thinking.budgetOverBetas.some((beta) => toArray(request.betas).includes(beta))
  if (typeof most === 'number' && budget >= most && !mayExceed) {
    report('thinking-budget', path, `less than max_tokens, which is ${most}`)
  }
}

// The functions below check `context_management`: the context edits that the provider shall make.

const EDITS_PATH = 'context_management.edits'

type Edit = readonly [edit: RawFields, path: string]

function isEdit(edit: unknown): edit is RawFields {
  return isObject(edit) && typeof edit.type === 'string'
}

/** Returns the well-formed context edits of a request, each with its path in the request. */
function listEdits(request: RawFields): readonly Edit[] {
  return toArray(readFieldAt(request, EDITS_PATH)).flatMap((edit, index): readonly Edit[] =>
    isEdit(edit) ? [[edit, `${EDITS_PATH}.${index}`]] : [],
  )
}

function checkEdits(request: RawFields, rules: RuleSet): void {
  const { profile, report } = rules
  const management = request.context_management
  if (management == null) return
  const { clearThinking, clearToolUses, compact } = profile.contextEdits
  const known = [clearThinking, clearToolUses, compact].filter((name) => name !== null)
  if (known.length === 0) {
    report('edits-refused', 'context_management')
    return
  }
  const edits = isObject(management) ? management.edits : undefined
  if (!isObject(management) || !(edits == null || Array.isArray(edits))) {
    report('edit-shape', 'context_management', 'an object with a list of edits')
  }
  for (const [index, edit] of toArray(edits).entries()) {
    if (!isEdit(edit)) report('edit-shape', `${EDITS_PATH}.${index}`)
  }
  for (const [index, [edit, path]] of listEdits(request).entries()) {
    if (!known.some((name) => name === edit.type)) {
      report('edit-unsupported', `${path}.type`, `one of: ${known.join(', ')}`)
      continue
    }
    if (edit.type === clearThinking) {
      if (index > 0) report('edit-order', path)
      const isOff = readThinkingMode(request, profile.thinking) === 'disabled'
      if (isOff) report('edit-without-thinking', path)
    }
    checkEditParameters(edit, path, rules)
  }
}

function checkEditParameters(edit: RawFields, path: string, { profile, report }: RuleSet): void {
  const parameters = findEditParameters(edit.type, profile.contextEdits)
  for (const [name, value] of Object.entries(edit)) {
    if (name === 'type' || value == null) continue
    const parameter = Object.hasOwn(parameters, name) ? parameters[name] : undefined
    const expected = parameter?.expected ?? `no parameter but ${Object.keys(parameters).join(', ')}`
    if (parameter?.fits(value) !== true) report('edit-parameter', `${path}.${name}`, expected)
  }
}

/** Describes an edit parameter `{type, value}` whose value must be an integer of at least `least`. */
function createAmountShape(types: readonly string[], least: number): Shape {
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
  fits: (value) => flagShape.fits(value) || names.fits(value),
}
const turnsOrAll: Shape = {
  expected: "an object of type thinking_turns with a whole value of at least 1, of type all, or 'all'",
  fits: (value) =>
    value === 'all' ||
    (isObject(value) && value.type === 'all') ||
    createAmountShape(['thinking_turns'], 1).fits(value),
}
const clearToolUsesParameters: FieldShapes = {
  trigger: createAmountShape(['input_tokens', 'tool_uses'], 1),
  keep: createAmountShape(['tool_uses'], 0),
  clear_at_least: createAmountShape(['input_tokens'], 1),
  exclude_tools: names,
  clear_tool_inputs: namesOrFlag,
}

function findEditParameters(type: unknown, edits: ContextEditRules): FieldShapes {
  if (type === edits.clearThinking) return { keep: turnsOrAll }
  if (type !== edits.compact) return clearToolUsesParameters
  const trigger = createAmountShape(['input_tokens'], edits.minimumCompactTrigger)
  return { trigger, pause_after_compaction: flagShape, instructions: stringShape }
}

// The functions below check compaction by the provider: the field `compaction`, and compaction blocks in messages.

/** Path of the first signed compaction block, or null. A signed block replaces the messages that it summarises. */
export type SignedCompactionPath = string | null

export function checkCompactionBlocks(
  signed: SignedCompactionPath,
  { blocks }: ParsedMessage,
  { profile, report }: RuleSet,
): SignedCompactionPath {
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

export function checkCompaction(
  signed: SignedCompactionPath,
  request: RawFields,
  { waiting }: ToolCallState,
  rules: RuleSet,
): void {
  const { profile, report } = rules
  if (signed !== null) {
    checkCompactionBeta(signed, request, rules)
    checkBeside(profile.compaction.notWithBlock, 'a signed compaction block', request, rules)
    for (const [edit, path] of listEdits(request)) {
      if (edit.type === profile.contextEdits.compact) report('compaction-combination', path)
    }
  }
  if (request.compaction == null) return
  checkSummaryRequest(request, rules)
  for (const { path } of waiting.values()) report('compaction-incomplete-turn', path)
}

function checkCompactionBeta(path: string, { betas }: RawFields, { profile, report }: RuleSet): void {
  const { beta } = profile.compaction
  if (beta !== null && !toArray(betas).includes(beta)) report('beta-missing', path, `the beta ${beta}`)
}

function checkBeside(paths: readonly string[], what: string, request: RawFields, { report }: RuleSet): void {
  for (const path of paths) {
    if (readFieldAt(request, path) == null) continue
    report('compaction-combination', path, `no ${path} beside ${what}`)
  }
}

function checkSummaryRequest(request: RawFields, rules: RuleSet): void {
  const { profile, report } = rules
  const { onDemand, notWithRequest, maxInstructionCharacters: most } = profile.compaction
  if (!onDemand) {
    report('compaction-refused', 'compaction', 'no request for a summary')
    return
  }
  checkCompactionBeta('compaction', request, rules)
  const { compaction } = request
  if (!isObject(compaction) || compaction.type !== 'summarize') {
    report('compaction-request', 'compaction')
  } else if (compaction.instructions != null) {
    const { instructions } = compaction
    const fits =
      typeof instructions === 'string' && (instructions.length <= most || [...instructions].length <= most)
    const path = 'compaction.instructions'
    if (!fits) report('compaction-request', path, `a string of at most ${most} characters`)
  }
  checkBeside(notWithRequest, 'a request for a summary', request, rules)
  if (hasForcedToolChoice(request)) {
    report('compaction-combination', 'tool_choice', 'no forced call beside a request for a summary')
  }
}

// The functions below check betas. The profile lists the features that the provider refuses unless a beta is enabled.

/** For each rule about a beta: path of the first block or message field that needs the beta. */
export type BetaUses = ReadonlyMap<BetaRule, string>

export function findBetaUses(state: BetaUses, message: ParsedMessage, { profile }: RuleSet): BetaUses {
  let after = state
  for (const rule of profile.betas) {
    const path = state.has(rule) ? null : findUseInMessage(rule, message)
    if (path !== null) after = new Map(after).set(rule, path)
  }
  return after
}

function findUseInMessage({ where, name }: BetaRule, { all, fields, path }: ParsedMessage): string | null {
  if (where === 'block') return all.find(({ block }) => block.type === name)?.path ?? null
  return where === 'message-field' && fields[name] !== undefined ? `${path}.${name}` : null
}

export function checkBetas(state: BetaUses, request: RawFields, { profile, report }: RuleSet): void {
  const named = toArray(request.betas)
  for (const rule of profile.betas) {
    if (rule.betas.some((beta) => named.includes(beta))) continue
    const path = state.get(rule) ?? findUseInRequest(rule, request)
    if (path !== null) report('beta-missing', path, `the beta ${rule.betas.join(' or ')}`)
  }
}

function findUseInRequest({ where, name }: BetaRule, request: RawFields): string | null {
  if (where === 'field') return readFieldAt(request, name) == null ? null : name
  if (where !== 'edit') return null
  return listEdits(request).find(([edit]) => edit.type === name)?.[1] ?? null
}
