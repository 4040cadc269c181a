/**
 * Parses and checks the content of an API request: the fields of each block and where it may occur, the tools, and the
 * limits on images, messages and bytes. A malformed block is reported once and then ignored by all other checks.
 */

import type { ApiMessage, Role } from '../context/payload.ts'
import {
  type Block,
  CACHE_MARKER_FIELD,
  countsAsImage,
  isBlankTextBlock,
  isBlock,
  isCacheDeletionBlock,
  isServerToolResult,
  isServerToolUse,
} from '../log/block.ts'
import { measureLongestSide } from '../log/image-size.ts'
import { countJsonBytes, isObject, type Json } from '../log/json.ts'
import type { AppendList } from '../log/persistent-collections.ts'
import type { CacheRules } from '../policy/provider-profile.ts'
import type {
  ParsedBlock,
  ParsedMessage,
  ParsedRequestFields,
  RawFields,
} from '../policy/provider-spelling.ts'
import type { CheckInput, ReportFinding } from './findings.ts'

/** Parses one message. Malformed blocks are reported and left out; the engine itself made the message that holds them. */
export function parseMessage(message: ApiMessage, index: number, report: ReportFinding): ParsedMessage {
  const path = `messages.${index}`
  const { role, content } = message
  const blocks = parseContent(content, `${path}.content`, report)
  const hasInner = blocks.some(({ inner }) => inner.length > 0)
  const all = hasInner ? blocks.flatMap((item) => [item, ...item.inner]) : blocks
  return { index, path, role, fields: message, blocks, all, isEmpty: content.length === 0 }
}

/** Parses the fields of a request around its messages. Reports malformed blocks of the system prompt. */
export function parseRequestFields(request: RawFields, { profile, report }: CheckInput): ParsedRequestFields {
  const { system, betas } = request
  const tools = toArray(request.tools)
  const { thinking, spelling } = profile
  const { thinkingMode = thinking.whenAbsent } = spelling.readSettings(request)
  const { summaryParameter } = spelling.checks
  const hasSystem = typeof system === 'string' || Array.isArray(system)
  return {
    raw: request,
    system: hasSystem ? parseContent(system, 'system', report) : [],
    tools,
    toolNames: new Set(tools.map((tool) => (isObject(tool) ? tool.name : undefined))),
    betas: toArray(betas),
    thinkingMode,
    asksSummary: summaryParameter !== null && request[summaryParameter] != null,
  }
}

/** Returns the array as a list, with gaps as undefined. Returns an empty list for a value that is not an array. */
export function toArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? Array.from(value) : []
}

/** Parses the content of a message or of the system prompt into blocks. An empty string gives no blocks. */
function parseContent(
  content: string | readonly unknown[],
  path: string,
  report: ReportFinding,
): readonly ParsedBlock[] {
  if (typeof content === 'string') {
    return content === '' ? [] : [{ path, block: { type: 'text', text: content }, inner: [] }]
  }
  return parseBlocks(content, path, report).map((item) => {
    // Blocks nested in a tool result are parsed one level deep, because the provider refuses a tool result inside a
    // tool result.
    const { type, content: inside } = item.block
    const holdsBlocks = type === 'tool_result' && Array.isArray(inside)
    return holdsBlocks ? { ...item, inner: parseBlocks(inside, `${item.path}.content`, report) } : item
  })
}

function parseBlocks(
  content: readonly unknown[],
  path: string,
  report: ReportFinding,
): readonly ParsedBlock[] {
  const parsed: ParsedBlock[] = []
  for (const [index, block] of content.entries()) {
    if (isBlock(block)) parsed.push({ path: `${path}.${index}`, block, inner: [] })
    else report('block-shape', `${path}.${index}`)
  }
  return parsed
}

/** A type that a field must have, in the tables of block fields and of context edit parameters. */
export interface FieldShape {
  readonly expected: string
  fits(value: unknown): boolean
}

export type FieldShapes = { readonly [field: string]: FieldShape }

export const isNonEmptyString = (value: unknown): value is string => typeof value === 'string' && value !== ''
export const stringShape: FieldShape = { expected: 'a string', fits: (value) => typeof value === 'string' }
export const flagShape: FieldShape = {
  expected: 'true or false',
  fits: (value) => typeof value === 'boolean',
}

/** Where a block occurs: in a message of a certain role, in the system prompt (`prompt`), or in a tool result (`result`). */
type Holder = Role | 'prompt' | 'result'

interface BlockRule {
  readonly fields: FieldShapes
  /** Where the provider accepts the block. If missing, it is accepted everywhere. */
  readonly holders?: readonly Holder[]
  /** The only fields that the block may have. If missing, the block may have any other field too. */
  readonly only?: readonly string[]
}

