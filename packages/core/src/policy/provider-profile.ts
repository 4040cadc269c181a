/**
 * Provider profiles: data about what a provider and model support, and which rules their API requests must follow. The
 * profiles of real providers are in the package `wire`.
 */
import { TidemarkError } from '../errors.ts'
import {
  booleanCheck,
  choiceCheck,
  createFieldProblem,
  type DeepPartial,
  type FieldCheck,
  type FieldProblem,
  type FieldSpec,
  type FieldSpecs,
  fieldSpec,
  nonBlankCheck,
  nullableCheck,
  readFields,
  uniqueListCheck,
  wholeNumberCheck,
} from './policy-fields.ts'
import type { ProviderSpelling } from './provider-spelling.ts'

/** The rules of a provider, and how it spells what the engine asks for. */
export interface ProviderProfile extends ProviderRules {
  readonly spelling: ProviderSpelling<ProviderProfile>
}

interface ProviderRules {
  /** Name of the profile. Only shown in findings and events. */
  readonly name: string
  /** Who makes the opaque items of responses (encrypted reasoning). Items of another origin are not sent. */
  readonly origin: OriginRules
  /** Size of the context window in tokens; null if unknown. */
  readonly window: number | null
  /** Largest number of output tokens that a request may ask for; null if unknown (it is then not checked). */
  readonly maxOutput: number | null
  /** True if every API request must limit its output tokens. */
  readonly maxOutputRequired: boolean
  readonly roles: RoleRules
  readonly tools: ToolRules
  readonly thinking: ThinkingRules
  readonly cache: CacheRules
  readonly sizes: ProviderSizeRules
  /** Context edits that the provider supports. */
  readonly contextEdits: ContextEditRules
  /** Rules for summaries that the provider writes (`compaction`). */
  readonly compaction: CompactionRules
  readonly capabilities: ProviderCapabilities
  /** Request fields, blocks and context edits that the provider refuses unless a beta is enabled. */
  readonly betas: readonly BetaRule[]
  /** Dotted paths of API request fields that are always refused (such as `temperature`). */
  readonly refusedFields: readonly string[]
  readonly refusedBlocks: readonly RefusedBlock[]
}

interface OriginRules {
  /** Null if blocks of this provider have no origin. */
  readonly vendor: string | null
  /** Name of the account, if items are bound to it. */
  readonly account: string | null
}

interface RoleRules {
  /** Allowed role of the first message. A first message with a compaction block may have either role. */
  readonly first: 'user' | 'any'
  /** Whether the provider merges consecutive messages of the same role into one turn or refuses them. */
  readonly consecutive: 'merged' | 'refused'
  /** Whether the last message may be a prefilled assistant message. A turn that the provider paused is not a prefill. */
  readonly prefill: 'allowed' | 'refused'
  /** Whether mid-conversation system messages are allowed (only in certain places) or refused. */
  readonly system: 'placed' | 'refused'
  /** Whether a mid-conversation system message may have `clear_at`. */
  readonly turnScoped: boolean
  /** Whether a mid-conversation system message may set the effort. */
  readonly messageEffort: boolean
}

interface ToolRules {
  /** Regular expression that every tool name must match. */
  readonly namePattern: string
  /** Regular expression that the id of every tool call and tool result must match. */
  readonly idPattern: string
  /** True if tool results must come before all other blocks of their message. */
  readonly resultsFirst: boolean
  /** True if an API request must declare at least one tool whenever its messages contain tool blocks. */
  readonly declaredWhenUsed: boolean
  /** Whether `tool_choice` may force a tool call (type `any` or `tool`). */
  readonly forcedChoice: 'allowed' | 'refused'
}

/** Modes of thinking, in the neutral form; a model has some of them. */
export type ThinkingMode = 'enabled' | 'adaptive' | 'between_tools' | 'disabled'

