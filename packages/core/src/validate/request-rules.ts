/** What a request says around its messages. These checks look at nothing in the messages themselves. */

import type { Role } from '../context/payload.ts'
import { type Block, isBlankText, isServerToolResult, isServerToolUse } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import type { BetaRule, BlockRefusal, Profile } from '../policy/provider-profile.ts'
import {
  allBlocks,
  type Fields,
  fieldAt,
  isAbsent,
  type ReadBlock,
  type ReadMessage,
  type Report,
  readBlocks,
} from './finding.ts'
import { readMarker, readTtl } from './limit-rules.ts'
import { checkEdits, editsOf } from './provider-edit-rules.ts'
import { checkThinkingRequest } from './thinking-rules.ts'
import { checkToolChoice, checkTools, isForced } from './tool-rules.ts'

interface RequestRules {
  readonly profile: Profile
  readonly report: Report
}

export function checkAround(request: Fields, rules: RequestRules): void {
  const { profile, report } = rules
  if (typeof request.model !== 'string' || request.model === '') {
    report('model-missing', 'model', 'Expected the name of a model.')
  }
  checkMaxTokens(request, rules)
  checkBetaList(request.betas, report)
  checkRefused(request, rules)
  checkSystem(request.system, rules)
  checkTools(request, rules)
  checkToolMarkers(request.tools, rules)
  checkToolChoice(request, rules)
  checkThinkingRequest(request, profile, report)
  checkEdits(request, rules)
}

function checkMaxTokens(request: Fields, { profile, report }: RequestRules): void {
  const most = request.max_tokens
  if (isAbsent(most)) {
    if (profile.maxOutputRequired) report('max-tokens', 'max_tokens', 'Expected a limit to the answer.')
    return
  }
  const least = profile.capabilities.prewarm ? 0 : 1
  const limit = profile.maxOutput ?? Number.MAX_SAFE_INTEGER
  if (typeof most !== 'number' || !Number.isInteger(most) || most < least || most > limit) {
    report('max-tokens', 'max_tokens', `Expected a whole number from ${least} to ${limit}.`)
  } else if (most === 0) {
    checkPrewarm(request, report)
  }
}

function checkPrewarm(request: Fields, report: Report): void {
  const thinking = isObject(request.thinking) && request.thinking.type === 'enabled'
  const excluded: readonly (readonly [string, boolean])[] = [
    ['stream', request.stream === true],
    ['thinking.type', thinking],
    ['output_config.format', !isAbsent(fieldAt(request, 'output_config.format'))],
    ['tool_choice', isForced(request)],
  ]
  for (const [path, isPresent] of excluded) {
    if (isPresent) report('prewarm-combination', path, `Expected no such ${path} where max_tokens is 0.`)
  }
}

function checkBetaList(betas: unknown, report: Report): void {
  if (isAbsent(betas)) return
  if (!Array.isArray(betas) || !Array.from(betas).every((beta) => typeof beta === 'string')) {
    report('betas-shape', 'betas', 'Expected a list of strings.')
  }
}

function checkRefused(request: Fields, { profile, report }: RequestRules): void {
  const diagnostics = profile.capabilities.cacheDiagnostics ? [] : ['diagnostics']
  for (const path of new Set([...profile.refusedFields, ...diagnostics])) {
    if (!isAbsent(fieldAt(request, path))) report('field-refused', path, `Expected no ${path}.`)
  }
}

function checkSystem(system: unknown, { profile, report }: RequestRules): void {
  if (isAbsent(system)) return
  if (typeof system !== 'string' && !Array.isArray(system)) {
    report('system-shape', 'system', 'Expected a string or a list of text blocks.')
    return
  }
  for (const item of readBlocks(system, 'system', report)) {
    checkBlock(item, 'prompt', contentRules(profile, report))
    const isMarked = !isAbsent(item.block.cache_control)
    if (isMarked) readMarker(item.block, item.path, { cache: profile.cache, report })
  }
}

function checkToolMarkers(tools: unknown, { profile, report }: RequestRules): void {
  if (!Array.isArray(tools)) return
  for (const [index, tool] of tools.entries()) {
    if (!isObject(tool) || isAbsent(tool.cache_control)) continue
    readTtl(tool.cache_control, `tools.${index}.cache_control`, { cache: profile.cache, report })
  }
}

