/** The golden sessions as data: ten kinds with the Messages API, four of each, and one with each other codec. */
import type { SystemKind } from './harness.ts'
import { createRandom, type Random } from './random.ts'

export type Step =
  | { readonly do: 'prompt'; readonly rounds: number; readonly image?: boolean; readonly pinned?: boolean }
  | { readonly do: 'large-prompt'; readonly characters: number }
  | { readonly do: 'compact'; readonly form: 'full' | 'from' | 'up_to'; readonly local?: boolean }
  | { readonly do: 'compact-in-steps' }
  | { readonly do: 'undo' }
  | { readonly do: 'unpin' }
  | { readonly do: 'wait'; readonly minutes: number }
  | { readonly do: 'tools'; readonly names: readonly string[] }
  | { readonly do: 'host'; readonly branch: string }
  | { readonly do: 'attach' }
  | { readonly do: 'reopen' }
  | { readonly do: 'switch'; readonly model: string; readonly window?: number }
  | { readonly do: 'fault'; readonly fault: 'overloaded' | 'cut' | 'too-long' | 'error-event' }
  | { readonly do: 'unanswered-calls' }
  | { readonly do: 'history' }

export interface SessionPlan {
  readonly name: string
  /** Exported as Markdown at the end; compacted by command otherwise. */
  readonly exported: boolean
  readonly model: string
  /** Whose API the session is sent to. Default: the Messages API. */
  readonly provider?: 'responses' | 'chat' | 'made-up'
  readonly window?: number
  /** The window that the simulated provider really has. */
  readonly realWindow?: number
  readonly thinks?: boolean
  readonly parameters?: Readonly<Record<string, unknown>>
  readonly policy?: Readonly<Record<string, unknown>>
  readonly system: SystemKind
  readonly tools: readonly string[]
  /** Characters of a large tool result. */
  readonly resultSize: number
  readonly loop: 'run' | 'own'
  readonly coder?: boolean
  readonly history?: boolean
  readonly carriers?: boolean
  readonly hooks?: boolean
  readonly autonomous?: boolean
  readonly cacheEdits?: boolean
  readonly summariser?: 'good' | 'forgetful' | 'empty' | 'injection' | 'cut-off'
  readonly steps: readonly Step[]
}

/** In no catalogue. */
export const LOCAL_MODEL = 'local-model'

const BASIC = ['Read', 'Edit', 'Bash', 'TodoWrite']
const MANY = [
  ...BASIC,
  ...[
    'Write',
    'Grep',
    'NotebookEdit',
    'str_replace_based_edit_tool',
    'WebFetch',
    'mcp__tracker__search',
    'Deploy',
  ],
]
const ADAPTIVE = { thinking: { type: 'adaptive' } }
const COMMON = { system: 'text', tools: MANY, resultSize: 4_000, loop: 'run' } as const

type Kind = (random: Random, seed: number) => Omit<SessionPlan, 'name' | 'exported'>

const prompts = (count: number, rounds: number): readonly Step[] =>
  Array.from({ length: count }, () => ({ do: 'prompt', rounds }))