interface ThinkingRules {
  readonly modes: readonly ThinkingMode[]
  /** Thinking mode that applies if an API request has no `thinking` field. */
  readonly whenAbsent: ThinkingMode
  /** Fewest tokens that may be set as a thinking budget. */
  readonly minimumBudget: number
  /** Names of betas that allow a thinking budget above the limit of output tokens. */
  readonly budgetOverBetas: readonly string[]
  /** Thinking modes in which an unfinished assistant turn must begin with a thinking block. */
  readonly firstInModes: readonly ThinkingMode[]
  /** Thinking modes in which `tool_choice` may not force a tool call. */
  readonly unforcedInModes: readonly ThinkingMode[]
  /** Effort levels at which thinking may be `disabled`; null if it may be at every effort level. */
  readonly disabledEfforts: readonly string[] | null
  /** Where an assistant turn may end with a thinking block: nowhere, anywhere but in the last message, or anywhere. */
  readonly closing: 'never' | 'not-at-end' | 'allowed'
  /** True if every thinking block must have a signature. */
  readonly signed: boolean
  /** What the signature of a thinking block covers: nothing, the model, or the model and every byte before the block. */
  readonly binding: 'none' | 'model' | 'prefix'
  /** True if the provider drops the thinking of finished turns. It then no longer counts toward the context window. */
  readonly stripsFinishedTurns: boolean
}

export interface CacheRules {
  /**
   * Which prefixes the provider caches. `markers`: those that end at a cache marker. `breakpoints`: also the whole
   * prompt, without a marker. `prefix`: any beginning of a prompt, without markers and without a promise to keep it.
   */
  readonly kind: 'markers' | 'breakpoints' | 'prefix'
  /** A cached prefix is read in multiples of this many tokens. */
  readonly stepTokens: number
  /** Idle seconds after which a cached prefix may be gone before its lifetime ends; null if it always lives that long. */
  readonly softSeconds: number | null
  readonly maxMarkers: number
  /** Lifetimes that a cache marker can request, longest first. Later markers may not request longer ones. */
  readonly ttls: readonly CacheTtl[]
  /** Name of the cache lifetime that applies to a cache marker without `ttl`. */
  readonly defaultTtl: string
  /** Block types that cannot have a cache marker. A blank text block never can. */
  readonly unmarkable: readonly string[]
  /** True if an API request may have a marker of its own, which applies to the last block that can be marked. */
  readonly automatic: boolean
  /** Allowed values of `scope` on a cache marker. */
  readonly scopes: readonly string[]
  /** Minimum tokens of a prefix that the provider caches; null if unknown. */
  readonly minimumTokens: number | null
  /** Number of blocks, up to and with the marked one, in which the provider looks for an older cache entry. */
  readonly lookBack: number
  /** True if consecutive tool calls count as one block in that search, and consecutive tool results as one block. */
  readonly collapsesToolRuns: boolean
}

export interface CacheTtl {
  readonly name: string
  readonly seconds: number
}

export interface ProviderSizeRules {
  /** Maximum size of the API request's JSON, in UTF-8 bytes. */
  readonly bodyBytes: number
  /** Maximum number of tools whose loading is deferred. */
  readonly deferredTools: number
  readonly messages: number
  /** Maximum number of images; each PDF document counts as one. */
  readonly images: number
  /** Maximum length of an image's longer side, in pixels. */
  readonly imagePixels: number
  /** If a request has more images than this, each side of an image may have at most `manyImagePixels` pixels. */
  readonly manyImages: number
  readonly manyImagePixels: number
}

/** The provider's names for context edits; null if unsupported. If all are null, it refuses context edits. */
export interface ContextEditRules {
  readonly clearThinking: string | null
  readonly clearToolUses: string | null
  readonly compact: string | null
  /** Smallest number of input tokens that may be set as the trigger of the `compact` edit. */
  readonly minimumCompactTrigger: number
}