// What each block must be in itself: the fields of known types, no blank text, and a place where its type may stand.

/** A message of a role, the system prompt, or a tool result. */
type Holder = Role | 'prompt' | 'result'

interface ContentRules {
  readonly refusedBlocks: readonly BlockRefusal[]
  readonly cacheEdits: boolean
  readonly report: Report
}

export function contentRules({ refusedBlocks, capabilities }: Profile, report: Report): ContentRules {
  return { refusedBlocks, cacheEdits: capabilities.cacheEdits, report }
}

interface FieldRule {
  readonly field: string
  readonly expected: string
  fits(value: unknown): boolean
}

const isString = (value: unknown): boolean => typeof value === 'string'
const isFilled = (value: unknown): boolean => typeof value === 'string' && value !== ''
const isText: Omit<FieldRule, 'field'> = { expected: 'a string', fits: isString }
const isFilledText: Omit<FieldRule, 'field'> = { expected: 'a string that is not empty', fits: isFilled }
const isAnObject: Omit<FieldRule, 'field'> = { expected: 'an object', fits: isObject }

const isSource: Omit<FieldRule, 'field'> = {
  expected: 'an object with a type, and with data and media_type where the type is base64',
  fits: (value) =>
    isObject(value) &&
    isString(value.type) &&
    (value.type !== 'base64' || (isFilled(value.data) && isFilled(value.media_type))),
}

const FIELDS: ReadonlyMap<string, readonly FieldRule[]> = new Map([
  ['text', [{ field: 'text', ...isText }]],
  ['thinking', [{ field: 'thinking', ...isText }]],
  ['redacted_thinking', [{ field: 'data', ...isFilledText }]],
  [
    'tool_use',
    [
      { field: 'id', ...isText },
      { field: 'name', ...isFilledText },
      { field: 'input', ...isAnObject },
    ],
  ],
  [
    'tool_result',
    [
      { field: 'tool_use_id', ...isText },
      {
        field: 'content',
        expected: 'a string or a list of blocks',
        fits: (value) => isAbsent(value) || isString(value) || Array.isArray(value),
      },
      {
        field: 'is_error',
        expected: 'true or false',
        fits: (value) => isAbsent(value) || typeof value === 'boolean',
      },
    ],
  ],
  ['image', [{ field: 'source', ...isSource }]],
  ['document', [{ field: 'source', ...isSource }]],
  [
    'compaction',
    [
      {
        field: 'content',
        expected: 'a string that is not empty, or null',
        fits: (value) => value === null || isFilled(value),
      },
    ],
  ],
  ['cache_edits', [{ field: 'edits', expected: 'a list of deletions', fits: isDeletions }]],
  ['tool_addition', [{ field: 'tool', ...isAnObject }]],
  ['tool_removal', [{ field: 'tool', ...isAnObject }]],
])

function isDeletions(value: unknown): boolean {
  const isDeletion = (edit: unknown): boolean =>
    isObject(edit) && edit.type === 'delete' && isFilled(edit.cache_reference)
  return Array.isArray(value) && value.every(isDeletion)
}

/** A call the provider runs, by its type alone: its id may be missing, which is what is looked for. */
function serverFields(type: string): readonly FieldRule[] {
  if (type.endsWith('_tool_use')) return [{ field: 'id', ...isText }]
  return type.endsWith('_tool_result') ? [{ field: 'tool_use_id', ...isText }] : []
}

const HOLDERS: ReadonlyMap<string, readonly Holder[]> = new Map<string, readonly Holder[]>([
  ['thinking', ['assistant']],
  ['redacted_thinking', ['assistant']],
  ['tool_use', ['assistant']],
  ['tool_result', ['user']],
  ['cache_edits', ['user']],
  ['tool_addition', ['system']],
  ['tool_removal', ['system']],
  ['compaction', ['user', 'assistant']],
  ['image', ['user', 'assistant', 'result']],
  ['document', ['user', 'assistant', 'result']],
])

