import { TidemarkError } from '../errors.ts'
import {
  type Check,
  count,
  type DeepPartial,
  type Field,
  type Fields,
  field,
  flag,
  listOf,
  name,
  oneOf,
  orNull,
  type Problem,
  problem,
  readFields,
} from './policy-fields.ts'

/**
 * What a provider and model can do and which rules its requests obey, as plain JSON-safe data. The concrete
 * ones live with the codecs; `strictProfile` and `createProfile` are in `strict-profile.ts`.
 */
export interface Profile {
  /** Said in findings and events; carries no meaning. */
  readonly name: string
  /** Context window in tokens; null where nobody has said. */
  readonly window: number | null
  /** Largest `max_tokens`; null where nobody has said, and then nothing is checked against it. */
  readonly maxOutput: number | null
  /** A request must say how long its answer may be (`max_tokens`). */
  readonly maxOutputRequired: boolean
  readonly roles: RoleRules
  readonly tools: ToolRules
  readonly thinking: ThinkingRules
  readonly cache: CacheRules
  readonly sizes: SizeRules
  /** What the provider can be asked to edit by itself (`context_management`). */
  readonly contextEdits: ContextEditRules
  /** The provider's own summaries. */
  readonly compaction: CompactionRules
  readonly capabilities: Capabilities
  /** What is refused unless a beta is named. */
  readonly betas: readonly BetaRule[]
  /** Dotted paths of request fields that are refused outright (`temperature`, `output_config.format`). */
  readonly refusedFields: readonly string[]
  readonly refusedBlocks: readonly BlockRefusal[]
}

interface RoleRules {
  /** Who may speak first. A compaction block at the very start may have either role. */
  readonly first: 'user' | 'any'
  /** Messages of one role in a row are one turn, or an error. */
  readonly consecutive: 'merged' | 'refused'
  /** Whether the last message may be the beginning of the model's own answer. A paused turn is not one. */
  readonly prefill: 'allowed' | 'refused'
  /** System messages in mid-conversation: in the places they may stand, or not at all. */
  readonly system: 'placed' | 'refused'
  /** `clear_at` on such a message. */
  readonly turnScoped: boolean
  /** `output_config` on such a message. */
  readonly messageEffort: boolean
}

interface ToolRules {
  /** Source of a regular expression that every declared name matches. */
  readonly namePattern: string
  /** Source of a regular expression that the id of every call and result matches. */
  readonly idPattern: string
  /** The results of a turn come before anything else in the message that answers it. */
  readonly resultsFirst: boolean
  /** Messages that hold tool blocks need at least one declared tool. */
  readonly declaredWhenUsed: boolean
  /** `tool_choice` of type `any` or `tool`. */
  readonly forcedChoice: 'allowed' | 'refused'
}

export type ThinkingMode = 'enabled' | 'adaptive' | 'between_tools' | 'disabled'

export interface ThinkingRules {
  readonly modes: readonly ThinkingMode[]
  /** The mode of a request that does not say. */
  readonly whenAbsent: ThinkingMode
  readonly minimumBudget: number
  /** With one of these betas the budget may be larger than `max_tokens`. */
  readonly budgetOverBetas: readonly string[]
  /** Modes in which the model's unfinished turn must begin with thinking. */
  readonly firstInModes: readonly ThinkingMode[]
  /** Modes in which `tool_choice` may not force a call. */
  readonly unforcedInModes: readonly ThinkingMode[]
  /** Efforts at which `disabled` is accepted; null: at any. */
  readonly disabledEfforts: readonly string[] | null
  /** May a turn of the model's end in thinking? Never, anywhere but at the end of the request, or at will. */
  readonly closing: 'never' | 'not-at-end' | 'allowed'
  /** Every thinking block carries a signature. */
  readonly signed: boolean
  /** What a thinking block is bound to: nothing, the model, or every byte before it as well. */
  readonly binding: 'none' | 'model' | 'prefix'
  /** The provider leaves out the thinking of finished turns, so it leaves the count. */
  readonly stripsFinishedTurns: boolean
}

export interface CacheRules {
  readonly maxMarkers: number
  /** Lifetimes a marker can ask for, longest first: along a request they may only grow shorter. */
  readonly ttls: readonly CacheTtl[]
  /** The lifetime of a marker that does not say. */
  readonly defaultTtl: string
  /** Block types that cannot carry a marker. Blank text never can. */
  readonly unmarkable: readonly string[]
  /** `cache_control` on the request itself, which marks the last block that can carry one. */
  readonly automatic: boolean
  /** `scope` on a marker. */
  readonly scopes: readonly string[]
  /** Shortest prefix that is kept; null where unknown. */
  readonly minimumTokens: number | null
  /** Positions a marker looks back for an older entry, its own included. */
  readonly lookBack: number
  /** Calls in a row count as one position, and so do results in a row. */
  readonly collapsesToolRuns: boolean
}