interface CompactionRules {
  /** True if messages may contain `compaction` blocks. Only one may be signed, and it must be the very first block. */
  readonly blocks: boolean
  /** True if an API request may have the field `compaction`, which asks the provider for a summary. */
  readonly onDemand: boolean
  /** Beta required for the request field `compaction` and for signed compaction blocks; null if none is required. */
  readonly beta: string | null
  readonly maxInstructionCharacters: number
  /** Dotted paths of fields that are not allowed on an API request with `compaction`. */
  readonly notWithRequest: readonly string[]
  /** Dotted paths of fields that are not allowed on an API request with a signed compaction block. */
  readonly notWithBlock: readonly string[]
}

interface ProviderCapabilities {
  /** Support for deletions from the cached prefix. They are undocumented, so this is off by default. */
  readonly cacheEdits: boolean
  /** True if a request is refused whose prompt and output limit together are larger than the context window. */
  readonly countsMaxTokens: boolean
  /** Support for asking the provider to explain a cache miss. */
  readonly cacheDiagnostics: boolean
  /** Support for `tool_addition` and `tool_removal` blocks in a system message. */
  readonly toolChanges: boolean
  /** Support for a limit of 0 output tokens, which writes the prompt to the cache without generating a response. */
  readonly prewarm: boolean
  /**
   * What the provider does with a prompt that is too long. `unsure`: it may drop the beginning in silence and answer,
   * as local servers do. `dropped`: it has been seen to do so.
   */
  readonly tooLong: 'refused' | 'unsure' | 'dropped'
}

/** A field, block or context edit that is refused unless one of `betas` is enabled. */
export interface BetaRule {
  /** What `name` names: a request field (a dotted path), a message field, a block type, or a type of context edit. */
  readonly where: 'field' | 'message-field' | 'block' | 'edit'
  readonly name: string
  readonly betas: readonly string[]
}

/** A block type, or one field of a block type, that messages of a certain role may not contain. */
interface RefusedBlock {
  readonly role: 'user' | 'assistant' | 'system'
  readonly type: string
  readonly field?: string
}

// A table of every field of a provider profile, with its strictest value as default, and its check.

const thinkingMode: FieldCheck<ThinkingMode> = choiceCheck('enabled', 'adaptive', 'between_tools', 'disabled')
const messageRole: FieldCheck<RefusedBlock['role']> = choiceCheck('user', 'assistant', 'system')
const betaPlace: FieldCheck<BetaRule['where']> = choiceCheck('field', 'message-field', 'block', 'edit')

const nameList = (...fallback: readonly string[]): FieldSpec<readonly string[]> =>
  fieldSpec(fallback, uniqueListCheck(nonBlankCheck()))
const modeList = (...fallback: readonly ThinkingMode[]): FieldSpec<readonly ThinkingMode[]> =>
  fieldSpec(fallback, uniqueListCheck(thinkingMode))

/** Accepts an object with exactly these fields; the fields in `optional` may be missing. */
function objectWith<T>(
  fields: { readonly [key: string]: FieldCheck<unknown> },
  optional: readonly string[] = [],
): FieldCheck<T> {
  const required = Object.keys(fields).filter((key) => !optional.includes(key))
  const accepts = (value: unknown): value is T =>
    typeof value === 'object' &&
    value !== null &&
    required.every((key) => Object.hasOwn(value, key)) &&
    Object.entries(value).every(([key, part]) => Object.hasOwn(fields, key) && fields[key]?.accepts(part))
  return { allowed: `an object with ${Object.keys(fields).join(', ')}`, accepts }
}

const regexSource: FieldCheck<string> = {
  allowed: 'the source of a regular expression',
  accepts: (value): value is string => {
    if (typeof value !== 'string' || value === '') return false
    try {
      new RegExp(value)
      return true
    } catch {
      return false
    }
  },
}

const ttl = objectWith<CacheTtl>({ name: nonBlankCheck(), seconds: wholeNumberCheck(1) })
const betaRule = objectWith<BetaRule>({
  where: betaPlace,
  name: nonBlankCheck(),
  betas: uniqueListCheck(nonBlankCheck()),
})
const blockRefusal = objectWith<RefusedBlock>(
  { role: messageRole, type: nonBlankCheck(), field: nonBlankCheck() },
  ['field'],
)