/** A summary of the provider's is sent back exactly as it came: an empty field too many, and it is refused. */
const CLOSED: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  [
    'compaction',
    new Set(['type', 'content', 'encrypted_content', 'signature', 'tool_changes', 'cache_control']),
  ],
])

function checkClosed({ block, path }: ReadBlock, { report }: ContentRules): void {
  const known = CLOSED.get(block.type)
  if (known === undefined) return
  for (const field of Object.keys(block)) {
    const isExtra = block[field] !== undefined && !known.has(field)
    if (isExtra) report('block-field', `${path}.${field}`, `Expected no ${field} on a ${block.type} block.`)
  }
}

export function checkBlock(item: ReadBlock, holder: Holder, rules: ContentRules): void {
  const { block, path } = item
  for (const { field, expected, fits } of FIELDS.get(block.type) ?? serverFields(block.type)) {
    if (!fits(block[field])) rules.report('block-field', `${path}.${field}`, `Expected ${expected}.`)
  }
  checkClosed(item, rules)
  if (isBlankText(block)) rules.report('text-blank', path, 'Expected text with more than white space in it.')
  const edits = block.type === 'cache_edits' || !isAbsent(block.cache_reference)
  if (edits && !rules.cacheEdits) {
    rules.report('cache-edit-refused', path, 'Expected neither cache edits nor references for them.')
  }
  checkHolder(item, holder, rules)
  for (const inner of item.inner) checkBlock(inner, 'result', rules)
}

function checkHolder(
  { block, path }: ReadBlock,
  holder: Holder,
  { refusedBlocks, report }: ContentRules,
): void {
  const holders = holdersOf(block)
  if (holders !== undefined && !holders.includes(holder)) {
    report('block-refused', path, `Expected no ${block.type} block here, only in: ${holders.join(', ')}.`)
    return
  }
  for (const { role, type, field } of refusedBlocks) {
    if (role !== holder || type !== block.type || (field !== undefined && isAbsent(block[field]))) continue
    const [where, what] = field === undefined ? [path, `${type} block`] : [`${path}.${field}`, field]
    report('block-refused', where, `Expected no ${what} in a message of role ${role}.`)
  }
}

function holdersOf(block: Block): readonly Holder[] | undefined {
  const isServers = isServerToolUse(block) || isServerToolResult(block)
  return isServers ? ['assistant'] : HOLDERS.get(block.type)
}

// Features that are refused unless the request names a beta for them. Which, the profile says.

/** For each rule, in order, where the messages first need its beta. */
export type BetaState = readonly (string | null)[]

export function startBetas(rules: readonly BetaRule[]): BetaState {
  return rules.map(() => null)
}

export function stepBetas(state: BetaState, message: ReadMessage, rules: readonly BetaRule[]): BetaState {
  if (rules.length === 0) return state
  const blocks = allBlocks(message.blocks)
  return rules.map((rule, index) => {
    const known = state[index] ?? null
    if (known !== null) return known
    if (rule.where === 'block') return blocks.find(({ block }) => block.type === rule.name)?.path ?? null
    if (rule.where !== 'message-field' || message.fields[rule.name] === undefined) return null
    return `${message.path}.${rule.name}`
  })
}

export function betasOf({ betas }: Fields): ReadonlySet<unknown> {
  return new Set(Array.isArray(betas) ? betas : [])
}

interface BetaRules {
  readonly betas: readonly BetaRule[]
  readonly report: Report
}

export function finishBetas(state: BetaState, request: Fields, rules: BetaRules): void {
  const inForce = betasOf(request)
  rules.betas.forEach((rule, index) => {
    if (rule.betas.some((beta) => inForce.has(beta))) return
    const path = state[index] ?? useInRequest(rule, request)
    if (path !== null) rules.report('beta-missing', path, `Expected the beta ${rule.betas.join(' or ')}.`)
  })
}

function useInRequest(rule: BetaRule, request: Fields): string | null {
  if (rule.where === 'field') return isAbsent(fieldAt(request, rule.name)) ? null : rule.name
  if (rule.where !== 'edit') return null
  return editsOf(request).find(([edit]) => edit.type === rule.name)?.[1] ?? null
}
