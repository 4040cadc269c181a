/**
 * Creates a provider profile from a catalogue entry: the rules that API requests to the model must follow. If a fact is
 * unknown, the stricter rule is used, which the provider accepts in either case.
 */
import {
  defineProviderProfile,
  type ProviderProfile,
  type ProviderProfileOverrides,
} from '@tidemark/core/policy/provider-profile'
import { anthropicSpelling } from '../anthropic/spelling.ts'
import type { ModelEntry, ThinkingMode } from '../catalogue/model-entry.ts'
import type { Dialect } from '../openai/dialects.ts'
import { OPENAI_VENDOR } from '../openai/openai-errors.ts'
import { chatSpelling, compatibleSpelling, responsesSpelling } from '../openai/spelling.ts'

interface ProviderProfileOptions {
  /** Value of the `anthropic-version` header. Default: the newest version, whose rules are stricter. */
  readonly anthropicVersion?: AnthropicVersion
}

type AnthropicVersion = '2023-06-01' | '2026-10-21'

/** Returns the rules of a model that is called with the Messages API. Throws as `defineProviderProfile` does. */
export function createProviderProfile(
  model: ModelEntry,
  options: ProviderProfileOptions = {},
): ProviderProfile {
  return defineMessagesProfile(providerRules(model, options.anthropicVersion ?? '2026-10-21'))
}

/**
 * Returns the strictest profile with `overrides` applied, for a provider that speaks the Messages API. Throws as
 * `defineProviderProfile` does.
 */
export function defineMessagesProfile(overrides: ProviderProfileOverrides = {}): ProviderProfile {
  return defineProviderProfile({
    ...overrides,
    cache: { ...MESSAGES_CACHE, ...overrides.cache },
    compaction: { ...MESSAGES_COMPACTION, ...overrides.compaction },
    spelling: anthropicSpelling,
  })
}

const MESSAGES_CACHE: ProfilePart<'cache'> = {
  ttls: [
    { name: '1h', seconds: 3600 },
    { name: '5m', seconds: 300 },
  ],
  defaultTtl: '5m',
  unmarkable: ['thinking', 'redacted_thinking', 'cache_edits'],
}
const MESSAGES_COMPACTION: ProfilePart<'compaction'> = {
  notWithRequest: [
    'context_management',
    'stop_sequences',
    'output_config.format',
    'output_config.task_budget.remaining',
    'thread',
  ],
  notWithBlock: ['output_config.task_budget.remaining'],
}

/** Returns the rules for the Responses API. `account`: to which encrypted reasoning is bound; null if only the vendor counts. */
export function createResponsesProfile(model: ModelEntry, account: string | null): ProviderProfile {
  const rules = openaiProfile(model)
  return defineProviderProfile({
    ...rules,
    origin: { vendor: OPENAI_VENDOR, account },
    capabilities: { ...UNSURE, cacheDiagnostics: rules.cache?.kind === 'breakpoints' },
    spelling: responsesSpelling,
  })
}

/** Returns the rules of a model called with Chat Completions, at OpenAI or at a compatible server. */
export function createChatProfile(model: ModelEntry, dialect: Dialect): ProviderProfile {
  const rules = openaiProfile(model)
  const isOpenai = dialect.name === OPENAI_VENDOR
  return defineProviderProfile({
    ...rules,
    name: `${model.id} (${dialect.title})`,
    origin: { vendor: dialect.name, account: null },
    // Such a server caches automatically: a request cannot contain a cache marker.
    cache: { ...rules.cache, ...(isOpenai ? {} : OWN_PREFIX_CACHE), maxMarkers: 0 },
    capabilities: UNSURE,
    spelling: isOpenai ? chatSpelling : compatibleSpelling,
  })
}

/**
 * It is not sure that a prompt over the window is refused: local servers speak these APIs, too, some cut such a prompt
 * silently, and a client's request does not show which server answers.
 */
