/** What a request says around its messages, what each block must be in itself, and the betas that features need. */

import type { Role } from '../context/payload.ts'
import { isBlankText, isCacheEdits, isServerToolResult, isServerToolUse } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import type { BetaRule } from '../policy/provider-profile.ts'
import {
  aString,
  type Fields,
  fieldAt,
  isAbsent,
  isFilled,
  listIn,
  type ReadBlock,
  type ReadMessage,
  type Rules,
  readBlocks,
  type Shape,
  type Shapes,
} from './finding.ts'
import { readMarker, readTtl } from './limit-rules.ts'
import { checkEdits, editsOf } from './provider-edit-rules.ts'
import { checkThinkingSettings } from './thinking-rules.ts'
import { checkToolChoice, checkTools, isForced } from './tool-rules.ts'

/** These checks look at nothing in the messages. */
export function checkAround(request: Fields, rules: Rules): void {
  if (!isFilled(request.model)) rules.report('model-missing', 'model')
  checkMaxTokens(request, rules)
  const { betas } = request
  const isNames = Array.isArray(betas) && Array.from(betas).every((beta) => typeof beta === 'string')
  if (!isAbsent(betas) && !isNames) rules.report('betas-shape', 'betas')
  const refused = rules.profile.capabilities.cacheDiagnostics ? [] : ['diagnostics']
  for (const path of new Set([...rules.profile.refusedFields, ...refused])) {
    if (!isAbsent(fieldAt(request, path))) rules.report('field-refused', path, `no ${path}`)
  }
  checkSystem(request.system, rules)
  checkTools(request, rules)
  for (const [index, tool] of listIn(request.tools).entries()) {
    const isMarked = isObject(tool) && !isAbsent(tool.cache_control)
    if (isMarked) readTtl(tool.cache_control, `tools.${index}.cache_control`, rules)
  }
  checkToolChoice(request, rules)
  checkThinkingSettings(request, rules)
  checkEdits(request, rules)
}

function checkMaxTokens(request: Fields, { profile, report }: Rules): void {
  const most = request.max_tokens
  if (isAbsent(most)) {
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
    ['thinking.type', fieldAt(request, 'thinking.type') === 'enabled'],
    ['output_config.format', !isAbsent(fieldAt(request, 'output_config.format'))],
    ['tool_choice', isForced(request)],
  ]
  for (const [path, isPresent] of excluded) {
    if (most === 0 && isPresent) report('prewarm-combination', path, `no such ${path} where max_tokens is 0`)
  }
}

function checkSystem(system: unknown, rules: Rules): void {
  if (isAbsent(system)) return
  if (typeof system !== 'string' && !Array.isArray(system)) {
    rules.report('system-shape', 'system')
    return
  }
  for (const item of readBlocks(system, 'system', rules.report)) {
    checkBlock(item, 'prompt', rules)
    if (!isAbsent(item.block.cache_control)) readMarker(item.block, item.path, rules)
  }
}

// What each block must be in itself: the fields of known types, no blank text, and a place where its type may stand.

/** A message of a role, the system prompt, or a tool result. */
type Holder = Role | 'prompt' | 'result'

interface BlockRule {
  readonly fields: Shapes
  /** Where it may stand; anywhere if absent. */
  readonly holders?: readonly Holder[]
  /** Its only fields. A summary of the provider's is refused if it has any field that it did not come with. */
  readonly only?: readonly string[]
}

const filled: Shape = { expected: 'a string that is not empty', fits: isFilled }
const object: Shape = { expected: 'an object', fits: isObject }
const source: Shape = {
  expected: 'an object with a type, and with data and media_type where the type is base64',
  fits: (value) =>
    isObject(value) &&
    typeof value.type === 'string' &&
    (value.type !== 'base64' || (isFilled(value.data) && isFilled(value.media_type))),
}
const resultContent: Shape = {
  expected: 'a string or a list of blocks',
  fits: (value) => isAbsent(value) || typeof value === 'string' || Array.isArray(value),
}
const optionalFlag: Shape = {
  expected: 'true or false',
  fits: (value) => isAbsent(value) || typeof value === 'boolean',
}
const summary: Shape = {
  expected: 'a string that is not empty, or null',
  fits: (value) => value === null || isFilled(value),
}
const deletions: Shape = {
  expected: 'a list of deletions',
  fits: (value) =>
    Array.isArray(value) &&
    value.every((edit) => isObject(edit) && edit.type === 'delete' && isFilled(edit.cache_reference)),
}

const MEDIA: BlockRule = { fields: { source }, holders: ['user', 'assistant', 'result'] }
const TOOL_CHANGE: BlockRule = { fields: { tool: object }, holders: ['system'] }

