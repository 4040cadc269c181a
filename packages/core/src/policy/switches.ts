/**
 * Reads switches from environment variables, and determines which features of the engine are on. The host passes the
 * variables in; this file does not read `process.env`.
 */
import type { Policy } from './policy.ts'
import type { SwitchPolicy } from './turn-policy.ts'

const SWITCH_NAMES = [
  'DISABLE_COMPACT',
  'DISABLE_AUTO_COMPACT',
  'DISABLE_MICROCOMPACT',
  'ENABLE_PROMPT_CACHING_1H',
  'ENABLE_PROMPT_CACHING_1H_BEDROCK',
  'FORCE_PROMPT_CACHING_5M',
  'DISABLE_PROMPT_CACHING',
] as const
export type SwitchName = (typeof SWITCH_NAMES)[number]

/**
 * Environment variables that set the auto-compact threshold. The second name is the one that other tools use. If both
 * hold a valid percentage, the first applies.
 */
const PERCENT_NAMES = ['TIDEMARK_AUTOCOMPACT_PCT', 'CLAUDE_AUTOCOMPACT_PCT_OVERRIDE'] as const
type PercentName = (typeof PERCENT_NAMES)[number]

/** What environment variables turn on or set. */
export interface Switches {
  /** Names of the switches that are turned on. */
  readonly set: readonly SwitchName[]
  /** Auto-compact threshold as a percentage of the effective window; null if no variable sets it. */
  readonly autoCompactPercent: number | null
}

/** An environment variable with an invalid value. It is ignored, and reported to the user once. */
interface SwitchNotice {
  readonly variable: SwitchName | PercentName
  readonly value: string
  readonly message: string
}

interface ReadSwitchesResult {
  readonly switches: Switches
  readonly notices: readonly SwitchNotice[]
}

/** No variable is set. */
export const NO_SWITCHES: Switches = { set: [], autoCompactPercent: null }

type Environment = Readonly<Record<string, string | undefined>>

const ON_VALUES: readonly string[] = ['1', 'true', 'yes', 'on']
const OFF_VALUES: readonly string[] = ['', '0', 'false', 'no', 'off']

/** Reads the switches. An invalid value is ignored and gives a notice for the user. */
export function readSwitches(environment: Environment): ReadSwitchesResult {
  const percents = PERCENT_NAMES.map((name) => parsePercent(environment[name]))
  const switches: Switches = {
    set: SWITCH_NAMES.filter((name) => ON_VALUES.includes(normalizeValue(environment[name]))),
    autoCompactPercent: percents.find((percent) => percent !== null) ?? null,
  }
  const expectsSwitch = '1, true, yes or on to set it, 0, false, no or off not to'
  const expectsPercent = 'a number above 0 and at most 100, as in 80'
  const notices = [
    ...SWITCH_NAMES.filter(
      (name) => ![...ON_VALUES, ...OFF_VALUES].includes(normalizeValue(environment[name])),
    ).map((name) => createNotice(name, environment[name] ?? '', expectsSwitch)),
    ...PERCENT_NAMES.filter(
      (name) => normalizeValue(environment[name]) !== '' && parsePercent(environment[name]) === null,
    ).map((name) => createNotice(name, environment[name] ?? '', expectsPercent)),
  ]
  return { switches, notices }
}

function normalizeValue(value: string | undefined): string {
  return (value ?? '').trim().toLowerCase()
}

/** Parses a decimal percentage above 0 and up to 100; returns null for any other value. */
function parsePercent(value: string | undefined): number | null {
  const digits = normalizeValue(value)
  const percent = /^(\d+\.?\d*|\.\d+)$/.test(digits) ? Number(digits) : Number.NaN
  return percent > 0 && percent <= 100 ? percent : null
}

function createNotice(variable: SwitchName | PercentName, value: string, expected: string): SwitchNotice {
  const message = `${variable} is ${JSON.stringify(value)} and was ignored: expected ${expected}.`
  return { variable, value, message }
}

// Which features of the engine are on. For a feature that is off, the result names the environment variable or policy
// field that turned it off, for use in error messages.

/**
 * A feature that can be turned off. `clear`: clearing tool results, also by the provider. `notes`: writing session
 * notes. `auto`: automatic compaction, also with session notes. `reactive`: compaction after a refused request; off
 * whenever `auto` is off.
 */
type Mechanism = 'clear' | 'auto' | 'reactive' | 'manual' | 'notes' | 'caching'

/** Whether a feature is on. If it is off, `because` names the environment variable or policy field that turned it off. */
type MechanismState = { readonly on: true } | { readonly on: false; readonly because: string }

type MechanismStates = Readonly<Record<Mechanism, MechanismState>>

/**
 * Returns whether each feature is on. If several settings turn a feature off, one is reported: environment variables
 * come before policy fields, and settings for more features before settings for fewer.
 */
export function findFeatureStates(policy: Policy, switches: Switches): MechanismStates {
  const variable = (name: SwitchName): OffCause => [name, switches.set.includes(name)]
  const setting = (name: keyof SwitchPolicy): OffCause => [`switches.${name}`, !policy.switches[name]]
  const [all, every] = [variable('DISABLE_COMPACT'), setting('compactEnabled')]
  const auto = [all, variable('DISABLE_AUTO_COMPACT'), every, setting('autoCompactEnabled')]
  return {
    clear: toMechanismState([all, variable('DISABLE_MICROCOMPACT'), every, setting('microcompactEnabled')]),
    auto: toMechanismState(auto),
    reactive: toMechanismState([...auto, ['turn.reactive.enabled', !policy.turn.reactive.enabled]]),
    manual: toMechanismState([all, every]),
    notes: toMechanismState([all, every, ['notes.enabled', !policy.notes.enabled]]),
    caching: toMechanismState([variable('DISABLE_PROMPT_CACHING'), setting('promptCachingEnabled')]),
  }
}

type OffCause = readonly [because: string, isOff: boolean]

function toMechanismState(causes: readonly OffCause[]): MechanismState {
  const cause = causes.find(([, isOff]) => isOff)
  return cause === undefined ? { on: true } : { on: false, because: cause[0] }
}