const UNSURE: ProfilePart<'capabilities'> = { tooLong: 'unsure' }

const OWN_PREFIX_CACHE: ProfilePart<'cache'> = {
  kind: 'prefix',
  softSeconds: 300,
  minimumTokens: null,
  ttls: [{ name: 'own', seconds: 3_600 }],
  defaultTtl: 'own',
}

/**
 * The strictest profile: a request that is valid under it is valid for nearly every provider. It has no known context
 * window, no betas, and none of the features that only some providers support.
 */
export const strictProfile: ProviderProfile = defineMessagesProfile()

function providerRules(model: ModelEntry, version: AnthropicVersion): ProviderProfileOverrides {
  if (model.vendor === 'anthropic') return anthropicProfile(model, version)
  if (model.vendor === 'openai') return openaiProfile(model)
  return model.vendor === 'google' ? geminiProfile(model) : unknownProviderProfile(model)
}

// Rules of the Messages API, for both values of the `anthropic-version` header.

type BetaRule = ProviderProfile['betas'][number]
type RejectedBlock = ProviderProfile['refusedBlocks'][number]

const CONTEXT_MANAGEMENT = 'context-management-2025-06-27'
const THRESHOLD_COMPACTION = 'compact-2026-01-12'
const ON_DEMAND_COMPACTION = 'compact-2026-09-04'
const CLEAR_TOOL_USES = 'clear_tool_uses_20250919'
const CLEAR_THINKING = 'clear_thinking_20251015'
const COMPACT = 'compact_20260112'
const TOOL_CHANGES = ['mid-conversation-tool-changes-2026-07-01', 'inline-tools-2026-09-15']

/**
 * Parts of an API request that the Messages API rejects unless the `anthropic-beta` header has one of the listed betas.
 */
const BETA_RULES: readonly BetaRule[] = [
  { where: 'field', name: 'context_management', betas: [CONTEXT_MANAGEMENT, THRESHOLD_COMPACTION] },
  { where: 'edit', name: CLEAR_TOOL_USES, betas: [CONTEXT_MANAGEMENT] },
  { where: 'edit', name: CLEAR_THINKING, betas: [CONTEXT_MANAGEMENT] },
  { where: 'edit', name: COMPACT, betas: [THRESHOLD_COMPACTION] },
  { where: 'block', name: 'compaction', betas: [ON_DEMAND_COMPACTION, THRESHOLD_COMPACTION] },
  { where: 'field', name: 'thinking.block_binding', betas: ['thinking-binding-controls-2026-08-01'] },
  { where: 'field', name: 'thread', betas: ['message-threads-2026-08-12'] },
  { where: 'field', name: 'output_config.task_budget', betas: ['task-budgets-2026-03-13'] },
  { where: 'field', name: 'speed', betas: ['fast-mode-2026-02-01'] },
  { where: 'field', name: 'fallbacks', betas: ['server-side-fallback-2026-07-01'] },
  { where: 'message-field', name: 'clear_at', betas: ['mid-conversation-system-clear-at-2026-08-21'] },
  {
    where: 'message-field',
    name: 'output_config',
    betas: ['mid-conversation-output-config-2026-07-01', 'per-turn-control-2026-07-01'],
  },
  { where: 'block', name: 'tool_addition', betas: TOOL_CHANGES },
  { where: 'block', name: 'tool_removal', betas: TOOL_CHANGES },
]

const SAMPLING_FIELDS = ['temperature', 'top_p', 'top_k']
const NO_ASSISTANT_IMAGES: readonly RejectedBlock[] = [{ role: 'assistant', type: 'image' }]
const REJECTED_BLOCKS: Readonly<Record<AnthropicVersion, readonly RejectedBlock[]>> = {
  '2023-06-01': NO_ASSISTANT_IMAGES,
  '2026-10-21': [
    ...NO_ASSISTANT_IMAGES,
    { role: 'assistant', type: 'document' },
    { role: 'user', type: 'text', field: 'citations' },
  ],
}

