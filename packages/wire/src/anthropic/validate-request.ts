/**
 * Checks the fields of a request that only the Messages API has: limits, thinking, betas, context edits, compaction, cache
 * markers. Core checks messages, blocks and tools, and calls these rules beside its own (`validate/validate.ts`).
 */

import {
  type Block,
  isBlankTextBlock,
  isBlock,
  isCacheDeletionBlock,
  isCompactionBlock,
} from '@tidemark/core/log/block'
import { isObject } from '@tidemark/core/log/json'
import { AppendList } from '@tidemark/core/log/persistent-collections'
import type {
  BetaRule,
  CacheRules,
  ContextEditRules,
  ProviderProfile,
} from '@tidemark/core/policy/provider-profile'
import type {
  ParsedMessage,
  ParsedRequestFields,
  ProviderFieldChecks,
  RawFields,
} from '@tidemark/core/policy/provider-spelling'
import {
  canCarryMarker,
  type FieldShape,
  type FieldShapes,
  flagShape,
  hasForcedToolChoice,
  isTurnScopedMessage,
  type PlacedMarker,
  stringShape,
  toArray,
} from '@tidemark/core/validate/content-rules'
import type { CheckInput } from '@tidemark/core/validate/findings'

/** The state that the checks keep from one message to the next. */
interface CheckState {
  readonly cache: CacheMarkerState
  readonly summary: SignedCompactionPath
  readonly betas: BetaUses
}

const START: CheckState = {
  cache: { markers: AppendList.of(), target: null },
  summary: null,
  betas: new Map(),
}

export const anthropicFieldChecks: ProviderFieldChecks<ProviderProfile> = {
  start: START,
  summaryParameter: 'compaction',
  checkMessage(given, message, rules) {
    const state = given as CheckState
    checkDeletions(message, rules)
    return {
      cache: checkMessageMarkers(state.cache, message, rules),
      summary: checkCompactionBlocks(state.summary, message, rules),
      betas: findBetaUses(state.betas, message, rules),
    }
  },
  finish(given, request, { waiting, placed }, rules) {
    const { cache, summary, betas } = given as CheckState
    checkMaxTokens(request.raw, rules)
    checkRefusedFields(request.raw, rules)
    checkPrefixMarkers(request, rules)
    checkThinkingSettings(request, rules)
    checkEdits(request, rules)
    checkCompaction(summary, request, waiting, rules)
    checkBetas(betas, request, rules)
    checkMarkers(
      withPlacedMarkers(cache, placed as readonly PlacedMarker[], rules),
      cache.target,
      request,
      rules,
    )
  },
}

function checkRefusedFields(request: RawFields, rules: CheckInput): void {
  const { betas } = request
  const isNames = Array.isArray(betas) && Array.from(betas).every((beta) => typeof beta === 'string')
  if (betas != null && !isNames) rules.report('betas-shape', 'betas')
  const refused = rules.profile.capabilities.cacheDiagnostics ? [] : ['diagnostics']
  for (const path of new Set([...rules.profile.refusedFields, ...refused])) {
    if (readFieldAt(request, path) != null) rules.report('field-refused', path, `no ${path}`)
  }
}

/** Returns the value at a dotted path such as `thinking.type`; undefined if there is none. */
function readFieldAt(request: RawFields, path: string): unknown {
  return path.split('.').reduce<unknown>((value, key) => {
    return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
  }, request)
}

/** Checks the cache markers on system prompt and tools, each by itself. */
function checkPrefixMarkers({ system, tools }: ParsedRequestFields, rules: CheckInput): void {
  for (const { block, path } of system) {
    if (block.cache_control != null) checkBlockMarker(block, path, rules)
  }
  for (const [index, tool] of tools.entries()) {
    const isMarked = isObject(tool) && tool.cache_control != null
    if (isMarked) checkMarkerTtl(tool.cache_control, `tools.${index}.cache_control`, rules)
  }
}