export interface CacheTtl {
  readonly name: string
  readonly seconds: number
}

export interface SizeRules {
  /** UTF-8 bytes of the request's JSON. */
  readonly bodyBytes: number
  /** Tools whose loading is deferred. */
  readonly deferredTools: number
  readonly messages: number
  /** Images, and PDF documents counted as the one page each has at least. */
  readonly images: number
  /** Longest side of an image. */
  readonly imagePixels: number
  /** Above so many images each side is at most `manyImagePixels`. */
  readonly manyImages: number
  readonly manyImagePixels: number
}

/** The provider's names for the edits; null for one it does not know. All null: `context_management` is refused. */
export interface ContextEditRules {
  readonly clearThinking: string | null
  readonly clearToolUses: string | null
  readonly compact: string | null
  /** Smallest trigger of `compact`, in input tokens. */
  readonly minimumCompactTrigger: number
}

interface CompactionRules {
  /** `compaction` blocks in messages. A signed one stands first and alone; others in any of the model's messages. */
  readonly blocks: boolean
  /** `compaction` on a request: a summary on demand. */
  readonly onDemand: boolean
  /** The beta that a summary on demand, and every request that carries a signed block, must name. */
  readonly beta: string | null
  readonly maxInstructionCharacters: number
  /** Dotted paths of fields that may not stand beside `compaction`. */
  readonly notWithRequest: readonly string[]
  /** Dotted paths of fields that may not stand beside a signed block. */
  readonly notWithBlock: readonly string[]
}

interface Capabilities {
  /** `cache_edits` blocks and `cache_reference`: undocumented, so off unless somebody knows better. */
  readonly cacheEdits: boolean
  /** `diagnostics` on a request. */
  readonly cacheDiagnostics: boolean
  /** `tool_addition` and `tool_removal` in a system message. */
  readonly toolChanges: boolean
  /** `max_tokens: 0`, which fills the cache and answers nothing. */
  readonly prewarm: boolean
}

/** A thing that is refused unless one of `betas` is in force. */
export interface BetaRule {
  /** A field of the request (a dotted path), a field of a message, a type of block, a type of context edit. */
  readonly where: 'field' | 'message-field' | 'block' | 'edit'
  readonly name: string
  readonly betas: readonly string[]
}

/** A block type, or one field of it, that messages of a role may not carry. */
export interface BlockRefusal {
  readonly role: 'user' | 'assistant' | 'system'
  readonly type: string
  readonly field?: string
}

// Every field of a profile: the strictest value anybody needs, beside what it may hold.

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

const profileFields: Fields<Profile> = {
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

// How a profile is made: what is given, laid over the strictest one, and checked before anything is built on it.

export type ProfileOverrides = DeepPartial<Profile>

/**
 * A profile with `overrides` in place of the strict values. A list is given whole. A field that is unknown or
 * wrong is refused with `bad-profile`; `details.problems` names each one.
 */
export function createProfile(overrides: ProfileOverrides = {}): Profile {
  const { value, problems } = readFields(profileFields, overrides)
  const profile = value as Profile
  const found = problems.length > 0 ? problems : contradictions(profile)
  if (found.length > 0) {
    const list = found.map(({ message }) => message).join('; ')
    throw new TidemarkError('bad-profile', `This profile cannot be used. ${list}.`, {
      details: { problems: found },
    })
  }
  return profile
}

/** What no field can say alone. */
function contradictions({ cache, thinking, sizes }: Profile): readonly Problem[] {
  const found: Problem[] = []
  const names = cache.ttls.map((ttl) => ttl.name)
  if (!names.includes(cache.defaultTtl)) {
    found.push(
      problem('cache.defaultTtl', cache.defaultTtl, `the name of one of cache.ttls (${names.join(', ')})`),
    )
  }
  if (
    cache.ttls.some(
      (ttl, index) => ttl.seconds >= (cache.ttls[index - 1]?.seconds ?? Number.POSITIVE_INFINITY),
    )
  ) {
    found.push(problem('cache.ttls', cache.ttls, 'lifetimes in order, the longest first'))
  }
  if (new Set(names).size < names.length)
    found.push(problem('cache.ttls', cache.ttls, 'a name for each lifetime'))
  if (!thinking.modes.includes(thinking.whenAbsent)) {
    found.push(problem('thinking.whenAbsent', thinking.whenAbsent, 'one of thinking.modes'))
  }
  if (sizes.manyImagePixels > sizes.imagePixels) {
    found.push(problem('sizes.manyImagePixels', sizes.manyImagePixels, 'at most sizes.imagePixels'))
  }
  return found
}

/**
 * The profile of nobody in particular: what passes under it passes nearly everywhere. It knows no window, no
 * beta and none of the features that only some providers have.
 */
export const strictProfile: Profile = createProfile()
