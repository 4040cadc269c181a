/** What a person may ask of `tidemark compact`, and which wishes do not go together. */
import type { Terminal } from '../terminal.ts'

export interface CompactChoices {
  readonly at?: string
  readonly from?: string
  readonly upTo?: string
  readonly instructions?: string
  readonly summarizer: 'local' | 'model'
  readonly target?: number
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

type Check = (choices: CompactChoices, env: Terminal['env']) => string | null

const ABOUT_SUMMARIES: readonly (keyof CompactChoices)[] = [
  'at',
  'from',
  'upTo',
  'instructions',
  'target',
  'ledger',
]

const CHECKS: readonly Check[] = [
  ({ from, upTo }) =>
    from !== undefined && upTo !== undefined
      ? '--from and --up-to are two ways to cut: give one of them.'
      : null,
  ({ dryRun, output }) =>
    dryRun === true && output !== undefined ? '--dry-run writes nothing: leave it out, or -o.' : null,
  (choices) => {
    const isUndo = choices.undo !== undefined
    const other = isUndo ? ABOUT_SUMMARIES.find((name) => choices[name] !== undefined) : undefined
    return other === undefined ? null : `--undo takes a compaction back: leave out ${flagOf(other)}.`
  },
  ({ baseUrl, summarizer }) =>
    baseUrl !== undefined && summarizer === 'local' ? '--base-url is for --summarizer model.' : null,
  ({ baseUrl }) =>
    baseUrl !== undefined && !isUrl(baseUrl) ? `--base-url is no http address: ${baseUrl}.` : null,
  ({ summarizer, undo }, env) =>
    summarizer === 'model' && undo === undefined && !hasKey(env)
      ? '--summarizer model needs a key: set ANTHROPIC_API_KEY (for tidemark simulate any text does).'
      : null,
  ({ instructions }) => (instructions?.trim() === '' ? '--instructions says nothing.' : null),
]

/** One sentence on what does not go together; null where all does. */
export function wrongChoice(choices: CompactChoices, env: Terminal['env']): string | null {
  for (const check of CHECKS) {
    const wrong = check(choices, env)
    if (wrong !== null) return wrong
  }
  return null
}

function flagOf(name: keyof CompactChoices): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

function isUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
}

function hasKey(env: Terminal['env']): boolean {
  return [env.ANTHROPIC_API_KEY, env.ANTHROPIC_AUTH_TOKEN].some((key) => key !== undefined && key !== '')
}