const KINDS: Readonly<Record<string, Kind>> = {
  plain: (random, seed) => ({
    ...COMMON,
    model: seed % 2 === 0 ? 'claude-sonnet-5-5' : 'claude-opus-4-5',
    system: seed < 2 ? 'none' : 'sections',
    steps: [
      { do: 'prompt', rounds: random.between(1, 4), image: true },
      { do: 'attach' },
      ...prompts(2, random.between(1, 3)),
    ],
  }),
  clearing: (random, seed) => ({
    ...COMMON,
    model: seed === 3 ? 'claude-haiku-5-5' : 'claude-sonnet-4-5',
    window: seed === 3 ? 30_000 : 60_000,
    resultSize: 12_000,
    tools: ['Read', 'Bash', 'Grep', 'Write', 'Edit'],
    policy: { clear: { budget: { minimumFreedTokens: 2_000 }, idle: { minimumFreedTokens: 1_000 } } },
    steps: [
      ...prompts(2, 4),
      { do: 'wait', minutes: random.between(61, 90) },
      ...prompts(2, 5),
      { do: 'undo' },
      ...prompts(1, 3),
      { do: 'history' },
    ],
  }),
  'cached clearing': (_random, seed) => ({
    ...COMMON,
    model: seed < 2 ? 'claude-sonnet-4-5' : 'claude-sonnet-5-5',
    window: 80_000,
    resultSize: 9_000,
    tools: ['Read', 'Bash', 'Grep'],
    ...(seed < 2 ? { cacheEdits: true } : { thinks: true, parameters: ADAPTIVE }),
    steps: [...prompts(3, 4), { do: 'reopen' }, ...prompts(2, 3)],
  }),
  'automatic compaction': (random, seed) => ({
    ...COMMON,
    model: seed === 2 ? 'claude-sonnet-4-5' : 'claude-sonnet-5-5',
    window: [16_000, 12_000, 20_000, 24_000][seed] ?? 16_000,
    resultSize: [3_000, 9_000, 9_000, 16_000][seed] ?? 3_000,
    ...(seed % 2 === 1 ? { policy: { clear: { ways: [] } } } : {}),
    coder: seed % 2 === 1,
    carriers: seed >= 2,
    autonomous: seed === 3,
    steps: [...prompts(3, 4), { do: 'wait', minutes: random.between(2, 70) }, ...prompts(3, 4)],
  }),
  'small window': (_random, seed) => ({
    ...COMMON,
    model: LOCAL_MODEL,
    window: 8_000 + 2_000 * seed,
    resultSize: 12_000,
    history: true,
    tools: BASIC,
    ...(seed === 3 ? { hooks: true } : {}),
    steps: [
      ...prompts(2, 3),
      { do: 'large-prompt', characters: 80_000 },
      { do: 'large-prompt', characters: 6_000 },
      ...prompts(2, 3),
      { do: 'history' },
    ],
  }),
  'bound thinking': (random, seed) => ({
    ...COMMON,
    model: 'claude-opus-5-5',
    thinks: true,
    parameters: ADAPTIVE,
    window: seed % 2 === 0 ? 60_000 : 200_000,
    resultSize: 10_000,
    ...(seed === 1 ? { policy: { clear: { ways: ['idle', 'budget'] } } } : {}),
    steps: [
      ...prompts(2, 4),
      { do: 'compact', form: random.pick(['full', 'up_to']) },
      ...prompts(1, 4),
      { do: 'undo' },
      ...prompts(1, 2),
      { do: 'compact', form: 'from' },
      ...prompts(1, 1),
    ],
  }),
  'manual rewrites': (random, seed) => ({
    ...COMMON,
    model: 'claude-sonnet-5-5',
    carriers: true,
    hooks: seed % 2 === 0,
    system: 'sections',
    ...(seed === 3 ? { policy: { compact: { carriersFirst: true } } } : {}),
    steps: [
      { do: 'prompt', rounds: 2, pinned: true },
      ...prompts(2, random.between(1, 3)),
      { do: 'compact', form: random.pick(['full', 'from', 'up_to']) },
      { do: 'prompt', rounds: 1, image: true },
      { do: 'compact-in-steps' },
      { do: 'unpin' },
      ...prompts(1, 2),
      { do: 'undo' },
      { do: 'host', branch: 'fix-sums' },
      ...prompts(1, 1),
      { do: 'compact', form: 'full', local: true },
      { do: 'reopen' },
      ...prompts(1, 1),
    ],
  }),
  'own loop': (random, seed) => ({
    ...COMMON,
    model: seed === 2 ? 'claude-opus-5-5' : 'claude-sonnet-5-5',
    loop: 'own',
    coder: seed === 1,
    history: seed === 3,
    ...(seed === 2 ? { thinks: true, parameters: ADAPTIVE } : {}),
    window: 40_000,
    steps: [
      { do: 'prompt', rounds: random.between(2, 4), image: true },
      { do: 'unanswered-calls' },
      { do: 'attach' },
      ...prompts(2, 3),
      { do: 'compact', form: 'up_to' },
      ...prompts(2, 3),
    ],
  }),
  'changing prefix': (random, seed) => ({
    ...COMMON,
    model: seed % 2 === 0 ? 'claude-sonnet-5-5' : 'claude-opus-4-8',
    system: 'sections',
    tools: BASIC,
    carriers: seed >= 2,
    ...(seed === 1 ? { policy: { cache: { volatile: 'inline', ttl: '5m' } } } : {}),
    steps: [
      ...prompts(1, 2),
      { do: 'host', branch: 'fix-login' },
      ...prompts(1, 1),
      { do: 'tools', names: MANY },
      ...prompts(1, 3),
      { do: 'wait', minutes: random.between(6, 59) },
      { do: 'tools', names: seed < 2 ? ['Read', 'Bash', 'Deploy'] : [...MANY, 'Search'] },
      ...prompts(1, 2),
      { do: 'switch', model: 'claude-haiku-5-5' },
      ...prompts(1, 1),
      { do: 'reopen' },
      { do: 'switch', model: 'claude-sonnet-4-5', window: 12_000 },
      ...prompts(1, 2),
    ],
  }),
  trouble: (_random, seed) => ({
    ...COMMON,
    model: 'claude-sonnet-5-5',
    window: 60_000,
    ...(seed === 0 ? { realWindow: 8_000 } : {}),
    resultSize: 8_000,
    summariser: (['good', 'forgetful', 'empty', 'injection'] as const)[seed] ?? 'cut-off',
    steps: [
      ...prompts(2, 3),
      { do: 'fault', fault: 'overloaded' },
      ...prompts(1, 2),
      { do: 'fault', fault: (['cut', 'error-event', 'cut', 'too-long'] as const)[seed] ?? 'cut' },
      ...prompts(2, 3),
      { do: 'compact', form: 'full' },
      { do: 'reopen' },
      ...prompts(1, 2),
    ],
  }),
}