const BLOCKS: ReadonlyMap<string, BlockRule> = new Map(
  Object.entries<BlockRule>({
    text: { fields: { text: aString } },
    thinking: { fields: { thinking: aString }, holders: ['assistant'] },
    redacted_thinking: { fields: { data: filled }, holders: ['assistant'] },
    tool_use: { fields: { id: aString, name: filled, input: object }, holders: ['assistant'] },
    tool_result: {
      fields: { tool_use_id: aString, content: resultContent, is_error: optionalFlag },
      holders: ['user'],
    },
    image: MEDIA,
    document: MEDIA,
    compaction: {
      fields: { content: summary },
      holders: ['user', 'assistant'],
      only: ['type', 'content', 'encrypted_content', 'signature', 'tool_changes', 'cache_control'],
    },
    cache_edits: { fields: { edits: deletions }, holders: ['user'] },
    tool_addition: TOOL_CHANGE,
    tool_removal: TOOL_CHANGE,
  }),
)

/** Calls that the provider runs, and their results, are known by the end of their type. Their id may be missing. */
function blockRule({ block }: ReadBlock): BlockRule | undefined {
  const known = BLOCKS.get(block.type)
  if (known !== undefined) return known
  const isServers = isServerToolUse(block) || isServerToolResult(block)
  const holders: Pick<BlockRule, 'holders'> = isServers ? { holders: ['assistant'] } : {}
  if (block.type.endsWith('_tool_use')) return { fields: { id: aString }, ...holders }
  return block.type.endsWith('_tool_result') ? { fields: { tool_use_id: aString }, ...holders } : undefined
}

export function checkBlock(item: ReadBlock, holder: Holder, rules: Rules): void {
  const { block, path } = item
  const { profile, report } = rules
  const rule = blockRule(item)
  for (const [field, { expected, fits }] of Object.entries(rule?.fields ?? {})) {
    if (!fits(block[field])) report('block-field', `${path}.${field}`, expected)
  }
  for (const [field, value] of Object.entries(rule?.only === undefined ? {} : block)) {
    if (value === undefined || rule?.only?.includes(field)) continue
    report('block-field', `${path}.${field}`, `no ${field} on a ${block.type} block`)
  }
  if (isBlankText(block)) report('text-blank', path)
  const edits = isCacheEdits(block) || !isAbsent(block.cache_reference)
  if (edits && !profile.capabilities.cacheEdits) report('cache-edit-refused', path)
  if (rule?.holders !== undefined && !rule.holders.includes(holder)) {
    report('block-refused', path, `no ${block.type} block here, only in: ${rule.holders.join(', ')}`)
  } else {
    checkRefused(item, holder, rules)
  }
  for (const inner of item.inner) checkBlock(inner, 'result', rules)
}

function checkRefused({ block, path }: ReadBlock, holder: Holder, { profile, report }: Rules): void {
  for (const { role, type, field } of profile.refusedBlocks) {
    if (role !== holder || type !== block.type || (field !== undefined && isAbsent(block[field]))) continue
    const [where, what] = field === undefined ? [path, `${type} block`] : [`${path}.${field}`, field]
    report('block-refused', where, `no ${what} in a message of role ${role}`)
  }
}

// Features that are refused unless the request names a beta for them. Which, the profile says.

/** For each rule, in order, where the messages first need its beta. */
export type BetaState = readonly (string | null)[]

export function stepBetas(state: BetaState, message: ReadMessage, { profile }: Rules): BetaState {
  return profile.betas.map(({ where, name }, index) => {
    const known = state[index] ?? null
    if (known !== null) return known
    if (where === 'block') return message.all.find(({ block }) => block.type === name)?.path ?? null
    const isUsed = where === 'message-field' && message.fields[name] !== undefined
    return isUsed ? `${message.path}.${name}` : null
  })
}

export function finishBetas(state: BetaState, request: Fields, { profile, report }: Rules): void {
  const inForce = listIn(request.betas)
  for (const [index, rule] of profile.betas.entries()) {
    if (rule.betas.some((beta) => inForce.includes(beta))) continue
    const path = state[index] ?? useInRequest(rule, request)
    if (path !== null) report('beta-missing', path, `the beta ${rule.betas.join(' or ')}`)
  }
}

function useInRequest({ where, name }: BetaRule, request: Fields): string | null {
  if (where === 'field') return isAbsent(fieldAt(request, name)) ? null : name
  if (where !== 'edit') return null
  return editsOf(request).find(([edit]) => edit.type === name)?.[1] ?? null
}
