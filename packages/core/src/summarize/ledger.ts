/**
 * The ledger: which names the work is using, grouped by file, the likeliest to be needed first, within a budget.
 * Made anew from the whole history at every compaction, so it neither grows nor fades over rounds.
 */
import type { KnownRecord } from '../conversation/record.ts'
import type { Estimator } from '../measure/estimate.ts'
import { type LedgerFile, ledgerLines } from './ledger-lines.ts'
import { mentionsOf } from './mention.ts'
import { redact } from './redact.ts'
import { type WeighedFile, type WeighedName, weighNames } from './weigh-names.ts'

export interface Ledger {
  readonly files: readonly LedgerFile[]
  /** Names that belong to no file that is listed. */
  readonly names: readonly string[]
  readonly lines: readonly string[]
  readonly text: string
  readonly tokens: number
}

export interface LedgerRules {
  readonly tokens: number
  readonly estimate: Estimator
}

export function ledgerOf(history: readonly KnownRecord[], rules: LedgerRules): Ledger {
  const { files, identifiers } = weighNames(mentionsOf(history))
  const candidates = [...files.map(fileCandidate), ...identifiers.map(nameCandidate)]
  const ranked = candidates
    .map((candidate) => ({ candidate, density: candidate.weight / cost(candidate.spelt, rules) }))
    .toSorted((one, other) => other.density - one.density || compare(one.candidate, other.candidate))
    .map(({ candidate }) => candidate)
    .slice(0, rules.tokens)
    .filter(({ spelt }) => redact(spelt) === spelt)
  return fitted(ranked, rules)
}

/** Of the ranked candidates as many as fit, found by halving: one more never makes the text shorter by much. */
function fitted(ranked: readonly Candidate[], rules: LedgerRules): Ledger {
  let fits = 0
  let most = ranked.length + 1
  while (most - fits > 1) {
    const tried = Math.floor((fits + most) / 2)
    if (drawn(ranked.slice(0, tried), rules).tokens <= rules.tokens) fits = tried
    else most = tried
  }
  return drawn(ranked.slice(0, fits), rules)
}

function drawn(chosen: readonly Candidate[], rules: LedgerRules): Ledger {
  const listed = new Set(chosen.flatMap(({ file }) => (file === null ? [] : [file.path])))
  const spelt = new Set([...listed].flatMap((path) => path.split(/[^A-Za-z0-9_$]+/)))
  const names = chosen.flatMap(({ name }) => (name === null || spelt.has(name.name) ? [] : [name]))
  const symbols = new Map<string, string[]>([...listed, ''].map((path) => [path, []]))
  for (const { name, file } of names) symbols.get(file !== null && listed.has(file) ? file : '')?.push(name)
  const files = chosen.flatMap(({ file }) =>
    file === null ? [] : [{ ...file, symbols: symbols.get(file.path) ?? [] }],
  )
  const rest = symbols.get('') ?? []
  const lines = chosen.length === 0 ? [] : ledgerLines(files, rest)
  const text = lines.join('\n')
  return { files, names: rest, lines, text, tokens: text === '' ? 0 : rules.estimate.text(text) }
}

interface Candidate {
  readonly weight: number
  readonly spelt: string
  readonly file: WeighedFile | null
  readonly name: WeighedName | null
}

function fileCandidate(file: WeighedFile): Candidate {
  return { weight: file.weight, spelt: file.path, file, name: null }
}

function nameCandidate(name: WeighedName): Candidate {
  return { weight: name.weight, spelt: name.name, file: null, name }
}

/** Repeated, so that a rounded figure does not make short names look alike. */
function cost(spelt: string, { estimate }: LedgerRules): number {
  return estimate.text(` ${spelt}`.repeat(8))
}

function compare(one: Candidate, other: Candidate): number {
  return one.spelt < other.spelt ? -1 : 1
}
