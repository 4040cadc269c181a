/** Options of the command `tidemark compact`, and the check of whether the command can run with them. */
import type { Terminal } from '@tidemark/terminal/terminal'

export interface CompactCommandOptions {
  readonly at?: string
  readonly from?: string
  readonly upTo?: string
  readonly instructions?: string
  readonly summarizer: 'local' | 'model'
  readonly target?: number
  readonly maxPercent?: number
  readonly ledger?: number
  readonly model?: string
  readonly window?: number
  readonly baseUrl?: string
  readonly session?: string
  readonly dryRun?: boolean
  readonly output?: string
  readonly force?: boolean
  readonly undo?: string
  readonly yes?: boolean
  readonly full?: boolean
  readonly json?: boolean
}

type OptionCheck = (choices: CompactCommandOptions, env: Terminal['env']) => string | null

const SUMMARY_OPTIONS: readonly (keyof CompactCommandOptions)[] = [
  'at',
  'from',
  'upTo',
  'instructions',
  'target',
  'maxPercent',
  'ledger',
]

const OPTION_CHECKS: readonly OptionCheck[] = [
  ({ from, upTo }) =>
    from !== undefined && upTo !== undefined
      ? '--from and --up-to exclude each other: give one of them.'
      : null,
  ({ dryRun, output }) =>
    dryRun === true && output !== undefined ? '--dry-run and -o exclude each other: give one of them.' : null,
  (choices) => {
    const isUndo = choices.undo !== undefined
    const other = isUndo ? SUMMARY_OPTIONS.find((name) => choices[name] !== undefined) : undefined
    return other === undefined ? null : `--undo cannot be combined with ${toFlag(other)}.`
  },
  ({ baseUrl, summarizer }) =>
    baseUrl !== undefined && summarizer === 'local' ? '--base-url needs --summarizer model.' : null,
  ({ baseUrl }) =>
    baseUrl !== undefined && !isUrl(baseUrl)
      ? `--base-url must be an http or https URL, not ${baseUrl}.`
      : null,
  ({ summarizer, undo }, env) =>
    summarizer === 'model' && undo === undefined && !hasApiKey(env)
      ? '--summarizer model needs a key: set ANTHROPIC_API_KEY (any text for tidemark simulate).'
      : null,
  ({ instructions }) => (instructions?.trim() === '' ? '--instructions is empty.' : null),
]

/** Returns a sentence about the first problem: options that exclude each other, an invalid value, a missing key; null if none. */
export function findOptionProblem(choices: CompactCommandOptions, env: Terminal['env']): string | null {
  for (const check of OPTION_CHECKS) {
    const conflict = check(choices, env)
    if (conflict !== null) return conflict
  }
  return null
}

function toFlag(name: keyof CompactCommandOptions): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

function isUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
}

function hasApiKey(env: Terminal['env']): boolean {
  return [env.ANTHROPIC_API_KEY, env.ANTHROPIC_AUTH_TOKEN].some((key) => key !== undefined && key !== '')
}
