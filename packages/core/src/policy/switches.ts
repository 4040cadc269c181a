/** Switches in environment variables, and which mechanisms are on. The host passes the variables; nothing is read here. */
import type { Policy, SwitchPolicy } from './policy.ts'

export type SwitchName =
  | 'DISABLE_COMPACT'
  | 'DISABLE_AUTO_COMPACT'
  | 'DISABLE_MICROCOMPACT'
  | 'ENABLE_PROMPT_CACHING_1H'
  | 'ENABLE_PROMPT_CACHING_1H_BEDROCK'
  | 'FORCE_PROMPT_CACHING_5M'
  | 'DISABLE_PROMPT_CACHING'

/** The second is the name other tools use; ours wins if both hold a percentage. */
type PercentName = 'TIDEMARK_AUTOCOMPACT_PCT' | 'CLAUDE_AUTOCOMPACT_PCT_OVERRIDE'

export interface Switches {
  /** The switches that are set. */
  readonly set: readonly SwitchName[]
  /** Percentage of the effective window for the auto-compact threshold, or null. */
  readonly autoCompactPercent: number | null
}

/** A variable with an invalid value: reported to the user once and ignored. */
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

/** 0 < n ≤ 100 in decimal notation, or null. */
function parsePercent(value: string | undefined): number | null {
  const digits = normalizeValue(value)
  const percent = /^(\d+\.?\d*|\.\d+)$/.test(digits) ? Number(digits) : Number.NaN
  return percent > 0 && percent <= 100 ? percent : null
}

function createNotice(variable: SwitchName | PercentName, value: string, expected: string): SwitchNotice {
  const message = `${variable} is ${JSON.stringify(value)} and was ignored: expected ${expected}.`
  return { variable, value, message }
}

// Which mechanisms are on, and for those that are off the switch or field that turned them off, so that errors can name it.

/**
 * `clear` is tier 1, provider-side clearing included. `notes` is taking notes; compacting with them is part of `auto`.
 * `reactive` is automatic too, so it is off whenever `auto` is.
 */
type Mechanism = 'clear' | 'auto' | 'reactive' | 'manual' | 'notes' | 'caching'

/** `because`: an environment variable or the path of a policy field. */
type MechanismState = { readonly on: true } | { readonly on: false; readonly because: string }

type MechanismStates = Readonly<Record<Mechanism, MechanismState>>

/** The first cause in each list is reported: environment before settings, the broadest first. */
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