const filled: FieldShape = { expected: 'a string that is not empty', fits: isNonEmptyString }
const object: FieldShape = { expected: 'an object', fits: isObject }
const source: FieldShape = {
  expected: 'an object with a type, and with data and media_type where the type is base64',
  fits: (value) =>
    isObject(value) &&
    typeof value.type === 'string' &&
    (value.type !== 'base64' || (isNonEmptyString(value.data) && isNonEmptyString(value.media_type))),
}
const resultContent: FieldShape = {
  expected: 'a string or a list of blocks',
  fits: (value) => value == null || typeof value === 'string' || Array.isArray(value),
}
const optionalFlag: FieldShape = {
  expected: 'true or false',
  fits: (value) => value == null || typeof value === 'boolean',
}
const summary: FieldShape = {
  expected: 'a string that is not empty, or null',
  fits: (value) => value === null || isNonEmptyString(value),
}

const MEDIA: BlockRule = { fields: { source }, holders: ['user', 'assistant', 'result'] }
const TOOL_CHANGE: BlockRule = { fields: { tool: object }, holders: ['system'] }

const DELETION: BlockRule = { fields: {}, holders: ['user'] }

const BLOCK_RULES: ReadonlyMap<string, BlockRule> = new Map(
  Object.entries<BlockRule>({
    text: { fields: { text: stringShape } },
    thinking: { fields: { thinking: stringShape }, holders: ['assistant'] },
    redacted_thinking: { fields: { data: filled }, holders: ['assistant'] },
    tool_use: { fields: { id: stringShape, name: filled, input: object }, holders: ['assistant'] },
    tool_result: {
      fields: { tool_use_id: stringShape, content: resultContent, is_error: optionalFlag },
      holders: ['user'],
    },
    image: MEDIA,
    document: MEDIA,
    compaction: {
      fields: { content: summary },
      holders: ['user', 'assistant'],
      only: ['type', 'content', 'encrypted_content', 'signature', 'tool_changes', CACHE_MARKER_FIELD],
    },
    tool_addition: TOOL_CHANGE,
    tool_removal: TOOL_CHANGE,
  }),
)

/** Finds the rule for a block by its type. Server tool calls and results are recognised by the end of the type name. */
function findBlockRule({ block }: ParsedBlock): BlockRule | undefined {
  const known = isCacheDeletionBlock(block) ? DELETION : BLOCK_RULES.get(block.type)
  if (known !== undefined) return known
  const isServers = isServerToolUse(block) || isServerToolResult(block)
  const holders: Pick<BlockRule, 'holders'> = isServers ? { holders: ['assistant'] } : {}
  if (block.type.endsWith('_tool_use')) return { fields: { id: stringShape }, ...holders }
  return block.type.endsWith('_tool_result')
    ? { fields: { tool_use_id: stringShape }, ...holders }
    : undefined
}

/** Reports invalid fields of a block, blank text, and a block where it may not stand; also for blocks inside it. */
export function checkBlock(item: ParsedBlock, holder: Holder, rules: CheckInput): void {
  const { block, path } = item
  const { report } = rules
  const rule = findBlockRule(item)
  for (const [field, { expected, fits }] of Object.entries(rule?.fields ?? {})) {
    if (!fits(block[field])) report('block-field', `${path}.${field}`, expected)
  }
  for (const [field, value] of Object.entries(rule?.only === undefined ? {} : block)) {
    if (value === undefined || rule?.only?.includes(field)) continue
    report('block-field', `${path}.${field}`, `no ${field} on a ${block.type} block`)
  }
  if (isBlankTextBlock(block)) report('text-blank', path)
  if (rule?.holders !== undefined && !rule.holders.includes(holder)) {
    report('block-refused', path, `no ${block.type} block here, only in: ${rule.holders.join(', ')}`)
  } else {
    checkRefusedBlocks(item, holder, rules)
  }
  for (const inner of item.inner) checkBlock(inner, 'result', rules)
}

function checkRefusedBlocks(
  { block, path }: ParsedBlock,
  holder: Holder,
  { profile, report }: CheckInput,
): void {
  for (const { role, type, field } of profile.refusedBlocks) {
    if (role !== holder || type !== block.type || (field !== undefined && block[field] == null)) continue
    const [where, what] = field === undefined ? [path, `${type} block`] : [`${path}.${field}`, field]
    report('block-refused', where, `no ${what} in a message of role ${role}`)
  }
}

// The functions below check the limits on messages, bytes, images and image sizes.

/** Counts over the messages checked so far. */
export interface CheckedSizes {
  readonly messages: number
  /** UTF-8 bytes of all messages as JSON, without the commas between messages. */
  readonly bytes: number
  /** Number of images, including PDF documents. */
  readonly images: number
  /** Paths of images that are too large if the request has many images. */
  readonly large: AppendList<string>
}

/** Adds a message and its bytes to the counts. */
export function addMessageBytes(state: CheckedSizes, message: ApiMessage): CheckedSizes {
  return { ...state, messages: state.messages + 1, bytes: state.bytes + (countJsonBytes(message) ?? 0) }
}