function anthropicProfile(model: ModelEntry, version: AnthropicVersion): ProviderProfileOverrides {
  const { capabilities } = model
  const isPlaced = capabilities.systemMessages === true
  return {
    name: `${model.id} (anthropic ${version})`,
    ...windowLimits(model),
    roles: {
      first: 'user',
      consecutive: 'merged',
      prefill: toPermission(capabilities.prefill),
      system: isPlaced ? 'placed' : 'refused',
      turnScoped: isPlaced,
      messageEffort: capabilities.messageEffort === true,
    },
    tools: {
      namePattern: '^[a-zA-Z0-9_-]{1,128}$',
      forcedChoice: toPermission(capabilities.forcedToolChoice),
    },
    thinking: {
      ...thinkingRules(model),
      budgetOverBetas: ['interleaved-thinking-2025-05-14'],
      closing: 'not-at-end',
      signed: true,
    },
    cache: { ...cacheRules(model), automatic: true, collapsesToolRuns: true },
    sizes: sizeLimits(model),
    ...contextEditRules(model),
    capabilities: {
      cacheDiagnostics: true,
      countsMaxTokens: capabilities.endsAtWindow === false,
      toolChanges: capabilities.toolChanges === true,
      prewarm: true,
    },
    betas: BETA_RULES,
    refusedFields: version === '2026-10-21' || capabilities.sampling !== true ? SAMPLING_FIELDS : [],
    refusedBlocks: REJECTED_BLOCKS[version],
  }
}

function contextEditRules({
  capabilities,
}: ModelEntry): Pick<ProviderProfileOverrides, 'contextEdits' | 'compaction'> {
  const edits = capabilities.contextEditing === true
  const compacts = capabilities.thresholdCompaction === true
  const onDemand = capabilities.onDemandCompaction === true
  return {
    contextEdits: {
      clearThinking: edits ? CLEAR_THINKING : null,
      clearToolUses: edits ? CLEAR_TOOL_USES : null,
      compact: compacts ? COMPACT : null,
    },
    compaction: {
      blocks: compacts || onDemand,
      onDemand,
      beta: onDemand ? ON_DEMAND_COMPACTION : null,
    },
  }
}

// Rules of OpenAI and Google. Their codecs convert requests to the provider's format; the engine checks only these
// rules before.

/**
 * Returns the rules for OpenAI models. The order of roles is not checked, because the codec sends each tool result and
 * text as a separate item.
 */
function openaiProfile(model: ModelEntry): ProviderProfileOverrides {
  const system = model.capabilities.systemMessages === true ? 'placed' : 'refused'
  return { ...commonRules(model), roles: { first: 'any', consecutive: 'merged', system } }
}

function geminiProfile(model: ModelEntry): ProviderProfileOverrides {
  return { ...commonRules(model), roles: { consecutive: 'merged' } }
}

function commonRules(model: ModelEntry): ProviderProfileOverrides {
  return {
    name: `${model.id} (${model.vendor})`,
    ...windowLimits(model),
    maxOutputRequired: false,
    tools: { declaredWhenUsed: false, forcedChoice: toPermission(model.capabilities.forcedToolChoice) },
    // These providers return reasoning as opaque items without a signature. Only the same model can use them.
    thinking: {
      ...thinkingRules(model),
      binding: model.thinking.binding ?? 'model',
      signed: false,
      closing: 'allowed',
      firstInModes: [],
      unforcedInModes: [],
    },
    cache: { ...cacheRules(model), ...ownCaching(model), automatic: true },
    sizes: sizeLimits(model),
  }
}

/** Seconds without use after which a prefix that was cached without a marker may be gone. */
const SOFT_SECONDS = 300
/** Cached tokens of such a prefix are a multiple of this number, as OpenAI documents. */
const STEP_TOKENS = 128

