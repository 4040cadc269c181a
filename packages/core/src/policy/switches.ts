/** The off switches and the like that people set in the environment. Reading is pure: the host hands over the variables. */
export type SwitchName =
  | 'DISABLE_COMPACT'
  | 'DISABLE_AUTO_COMPACT'
  | 'DISABLE_MICROCOMPACT'
  | 'ENABLE_PROMPT_CACHING_1H'
  | 'ENABLE_PROMPT_CACHING_1H_BEDROCK'
  | 'FORCE_PROMPT_CACHING_5M'
  | 'DISABLE_PROMPT_CACHING'

/** The second is the name people have from elsewhere; ours wins where both hold a percentage. */
export type PercentName = 'TIDEMARK_AUTOCOMPACT_PCT' | 'CLAUDE_AUTOCOMPACT_PCT_OVERRIDE'

export interface Switches {
  /** Those that are set. */
  readonly set: readonly SwitchName[]
  /** Per cent of effective for the auto-compact line, or null. */
  readonly autoCompactPercent: number | null
}

/** A variable that says something nobody understands: told to the person once, and ignored. */
export interface SwitchNotice {
  readonly variable: SwitchName | PercentName
  readonly value: string
  readonly message: string
}

export interface SwitchReading {
  readonly switches: Switches
  readonly notices: readonly SwitchNotice[]
}

export const NO_SWITCHES: Switches = { set: [], autoCompactPercent: null }

type Environment = Readonly<Record<string, string | undefined>>

const names: readonly SwitchName[] = [
  'DISABLE_COMPACT',
  'DISABLE_AUTO_COMPACT',
  'DISABLE_MICROCOMPACT',
  'ENABLE_PROMPT_CACHING_1H',
  'ENABLE_PROMPT_CACHING_1H_BEDROCK',
  'FORCE_PROMPT_CACHING_5M',
  'DISABLE_PROMPT_CACHING',
]
const percentNames: readonly PercentName[] = ['TIDEMARK_AUTOCOMPACT_PCT', 'CLAUDE_AUTOCOMPACT_PCT_OVERRIDE']
const on: readonly string[] = ['1', 'true', 'yes', 'on']
const off: readonly string[] = ['', '0', 'false', 'no', 'off']

export function readSwitches(environment: Environment): SwitchReading {
  const percents = percentNames.map((name) => percentOf(environment[name]))
  const switches: Switches = {
    set: names.filter((name) => on.includes(word(environment[name]))),
    autoCompactPercent: percents.find((percent) => percent !== null) ?? null,
  }
  return { switches, notices: [...switchNotices(environment), ...percentNotices(environment)] }
}

function word(value: string | undefined): string {
  return (value ?? '').trim().toLowerCase()
}

/** 0 < n ≤ 100 in plain decimals, or null. */
function percentOf(value: string | undefined): number | null {
  const digits = word(value)
  const percent = /^(\d+\.?\d*|\.\d+)$/.test(digits) ? Number(digits) : Number.NaN
  return percent > 0 && percent <= 100 ? percent : null
}

function switchNotices(environment: Environment): readonly SwitchNotice[] {
  return names
    .filter((name) => ![...on, ...off].includes(word(environment[name])))
    .map((name) =>
      notice(name, environment[name] ?? '', '1, true, yes or on to set it, 0, false, no or off not to'),
    )
}

function percentNotices(environment: Environment): readonly SwitchNotice[] {
  return percentNames
    .filter((name) => word(environment[name]) !== '' && percentOf(environment[name]) === null)
    .map((name) => notice(name, environment[name] ?? '', 'a number above 0 and at most 100, as in 80'))
}

function notice(variable: SwitchName | PercentName, value: string, expected: string): SwitchNotice {
  const message = `${variable} is ${JSON.stringify(value)} and was ignored: expected ${expected}.`
  return { variable, value, message }
}