const profileFields: FieldSpecs<ProviderRules> = {
  name: fieldSpec('strict', nonBlankCheck()),
  origin: {
    vendor: fieldSpec<string | null>(null, nullableCheck(nonBlankCheck())),
    account: fieldSpec<string | null>(null, nullableCheck(nonBlankCheck())),
  },
  window: fieldSpec<number | null>(null, nullableCheck(wholeNumberCheck(1))),
  maxOutput: fieldSpec<number | null>(null, nullableCheck(wholeNumberCheck(1))),
  maxOutputRequired: fieldSpec(true, booleanCheck()),
  roles: {
    first: fieldSpec('user', choiceCheck('user', 'any')),
    consecutive: fieldSpec('refused', choiceCheck('merged', 'refused')),
    prefill: fieldSpec('refused', choiceCheck('allowed', 'refused')),
    system: fieldSpec('refused', choiceCheck('placed', 'refused')),
    turnScoped: fieldSpec(false, booleanCheck()),
    messageEffort: fieldSpec(false, booleanCheck()),
  },
  tools: {
    namePattern: fieldSpec('^[a-zA-Z0-9_-]{1,64}$', regexSource),
    idPattern: fieldSpec('^[a-zA-Z0-9_-]+$', regexSource),
    resultsFirst: fieldSpec(true, booleanCheck()),
    declaredWhenUsed: fieldSpec(true, booleanCheck()),
    forcedChoice: fieldSpec('refused', choiceCheck('allowed', 'refused')),
  },
  thinking: {
    modes: modeList('enabled', 'adaptive', 'disabled'),
    whenAbsent: fieldSpec('disabled', thinkingMode),
    minimumBudget: fieldSpec(1024, wholeNumberCheck()),
    budgetOverBetas: nameList(),
    firstInModes: modeList('enabled'),
    unforcedInModes: modeList('enabled'),
    disabledEfforts: fieldSpec<readonly string[] | null>(
      null,
      nullableCheck(uniqueListCheck(nonBlankCheck())),
    ),
    closing: fieldSpec('never', choiceCheck('never', 'not-at-end', 'allowed')),
    signed: fieldSpec(true, booleanCheck()),
    binding: fieldSpec('prefix', choiceCheck('none', 'model', 'prefix')),
    stripsFinishedTurns: fieldSpec(false, booleanCheck()),
  },
  cache: {
    kind: fieldSpec('markers', choiceCheck('markers', 'breakpoints', 'prefix')),
    stepTokens: fieldSpec(1, wholeNumberCheck(1)),
    softSeconds: fieldSpec<number | null>(null, nullableCheck(wholeNumberCheck(1))),
    maxMarkers: fieldSpec(4, wholeNumberCheck()),
    ttls: fieldSpec<readonly CacheTtl[]>(
      [
        { name: 'long', seconds: 3600 },
        { name: 'short', seconds: 300 },
      ],
      uniqueListCheck(ttl),
    ),
    defaultTtl: fieldSpec('short', nonBlankCheck()),
    unmarkable: nameList('thinking', 'redacted_thinking'),
    automatic: fieldSpec(false, booleanCheck()),
    scopes: nameList(),
    minimumTokens: fieldSpec<number | null>(null, nullableCheck(wholeNumberCheck())),
    lookBack: fieldSpec(20, wholeNumberCheck(1)),
    collapsesToolRuns: fieldSpec(false, booleanCheck()),
  },
  sizes: {
    bodyBytes: fieldSpec(32_000_000, wholeNumberCheck(1)),
    deferredTools: fieldSpec(10_000, wholeNumberCheck()),
    messages: fieldSpec(100_000, wholeNumberCheck(1)),
    images: fieldSpec(100, wholeNumberCheck()),
    imagePixels: fieldSpec(8000, wholeNumberCheck(1)),
    manyImages: fieldSpec(20, wholeNumberCheck()),
    manyImagePixels: fieldSpec(2000, wholeNumberCheck(1)),
  },
  contextEdits: {
    clearThinking: fieldSpec<string | null>(null, nullableCheck(nonBlankCheck())),
    clearToolUses: fieldSpec<string | null>(null, nullableCheck(nonBlankCheck())),
    compact: fieldSpec<string | null>(null, nullableCheck(nonBlankCheck())),
    minimumCompactTrigger: fieldSpec(50_000, wholeNumberCheck()),
  },
  compaction: {
    blocks: fieldSpec(false, booleanCheck()),
    onDemand: fieldSpec(false, booleanCheck()),
    beta: fieldSpec<string | null>(null, nullableCheck(nonBlankCheck())),
    maxInstructionCharacters: fieldSpec(16_384, wholeNumberCheck(1)),
    notWithRequest: nameList(),
    notWithBlock: nameList(),
  },
  capabilities: {
    cacheEdits: fieldSpec(false, booleanCheck()),
    countsMaxTokens: fieldSpec(false, booleanCheck()),
    cacheDiagnostics: fieldSpec(false, booleanCheck()),
    toolChanges: fieldSpec(false, booleanCheck()),
    prewarm: fieldSpec(false, booleanCheck()),
    tooLong: fieldSpec<ProviderCapabilities['tooLong']>(
      'refused',
      choiceCheck('refused', 'unsure', 'dropped'),
    ),
  },
  betas: fieldSpec<readonly BetaRule[]>([], uniqueListCheck(betaRule)),
  refusedFields: nameList(),
  refusedBlocks: fieldSpec<readonly RefusedBlock[]>(
    [
      { role: 'assistant', type: 'image' },
      { role: 'assistant', type: 'document' },
    ],
    uniqueListCheck(blockRefusal),
  ),
}