function checkMaxTokens(request: RawFields, { profile, report }: CheckInput): void {
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
  if (most !== 0) return
  const excluded: readonly (readonly [string, boolean])[] = [
    ['stream', request.stream === true],
    ['thinking.type', readFieldAt(request, 'thinking.type') === 'enabled'],
    ['output_config.format', readFieldAt(request, 'output_config.format') != null],
    ['tool_choice', hasForcedToolChoice(request)],
  ]
  for (const [path, isPresent] of excluded) {
    if (isPresent) report('prewarm-combination', path, `no such ${path} where max_tokens is 0`)
  }
}

function checkThinkingSettings(request: ParsedRequestFields, rules: CheckInput): void {
  const { thinking } = request.raw
  if (thinking == null) return
  if (!isObject(thinking)) {
    rules.report('thinking-shape', 'thinking')
    return
  }
  checkMode(request.raw, thinking.type, rules)
  checkThinkingBudget(request, thinking, rules)
  const binding = thinking.block_binding
  if (binding == null) return
  const behaviour = isObject(binding) ? binding.prefix_mismatch_behavior : binding
  const isKnown = behaviour == null || behaviour === 'error' || behaviour === 'drop_block'
  if (!isObject(binding) || !isKnown) rules.report('thinking-binding', 'thinking.block_binding')
}

function checkMode(request: RawFields, mode: unknown, { profile: { thinking }, report }: CheckInput): void {
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
  { raw, betas }: ParsedRequestFields,
  { type, budget_tokens: budget }: RawFields,
  { profile: { thinking }, report }: CheckInput,
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
  const most = raw.max_tokens
  const mayExceed = thinking.budgetOverBetas.some((beta) => betas.includes(beta))
  if (typeof most === 'number' && budget >= most && !mayExceed) {
    report('thinking-budget', path, `less than max_tokens, which is ${most}`)
  }
}

// Checks of `context_management`: the context edits that the request asks the provider to make.

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

function checkEdits({ raw, thinkingMode }: ParsedRequestFields, rules: CheckInput): void {
  const { profile, report } = rules
  const management = raw.context_management
  if (management == null) return
  const { clearThinking, clearToolUses, compact } = profile.contextEdits
  const known = [clearThinking, clearToolUses, compact].filter((name) => name !== null)
  if (known.length === 0) {
    report('edits-refused', 'context_management', 'no context_management')
    return
  }
  const edits = isObject(management) ? management.edits : undefined
  if (!isObject(management) || !(edits == null || Array.isArray(edits))) {
    report('edit-shape', 'context_management', 'an object with a list of edits')
  }
  for (const [index, edit] of toArray(edits).entries()) {
    if (!isEdit(edit)) report('edit-shape', `${EDITS_PATH}.${index}`)
  }
  for (const [index, [edit, path]] of listEdits(raw).entries()) {
    if (!known.some((name) => name === edit.type)) {
      report('edit-unsupported', `${path}.type`, `one of: ${known.join(', ')}`)
      continue
    }
    if (edit.type === clearThinking) {
      if (index > 0) report('edit-order', path)
      if (thinkingMode === 'disabled') report('edit-without-thinking', path)
    }
    checkEditParameters(edit, path, rules)
  }
}

function checkEditParameters(edit: RawFields, path: string, { profile, report }: CheckInput): void {
  const parameters = findEditParameters(edit.type, profile.contextEdits)
  for (const [name, value] of Object.entries(edit)) {
    if (name === 'type' || value == null) continue
    const parameter = Object.hasOwn(parameters, name) ? parameters[name] : undefined
    const expected = parameter?.expected ?? `no parameter but ${Object.keys(parameters).join(', ')}`
    if (parameter?.fits(value) !== true) report('edit-parameter', `${path}.${name}`, expected)
  }
}

/** Describes an edit parameter `{type, value}` whose value must be an integer of at least `least`. */
function createAmountShape(types: readonly string[], least: number): FieldShape {
  return {
    expected: `an object of type ${types.join(' or ')} with a whole value of at least ${least}`,
    fits: (value) =>
      isObject(value) &&
      types.some((type) => type === value.type) &&
      Number.isInteger(value.value) &&
      Number(value.value) >= least,
  }
}

