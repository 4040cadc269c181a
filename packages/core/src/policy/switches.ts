/**
 * Reads switches from environment variables, and determines which mechanisms of the engine are on. The host passes the
 * variables; this file does not read the environment.
 */
import type { Policy, SwitchPolicy } from './policy.ts'

export type SwitchName =
  | 'DISABLE_COMPACT'
  | 'DISABLE_AUTO_COMPACT'
  | 'DISABLE_MICROCOMPACT'
  | 'ENABLE_PROMPT_CACHING_1H'
  | 'ENABLE_PROMPT_CACHING_1H_BEDROCK'
  | 'FORCE_PROMPT_CACHING_5M'
  | 'DISABLE_PROMPT_CACHING'

/** Variables for the auto-compact threshold. Other tools use the second name; the first wins if both hold a percentage. */
type PercentName = 'TIDEMARK_AUTOCOMPACT_PCT' | 'CLAUDE_AUTOCOMPACT_PCT_OVERRIDE'

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

export const NO_SWITCHES: Switches = { set: [], autoCompactPercent: null }

type Environment = Readonly<Record<string, string | undefined>>

const SWITCH_NAMES: readonly SwitchName[] = [
  'DISABLE_COMPACT',
  'DISABLE_AUTO_COMPACT',
  'DISABLE_MICROCOMPACT',
  'ENABLE_PROMPT_CACHING_1H',
  'ENABLE_PROMPT_CACHING_1H_BEDROCK',
  'FORCE_PROMPT_CACHING_5M',
  'DISABLE_PROMPT_CACHING',
]
const PERCENT_NAMES: readonly PercentName[] = ['TIDEMARK_AUTOCOMPACT_PCT', 'CLAUDE_AUTOCOMPACT_PCT_OVERRIDE']
const ON_VALUES: readonly string[] = ['1', 'true', 'yes', 'on']
const OFF_VALUES: readonly string[] = ['', '0', 'false', 'no', 'off']

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

// Which mechanisms of the engine are on. For one that is off, the result names the switch or policy field that turned
// it off, so that error messages can name it.

/**
 * A mechanism of the engine. `clear` is tier 1: clearing tool results, also by the provider. `notes` is taking session
 * notes; compacting with them is part of `auto`. `reactive` compaction is automatic too, so it is off whenever `auto`
 * is.
 */
type Mechanism = 'clear' | 'auto' | 'reactive' | 'manual' | 'notes' | 'caching'

/** Whether a mechanism is on. `because` is the environment variable or the path of the policy field that turned it off. */
type MechanismState = { readonly on: true } | { readonly on: false; readonly because: string }

type MechanismStates = Readonly<Record<Mechanism, MechanismState>>

/**
 * Returns whether each mechanism is on. If several causes turn a mechanism off, the first one is reported: environment
 * variables before settings, the broadest first.
 */
export function findMechanismStates(policy: Policy, switches: Switches): MechanismStates {
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
