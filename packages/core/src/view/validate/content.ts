/** What each block must be in itself: the fields of known types, no blank text, and a place where its type may stand. */
import { type Block, isBlankText, isServerToolResult, isServerToolUse } from '../../conversation/block.ts'
import { isObject } from '../../conversation/json.ts'
import type { BlockRefusal, Profile } from '../../policy/profile.ts'
import type { Role } from '../payload.ts'
import { isAbsent, type Report } from './finding.ts'
import type { ReadBlock } from './read.ts'

/** A message of a role, the system prompt, or a tool result. */
export type Holder = Role | 'prompt' | 'result'

export interface ContentRules {
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
