/**
 * The ways one model is spelt: with a date, by a cloud platform, by a gateway, with a wish in brackets. Each
 * peel takes one layer off and keeps what it said. Nothing is guessed: `claude-opus-5-6` is not `claude-opus-5`.
 */
export interface Spelling {
  readonly platform: 'bedrock' | 'vertex' | null
  /** Where the endpoint is tied to, as the platform names it; `global` is nowhere. */
  readonly region: string | null
  readonly snapshot: string | null
  /** `[1m]`: the larger window was asked for. */
  readonly isLong: boolean
}

export interface Candidate {
  readonly name: string
  readonly spelling: Spelling
}

const PLAIN: Spelling = { platform: null, region: null, snapshot: null, isLong: false }

interface Peel {
  readonly pattern: RegExp
  /** What is left of the name. */
  readonly left: string
  readonly says?: (match: RegExpExecArray) => Partial<Spelling>
}

const VENDORS = 'anthropic|openai|google|azure|bedrock|amazon-bedrock|vertex|google-vertex'
const onBedrock = () => ({ platform: 'bedrock' }) as const

const PEELS: readonly Peel[] = [
  { pattern: /^(.+)\[1m\]$/, left: '$1', says: () => ({ isLong: true }) },
  { pattern: /^(.*\/)([^/]+)$/, left: '$2', says: ([, path]) => saidByPath(path ?? '') },
  { pattern: new RegExp(`^(?:${VENDORS}):(.+)$`), left: '$1' },
  { pattern: /^(.+):(?:thinking|beta)$/, left: '$1' },
  {
    pattern: /^([a-z]{2,6}(?:-gov)?)\.(anthropic\..+)$/,
    left: '$2',
    says: ([, region]) => ({ platform: 'bedrock', region: region ?? null }),
  },
  { pattern: /^anthropic\.(.+)$/, left: '$1', says: onBedrock },
  { pattern: /^(claude-.+)-v\d(?::\d+(?::\d+k)?)?$/, left: '$1', says: onBedrock },
  {
    pattern: /^(.+)@(\d{8}|latest|default)$/,
    left: '$1',
    says: ([, , snapshot]) => ({ platform: 'vertex', ...dated(snapshot) }),
  },
  { pattern: /^(.+)-thinking$/, left: '$1' },
  { pattern: /^(.+)-(\d{8}|\d{4}-\d\d-\d\d)$/, left: '$1', says: ([, , snapshot]) => dated(snapshot) },
  { pattern: /^(.+)-latest$/, left: '$1' },
  { pattern: /^(claude-[^.]*\d)\.(\d+)(.*)$/, left: '$1-$2$3' },
  { pattern: /^claude-([a-z]+)-3-(\d)$/, left: 'claude-3-$2-$1' },
  { pattern: /^claude-([a-z]+)-3$/, left: 'claude-3-$1' },
  { pattern: /^claude-([4-9])-(\d{1,2})-([a-z]+)$/, left: 'claude-$3-$1-$2' },
  { pattern: /^claude-([4-9])-([a-z]+)$/, left: 'claude-$2-$1' },
]

/** The id as given, then with one layer after another off, and what those layers said. */
export function candidatesOf(id: string): readonly Candidate[] {
  const found: Candidate[] = [{ name: id, spelling: PLAIN }]
  let last: Candidate = { name: id.trim().toLowerCase(), spelling: PLAIN }
  if (last.name !== id) found.push(last)
  for (const peel of PEELS) {
    const next = peeled(last, peel)
    if (next === null) continue
    found.push(next)
    last = next
  }
  return found
}

function peeled({ name, spelling }: Candidate, { pattern, left, says }: Peel): Candidate | null {
  const match = pattern.exec(name)
  if (match === null) return null
  return { name: name.replace(pattern, left), spelling: { ...spelling, ...says?.(match) } }
}

function dated(snapshot: string | undefined): Partial<Spelling> {
  return snapshot !== undefined && /^\d/.test(snapshot) ? { snapshot } : {}
}

/** `projects/p/locations/us-east5/publishers/anthropic/models/`, an ARN, or a gateway's `anthropic/`. */
function saidByPath(path: string): Partial<Spelling> {
  if (path.includes('bedrock')) return { platform: 'bedrock' }
  const place = /locations\/([^/]+)\//.exec(path)
  if (place !== null) return { platform: 'vertex', region: place[1] ?? null }
  return /vertex|publishers\//.test(path) ? { platform: 'vertex' } : {}
}