const names: FieldShape = {
  expected: 'a list of tool names',
  fits: (value) => Array.isArray(value) && Array.from(value).every((item) => typeof item === 'string'),
}
const namesOrFlag: FieldShape = {
  expected: 'true, false or a list of tool names',
  fits: (value) => flagShape.fits(value) || names.fits(value),
}
const turnsOrAll: FieldShape = {
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

// Checks of compaction by the provider: the field `compaction`, and compaction blocks in messages.

/** Path of the first signed compaction block, or null. A signed block replaces the messages that it summarises. */
type SignedCompactionPath = string | null

function checkCompactionBlocks(
  signed: SignedCompactionPath,
  { blocks }: ParsedMessage,
  { profile, report }: CheckInput,
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

function checkCompaction(
  signed: SignedCompactionPath,
  request: ParsedRequestFields,
  waiting: readonly string[],
  rules: CheckInput,
): void {
  const { profile, report } = rules
  if (signed !== null) {
    checkCompactionBeta(signed, request, rules)
    checkBeside(profile.compaction.notWithBlock, 'a signed compaction block', request.raw, rules)
    for (const [edit, path] of listEdits(request.raw)) {
      if (edit.type === profile.contextEdits.compact) report('compaction-combination', path)
    }
  }
  if (!request.asksSummary) return
  checkSummaryRequest(request, rules)
  for (const path of waiting) report('compaction-incomplete-turn', path)
}

function checkCompactionBeta(
  path: string,
  { betas }: ParsedRequestFields,
  { profile, report }: CheckInput,
): void {
  const { beta } = profile.compaction
  if (beta !== null && !betas.includes(beta)) report('beta-missing', path, `the beta ${beta}`)
}

function checkBeside(
  paths: readonly string[],
  what: string,
  request: RawFields,
  { report }: CheckInput,
): void {
  for (const path of paths) {
    if (readFieldAt(request, path) == null) continue
    report('compaction-combination', path, `no ${path} beside ${what}`)
  }
}

function checkSummaryRequest(request: ParsedRequestFields, rules: CheckInput): void {
  const { profile, report } = rules
  const { onDemand, notWithRequest, maxInstructionCharacters: most } = profile.compaction
  if (!onDemand) {
    report('compaction-refused', 'compaction', 'no request for a summary')
    return
  }
  checkCompactionBeta('compaction', request, rules)
  const { compaction } = request.raw
  if (!isObject(compaction) || compaction.type !== 'summarize') {
    report('compaction-request', 'compaction')
  } else if (compaction.instructions != null) {
    const { instructions } = compaction
    const fits =
      typeof instructions === 'string' && (instructions.length <= most || [...instructions].length <= most)
    const path = 'compaction.instructions'
    if (!fits) report('compaction-request', path, `a string of at most ${most} characters`)
  }
  checkBeside(notWithRequest, 'a request for a summary', request.raw, rules)
  if (hasForcedToolChoice(request.raw)) {
    report('compaction-combination', 'tool_choice', 'no forced call beside a request for a summary')
  }
}

// Checks of betas. The profile lists the features that the provider refuses unless a beta is enabled.

/** For each rule about a beta: path of the first block or message field that needs the beta. */
type BetaUses = ReadonlyMap<BetaRule, string>

function findBetaUses(state: BetaUses, message: ParsedMessage, { profile }: CheckInput): BetaUses {
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

function checkBetas(
  state: BetaUses,
  { raw, betas }: ParsedRequestFields,
  { profile, report }: CheckInput,
): void {
  for (const rule of profile.betas) {
    if (rule.betas.some((beta) => betas.includes(beta))) continue
    const path = state.get(rule) ?? findUseInRequest(rule, raw)
    if (path !== null) report('beta-missing', path, `the beta ${rule.betas.join(' or ')}`)
  }
}

function findUseInRequest({ where, name }: BetaRule, request: RawFields): string | null {
  if (where === 'field') return readFieldAt(request, name) == null ? null : name
  if (where !== 'edit') return null
  return listEdits(request).find(([edit]) => edit.type === name)?.[1] ?? null
}

// Deletions from the cached prefix, which are undocumented.

function checkDeletions({ all }: ParsedMessage, { profile, report }: CheckInput): void {
  for (const { block, path } of all) {
    const isDeletion = isCacheDeletionBlock(block)
    if (isDeletion && !isDeletionList(block.edits))
      report('block-field', `${path}.edits`, 'a list of deletions')
    const isNeeded = isDeletion || block.cache_reference != null
    if (isNeeded && !profile.capabilities.cacheEdits) report('cache-edit-refused', path)
  }
}

/** True if `edits`, the field of a block with deletions, is as the provider expects it. */
function isDeletionList(edits: unknown): boolean {
  const isDeletion = (edit: unknown): boolean =>
    isObject(edit) &&
    edit.type === 'delete' &&
    typeof edit.cache_reference === 'string' &&
    edit.cache_reference !== ''
  return Array.isArray(edits) && edits.every(isDeletion)
}

// Each cache marker is checked together with its block; the number and order of all markers are checked at the end.

/** A cache marker on a block. `ttl` is null if the marker is invalid or the provider does not offer its lifetime. */
interface Marker {
  readonly path: string
  readonly ttl: string | null
}

interface CacheMarkerState {
  readonly markers: AppendList<Marker>
  /** Path of the last block that can have a cache marker. A top-level `cache_control` applies to this block. */
  readonly target: string | null
}

function checkMessageMarkers(
  state: CacheMarkerState,
  message: ParsedMessage,
  rules: CheckInput,
): CacheMarkerState {
  const isScoped = isTurnScopedMessage(message.fields)
  let { markers } = state
  for (const { block, path } of message.all) {
    if (block.cache_control == null) continue
    if (isScoped) rules.report('turn-scoped-marker', path)
    markers = markers.push(checkBlockMarker(block, path, rules))
  }
  const { cache } = rules.profile
  const target = isScoped ? undefined : message.blocks.findLast(({ block }) => canCarryMarker(block, cache))
  return { markers, target: target?.path ?? state.target }
}

/** Reads the cache marker of the block at `path`, and reports each rule that the marker breaks. */
function checkBlockMarker(block: Block, path: string, rules: CheckInput): Marker {
  if (!canCarryMarker(block, rules.profile.cache)) {
    const kind = isBlankTextBlock(block) ? 'text that is blank' : `a ${block.type} block`
    rules.report('marker-refused', `${path}.cache_control`, `no cache marker on ${kind}`)
  }
  return { path, ttl: checkMarkerTtl(block.cache_control, `${path}.cache_control`, rules) }
}

/** Returns the lifetime that a cache marker requests. If it is invalid, reports a finding and returns null. */
function checkMarkerTtl(
  control: unknown,
  path: string,
  { profile: { cache }, report }: CheckInput,
): string | null {
  if (!isObject(control) || control.type !== 'ephemeral') {
    report('marker-shape', path, "an object of type 'ephemeral'")
    return null
  }
  for (const [field, value] of Object.entries(control)) {
    const isScope = field === 'scope' && cache.scopes.some((scope) => scope === value)
    if (field !== 'type' && field !== 'ttl' && value !== undefined && !isScope) {
      report('marker-field', `${path}.${field}`)
    }
  }
  const ttl = control.ttl == null ? cache.defaultTtl : control.ttl
  const known = cache.ttls.find(({ name }) => name === ttl)
  const names = cache.ttls.map(({ name }) => `'${name}'`).join(' or ')
  if (known === undefined) report('marker-ttl', `${path}.ttl`, names)
  return known?.name ?? null
}

/** Lists the cache markers on tools, then on the system prompt. Reports no findings; other checks report them. */
function listPrefixMarkers({ raw }: ParsedRequestFields, rules: CheckInput): readonly Marker[] {
  const silent = { ...rules, report: () => {} }
  return ['tools', 'system'].flatMap((zone) =>
    toArray(raw[zone]).flatMap((item, index): readonly Marker[] =>
      isObject(item) && item.cache_control != null
        ? [{ path: `${zone}.${index}`, ttl: checkMarkerTtl(item.cache_control, '', silent) }]
        : [],
    ),
  )
}

/** Checks number and order of all cache markers, with a top-level `cache_control`. `inMessages` is in request order. */
function checkMarkers(
  inMessages: readonly Marker[],
  target: string | null,
  request: ParsedRequestFields,
  rules: CheckInput,
): void {
  const { profile, report } = rules
  const { maxMarkers } = profile.cache
  const markers = [...listPrefixMarkers(request, rules), ...inMessages]
  const shortest = checkMarkerOrder(markers, rules)
  const automatic = request.raw.cache_control
  const paths = markers.map(({ path }) => `${path}.cache_control`)
  if (automatic != null) paths.push('cache_control')
  const surplus = paths[maxMarkers]
  if (surplus !== undefined) {
    report('marker-count', surplus, `at most ${maxMarkers} markers, found ${paths.length}`)
  }
  if (automatic == null) return
  if (!profile.cache.automatic) {
    report('marker-automatic', 'cache_control')
    return
  }
  const ttl = checkMarkerTtl(automatic, 'cache_control', rules)
  if (ttl === null) return
  const automaticPath = target ?? findPrefixTarget(request, profile.cache)
  const own = markers.find(({ path }) => path === automaticPath)
  if (own === undefined) {
    if (toSeconds(ttl, profile.cache) > shortest) report('marker-order', 'cache_control.ttl')
  } else if (own.ttl !== null && own.ttl !== ttl) {
    report('marker-automatic', 'cache_control.ttl', `'${own.ttl}', as on the last block (${own.path})`)
  }
}

/** Checks that no cache marker requests a longer lifetime than one before it. Returns the shortest, in seconds. */
function checkMarkerOrder(markers: readonly Marker[], { profile, report }: CheckInput): number {
  let shortest = Number.POSITIVE_INFINITY
  for (const { path, ttl } of markers) {
    if (ttl === null) continue
    const seconds = toSeconds(ttl, profile.cache)
    if (seconds > shortest) report('marker-order', `${path}.cache_control.ttl`)
    else shortest = seconds
  }
  return shortest
}

function toSeconds(ttl: string, cache: CacheRules): number {
  return cache.ttls.find(({ name }) => name === ttl)?.seconds ?? 0
}

/** Path of the system block or tool that a top-level `cache_control` applies to if no message block can be marked. */
function findPrefixTarget({ raw, system, tools }: ParsedRequestFields, cache: CacheRules): string | null {
  const blocks = Array.isArray(raw.system) ? system : []
  const inSystem = blocks.findLast(({ block }) => canCarryMarker(block, cache))
  if (inSystem !== undefined) return inSystem.path
  return tools.length > 0 ? `tools.${tools.length - 1}` : null
}

// Checks of cache markers that are added to messages after the messages were checked. Markers move every turn, and
// checking all messages again for that would cost too much time.

/** Returns the cache markers already in the messages together with the markers in `placed`, in request order. */
function withPlacedMarkers(
  { markers }: CacheMarkerState,
  placed: readonly PlacedMarker[],
  rules: CheckInput,
): readonly Marker[] {
  return [...markers, ...placed.flatMap((marker) => checkPlacedMarker(marker, rules))].sort(compareMarkers)
}

function checkPlacedMarker(marker: PlacedMarker, rules: CheckInput): readonly Marker[] {
  const { message, index, block: at, control } = marker
  const path = `messages.${index}.content.${at}`
  const block = Array.isArray(message.content) ? message.content[at] : undefined
  if (!isBlock(block)) {
    rules.report('marker-refused', `${path}.cache_control`)
    return []
  }
  if (isTurnScopedMessage(message)) rules.report('turn-scoped-marker', path)
  return [checkBlockMarker({ ...block, cache_control: control }, path, rules)]
}

/** Sorts cache markers by message and block. A marker inside a tool result sorts before the marker on that tool result. */
function compareMarkers(one: Marker, other: Marker): number {
  const toPosition = ({ path }: Marker): readonly number[] => path.match(/\d+/g)?.map(Number) ?? []
  const [left, right] = [toPosition(one), toPosition(other)]
  const differs = left.findIndex((part, index) => part !== right[index])
  if (differs < 0) return right.length - left.length
  return (left[differs] ?? 0) - (right[differs] ?? Number.POSITIVE_INFINITY)
}