/** Counts the images of a message and reports those that are too large for any request. */
export function checkAndCountImages(
  state: CheckedSizes,
  message: ParsedMessage,
  { profile: { sizes }, report }: CheckInput,
): CheckedSizes {
  let { images, large } = state
  for (const { block, path } of message.all) {
    if (!countsAsImage(block)) continue
    images += 1
    const side = measureLongestSide(block)
    if (side > sizes.imagePixels) {
      report('image-size', path, `at most ${sizes.imagePixels} pixels a side, found ${side}`)
    } else if (side > sizes.manyImagePixels) large = large.push(path)
  }
  return { ...state, images, large }
}

const MARKER_FIELD_BYTES = `,"${CACHE_MARKER_FIELD}":`.length

/** Checks the totals of the request against the limits. `placed`: cache markers that are not in the byte count yet. */
export function checkSizeLimits(
  { messages, bytes, images, large }: CheckedSizes,
  request: ParsedRequestFields,
  placed: readonly PlacedMarker[],
  { profile: { sizes }, report }: CheckInput,
): void {
  if (messages > sizes.messages) {
    report('message-count', 'messages', `at most ${sizes.messages} messages, found ${messages}`)
  }
  if (images > sizes.images) {
    report('image-count', 'messages', `at most ${sizes.images} images, found ${images}`)
  }
  if (images > sizes.manyImages) {
    const expected = `at most ${sizes.manyImagePixels} pixels a side among more than ${sizes.manyImages} images`
    for (const path of large) report('many-image-size', path, expected)
  }
  const around = countJsonBytes({ ...request.raw, betas: undefined, messages: [] })
  const added = placed.reduce(
    (sum, { control }) => sum + MARKER_FIELD_BYTES + (countJsonBytes(control) ?? 0),
    0,
  )
  const total = (around ?? 0) + bytes + Math.max(0, messages - 1) + added
  if (total > sizes.bodyBytes) {
    report('body-size', '', `at most ${sizes.bodyBytes} bytes of JSON, found ${total}`)
  }
}

/** True if the provider takes a cache marker on the block. */
export function canCarryMarker(block: Block, { unmarkable }: CacheRules): boolean {
  return !unmarkable.includes(block.type) && !isBlankTextBlock(block)
}

/** True for a system message that applies to one turn only (`clear_at: 'next_user_message'`). */
export function isTurnScopedMessage({ role, clear_at: clearAt }: RawFields): boolean {
  return role === 'system' && clearAt === 'next_user_message'
}

/** A cache marker to add to a block without one. The message's content must be a list of blocks. */
export interface PlacedMarker {
  readonly message: ApiMessage
  /** Index of the message in the request's messages. */
  readonly index: number
  /** Index of the block in the message's content. */
  readonly block: number
  readonly control: Json
}

// The functions below check the system prompt and the tools of a request, and which tool it asks for.

/** Reports faults of the system prompt, the tools and the tool choice. */
export function checkPromptAndTools(request: ParsedRequestFields, rules: CheckInput): void {
  for (const item of request.system) checkBlock(item, 'prompt', rules)
  checkTools(request, rules)
  checkToolChoice(request, rules)
}

function checkTools({ raw, tools }: ParsedRequestFields, { profile, report }: CheckInput): void {
  if (raw.tools != null && !Array.isArray(raw.tools)) report('tools-shape', 'tools', 'a list of tools')
  const names = new Set<unknown>()
  let deferred = 0
  for (const [index, tool] of tools.entries()) {
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
  { profile, report }: CheckInput,
): void {
  const isOwn = type == null || type === 'custom'
  const pattern = profile.tools.namePattern
  const isNamed = typeof name === 'string' && new RegExp(pattern).test(name)
  if ((isOwn || name != null) && !isNamed) {
    report('tool-name', `${path}.name`, `a name that matches ${pattern}`)
  }
  const hasSchema = isObject(input_schema) && input_schema.type === 'object'
  if (isOwn && !hasSchema) report('tool-schema', `${path}.input_schema`)
}

const TOOL_CHOICES: readonly unknown[] = ['auto', 'any', 'tool', 'none']

/** True if the request makes the model call a tool. */
export function hasForcedToolChoice({ tool_choice: choice }: RawFields): boolean {
  return isObject(choice) && (choice.type === 'any' || choice.type === 'tool')
}

function checkToolChoice(request: ParsedRequestFields, { profile, report }: CheckInput): void {
  const choice = request.raw.tool_choice
  if (choice == null) return
  if (!isObject(choice) || !TOOL_CHOICES.includes(choice.type)) {
    report('tool-choice', 'tool_choice', `an object of type ${TOOL_CHOICES.join(', ')}`)
    return
  }
  const isNamed = typeof choice.name === 'string' && request.toolNames.has(choice.name)
  if (request.tools.length === 0) report('tool-choice', 'tool_choice')
  else if (choice.type === 'tool' && !isNamed) {
    report('tool-choice', 'tool_choice.name', 'the name of a declared tool')
  }
  const isFree = profile.thinking.unforcedInModes.some((unforced) => unforced === request.thinkingMode)
  if (hasForcedToolChoice(request.raw) && (profile.tools.forcedChoice === 'refused' || isFree)) {
    report('tool-choice-forced', 'tool_choice.type')
  }
}
