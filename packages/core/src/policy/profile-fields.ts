/** Every field of a profile: the strictest value anybody needs, beside what it may hold. */
import { type Check, count, flag, listOf, name, oneOf, orNull } from './check.ts'
import { type Field, type Fields, field } from './field.ts'
import type { BetaRule, BlockRefusal, CacheTtl, Profile, ThinkingMode } from './profile.ts'

const mode: Check<ThinkingMode> = oneOf('enabled', 'adaptive', 'between_tools', 'disabled')
const role: Check<BlockRefusal['role']> = oneOf('user', 'assistant', 'system')
const place: Check<BetaRule['where']> = oneOf('field', 'message-field', 'block', 'edit')

const names = (...fallback: readonly string[]): Field<readonly string[]> => field(fallback, listOf(name()))
const modes = (...fallback: readonly ThinkingMode[]): Field<readonly ThinkingMode[]> =>
  field(fallback, listOf(mode))

/** What a record of strings, lists and numbers looks like, field by field; `optional` ones may be missing. */
function shape<T>(
  fields: { readonly [key: string]: Check<unknown> },
  optional: readonly string[] = [],
): Check<T> {
  const required = Object.keys(fields).filter((key) => !optional.includes(key))
  const accepts = (value: unknown): value is T =>
    typeof value === 'object' &&
    value !== null &&
    required.every((key) => Object.hasOwn(value, key)) &&
    Object.entries(value).every(([key, part]) => Object.hasOwn(fields, key) && fields[key]?.accepts(part))
  return { allowed: `an object with ${Object.keys(fields).join(', ')}`, accepts }
}

const pattern: Check<string> = {
  allowed: 'the source of a regular expression',
  accepts: (value): value is string => typeof value === 'string' && compiles(value),
}

function compiles(source: string): boolean {
  try {
    new RegExp(source)
    return source !== ''
  } catch {
    return false
  }
}

const ttl = shape<CacheTtl>({ name: name(), seconds: count(1) })
const betaRule = shape<BetaRule>({ where: place, name: name(), betas: listOf(name()) })
const blockRefusal = shape<BlockRefusal>({ role, type: name(), field: name() }, ['field'])

export const profileFields: Fields<Profile> = {
  name: field('strict', name()),
  window: field<number | null>(null, orNull(count(1))),
  maxOutput: field<number | null>(null, orNull(count(1))),
  maxOutputRequired: field(true, flag()),
  roles: {
    first: field('user', oneOf('user', 'any')),
    consecutive: field('refused', oneOf('merged', 'refused')),
    prefill: field('refused', oneOf('allowed', 'refused')),
    system: field('refused', oneOf('placed', 'refused')),
    turnScoped: field(false, flag()),
    messageEffort: field(false, flag()),
  },
  tools: {
    namePattern: field('^[a-zA-Z0-9_-]{1,64}$', pattern),
    idPattern: field('^[a-zA-Z0-9_-]+$', pattern),
    resultsFirst: field(true, flag()),
    declaredWhenUsed: field(true, flag()),
    forcedChoice: field('refused', oneOf('allowed', 'refused')),
  },
  thinking: {
    modes: modes('enabled', 'adaptive', 'disabled'),
    whenAbsent: field('disabled', mode),
    minimumBudget: field(1024, count()),
    budgetOverBetas: names(),
    firstInModes: modes('enabled'),
    unforcedInModes: modes('enabled'),
    disabledEfforts: field<readonly string[] | null>(null, orNull(listOf(name()))),
    closing: field('never', oneOf('never', 'not-at-end', 'allowed')),
    signed: field(true, flag()),
    binding: field('prefix', oneOf('none', 'model', 'prefix')),
    stripsFinishedTurns: field(false, flag()),
  },
  cache: {
    maxMarkers: field(4, count()),
    ttls: field<readonly CacheTtl[]>(
      [
        { name: '1h', seconds: 3600 },
        { name: '5m', seconds: 300 },
      ],
      listOf(ttl),
    ),
    defaultTtl: field('5m', name()),
    unmarkable: names('thinking', 'redacted_thinking', 'cache_edits'),
    automatic: field(false, flag()),
    scopes: names(),
    minimumTokens: field<number | null>(null, orNull(count())),
    lookBack: field(20, count(1)),
    collapsesToolRuns: field(false, flag()),
  },
  sizes: {
    bodyBytes: field(32_000_000, count(1)),
    deferredTools: field(10_000, count()),
    messages: field(100_000, count(1)),
    images: field(100, count()),
    imagePixels: field(8000, count(1)),
    manyImages: field(20, count()),
    manyImagePixels: field(2000, count(1)),
  },
  contextEdits: {
    clearThinking: field<string | null>(null, orNull(name())),
    clearToolUses: field<string | null>(null, orNull(name())),
    compact: field<string | null>(null, orNull(name())),
    minimumCompactTrigger: field(50_000, count()),
  },
  compaction: {
    blocks: field(false, flag()),
    onDemand: field(false, flag()),
    beta: field<string | null>(null, orNull(name())),
    maxInstructionCharacters: field(16_384, count(1)),
    notWithRequest: names(
      'context_management',
      'stop_sequences',
      'output_config.format',
      'output_config.task_budget.remaining',
      'thread',
    ),
    notWithBlock: names('output_config.task_budget.remaining'),
  },
  capabilities: {
    cacheEdits: field(false, flag()),
    cacheDiagnostics: field(false, flag()),
    toolChanges: field(false, flag()),
    prewarm: field(false, flag()),
  },
  betas: field<readonly BetaRule[]>([], listOf(betaRule)),
  refusedFields: names(),
  refusedBlocks: field<readonly BlockRefusal[]>(
    [
      { role: 'assistant', type: 'image' },
      { role: 'assistant', type: 'document' },
    ],
    listOf(blockRefusal),
  ),
}