/** Fields of a profile that differ from the strictest one, at any depth. */
export type ProviderProfileOverrides = DeepPartial<ProviderRules>

/**
 * Returns the strictest provider profile with `overrides` applied. A given list replaces the whole list. Throws
 * `bad-profile` for unknown or invalid fields, which `details.problems` lists.
 */
export function defineProviderProfile({
  spelling,
  ...overrides
}: ProviderProfileOverrides & Pick<ProviderProfile, 'spelling'>): ProviderProfile {
  const { value, problems } = readFields(profileFields, overrides)
  const profile = Object.freeze({ ...(value as ProviderRules), spelling })
  const found = problems.length > 0 ? problems : findContradictions(profile)
  if (found.length > 0) {
    const list = found.map(({ message }) => message).join('; ')
    throw new TidemarkError('bad-profile', `This profile cannot be used. ${list}.`, {
      details: { problems: found },
    })
  }
  return profile
}

/** Returns the profile fields whose values contradict each other. */
function findContradictions({ cache, thinking, sizes }: ProviderRules): readonly FieldProblem[] {
  const { ttls, defaultTtl } = cache
  const names = ttls.map((ttl) => ttl.name)
  const isSorted = ttls.every(
    ({ seconds }, index) => seconds < (ttls[index - 1]?.seconds ?? Number.POSITIVE_INFINITY),
  )
  const rules: readonly (readonly [holds: boolean, path: string, value: unknown, allowed: string])[] = [
    [
      names.includes(defaultTtl),
      'cache.defaultTtl',
      defaultTtl,
      `the name of one of cache.ttls (${names.join(', ')})`,
    ],
    [isSorted, 'cache.ttls', ttls, 'lifetimes in order, the longest first'],
    [new Set(names).size === names.length, 'cache.ttls', ttls, 'a name for each lifetime'],
    [
      thinking.modes.includes(thinking.whenAbsent),
      'thinking.whenAbsent',
      thinking.whenAbsent,
      'one of thinking.modes',
    ],
    [
      sizes.manyImagePixels <= sizes.imagePixels,
      'sizes.manyImagePixels',
      sizes.manyImagePixels,
      'at most sizes.imagePixels',
    ],
  ]
  return rules.flatMap(([holds, path, value, allowed]) =>
    holds ? [] : [createFieldProblem(path, value, allowed)],
  )
}
