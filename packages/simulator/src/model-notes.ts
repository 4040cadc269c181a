/** What the simulator needs to know of a model and no catalogue has: names for people, dates, who reads whom. */

/** An id without the date at its end, or the `-latest` that stood for one. */
export function canonicalName(id: string): string {
  return id.replace(/-(\d{8}|latest)$/, '')
}

/** `claude-opus-5-5` → `Claude Opus 5.5`. */
export function displayName(id: string): string {
  const words = id.split('-').map((word) => word.charAt(0).toUpperCase() + word.slice(1))
  return words.join(' ').replace(/(\d+) (\d+)/, '$1.$2')
}

const RELEASED: Readonly<Record<string, string>> = {
  'claude-fable-5-2': '2026-11-09',
  'claude-mythos-5-2': '2026-11-09',
  'claude-haiku-5-5': '2026-10-07',
  'claude-sonnet-5-5': '2026-09-28',
  'claude-opus-5-5': '2026-09-21',
  'claude-fable-5-1': '2026-09-01',
  'claude-mythos-5-1': '2026-09-01',
  'claude-sonnet-5': '2026-06-29',
  'claude-opus-4-5': '2025-11-24',
  'claude-haiku-4-5': '2025-10-15',
  'claude-sonnet-4-5': '2025-09-29',
}

export function releasedOn(id: string): string {
  return `${RELEASED[id] ?? '2026-01-01'}T00:00:00Z`
}

const NEWER_FABLES: readonly string[] = ['claude-fable-5-2', 'claude-mythos-5-2']
const FABLES: readonly string[] = ['claude-fable-5-1', 'claude-mythos-5-1', ...NEWER_FABLES]

/** Each model reads its own thinking; what the newest write is read by a few others at most. */
const READERS: Readonly<Record<string, readonly string[]>> = {
  'claude-fable-5-2': NEWER_FABLES,
  'claude-mythos-5-2': NEWER_FABLES,
  'claude-fable-5-1': FABLES,
  'claude-mythos-5-1': FABLES,
  'claude-opus-5-5': FABLES,
  'claude-sonnet-5-5': [],
  'claude-haiku-5-5': [],
}

export function readersOf(id: string): readonly string[] | undefined {
  return READERS[id]
}

export function unreadableFor(id: string): readonly string[] | undefined {
  return id === 'claude-opus-5-5' ? ['claude-fable-5', 'claude-mythos-5'] : undefined
}