/** The same session with every other codec: what is sent, recorded and reported must not change by itself either. */
const OTHER_CODECS: readonly (readonly [name: string, plan: Pick<SessionPlan, 'provider' | 'model'>])[] = [
  ['responses by prefix', { provider: 'responses', model: 'gpt-5.4' }],
  ['responses with breakpoints', { provider: 'responses', model: 'gpt-6-sol' }],
  ['chat completions', { provider: 'chat', model: 'gpt-4.1' }],
  ['made-up provider', { provider: 'made-up', model: 'lumen-2' }],
]

const MESSAGES_SESSIONS: readonly SessionPlan[] = Object.entries(KINDS).flatMap(([kind, plan], place) =>
  [0, 1, 2, 3].map((seed) => {
    const number = String(place * 4 + seed + 1).padStart(2, '0')
    const own = plan(createRandom(`${kind}/${seed}`), seed)
    return { ...own, name: `${number} ${kind}`, exported: seed % 2 === 1 }
  }),
)

export const SESSIONS: readonly SessionPlan[] = [
  ...MESSAGES_SESSIONS,
  ...OTHER_CODECS.map(
    ([name, plan], place): SessionPlan => ({
      ...COMMON,
      ...plan,
      name: `${MESSAGES_SESSIONS.length + place + 1} ${name}`,
      exported: place % 2 === 1,
      tools: BASIC,
      window: 60_000,
      resultSize: 8_000,
      steps: [
        ...prompts(3, 3),
        { do: 'compact', form: 'full' },
        ...prompts(1, 2),
        { do: 'undo' },
        ...prompts(1, 2),
        { do: 'reopen' },
        { do: 'wait', minutes: 90 },
        ...prompts(2, 3),
        { do: 'compact', form: 'full', local: true },
        ...prompts(1, 1),
      ],
    }),
  ),
]