/** Returns how a provider caches prompts automatically, beside cache markers or instead of them. */
function ownCaching({ cache, vendor }: ModelEntry): ProfilePart<'cache'> {
  if (cache.markers !== 0) return { kind: 'breakpoints' }
  return {
    kind: 'prefix',
    softSeconds: SOFT_SECONDS,
    ...(vendor === 'openai' ? { stepTokens: STEP_TOKENS } : {}),
  }
}

/**
 * Returns the rules for a model of an unknown provider: the limits in its catalogue entry, and the strictest rule for
 * everything else.
 */
function unknownProviderProfile(model: ModelEntry): ProviderProfileOverrides {
  return {
    name: `${model.id} (${model.vendor})`,
    ...windowLimits(model),
    roles: { prefill: toPermission(model.capabilities.prefill) },
    tools: { forcedChoice: toPermission(model.capabilities.forcedToolChoice) },
    thinking: thinkingRules(model),
    cache: cacheRules(model),
    sizes: sizeLimits(model),
  }
}

// Conversion of catalogue facts to rules, for all providers.

type ProfilePart<Key extends keyof ProviderProfileOverrides> = NonNullable<ProviderProfileOverrides[Key]>

function toPermission(capability: boolean | null): 'allowed' | 'refused' {
  return capability === true ? 'allowed' : 'refused'
}

/**
 * Returns the size limits of a model. `window` is the longest prompt: tokens that the provider reserves for the reply
 * are not part of it.
 */
function windowLimits({ window, maxInput, maxOutput }: ModelEntry): ProviderProfileOverrides {
  const known = [window, maxInput].filter((size) => size !== null)
  return { window: known.length === 0 ? null : Math.min(...known), maxOutput }
}

const EFFORT_ORDER = ['low', 'medium', 'high', 'xhigh', 'max']

/**
 * Returns the thinking rules of a model. A model that cannot think accepts only the mode `disabled`. Where a fact is
 * unknown, the strict rule is used.
 */
function thinkingRules({ thinking }: ModelEntry): ProfilePart<'thinking'> {
  const { binding, keepsPrior, leastUpTo } = thinking
  const modes: readonly ThinkingMode[] | null = thinking.modes?.length === 0 ? ['disabled'] : thinking.modes
  const isLimited = leastUpTo !== undefined && modes?.includes('disabled') === true
  return {
    ...(modes === null ? {} : { modes, whenAbsent: defaultThinkingMode(modes, thinking.isOnByDefault) }),
    ...(isLimited ? { disabledEfforts: EFFORT_ORDER.slice(0, EFFORT_ORDER.indexOf(leastUpTo) + 1) } : {}),
    ...(binding === null ? {} : { binding }),
    stripsFinishedTurns: keepsPrior === false,
  }
}

function defaultThinkingMode(modes: readonly ThinkingMode[], isOn: boolean | null): ThinkingMode {
  const off = modes.includes('disabled') && isOn !== true
  return off ? 'disabled' : (modes.find((mode) => mode !== 'disabled') ?? 'disabled')
}

/**
 * Returns the cache rules of a model. An unlimited look-back is stored as the largest safe integer, because JSON has no
 * infinity.
 */
function cacheRules({ cache }: ModelEntry): ProfilePart<'cache'> {
  const { minimum, markers, lookBack, ttls } = cache
  const positions = lookBack === 'unlimited' ? Number.MAX_SAFE_INTEGER : lookBack
  const [usual] = ttls ?? []
  return {
    minimumTokens: minimum,
    ...(markers === null ? {} : { maxMarkers: markers }),
    ...(positions === null ? {} : { lookBack: positions }),
    ...(ttls === null || usual === undefined
      ? {}
      : { ttls: ttls.toSorted((a, b) => b.seconds - a.seconds), defaultTtl: usual.name }),
  }
}

function sizeLimits({ limits }: ModelEntry): ProfilePart<'sizes'> {
  const { bodyBytes, images } = limits
  return { ...(bodyBytes === null ? {} : { bodyBytes }), ...(images === null ? {} : { images }) }
}
