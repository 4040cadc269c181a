/** Runs every golden session and turns what was observed into short hashes; with `GOLDEN_DUMP` keeps the texts. */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { driveSession } from './drive.ts'
import { runCommand } from './harness.ts'
import { SAMPLES } from './samples.ts'
import { SESSIONS } from './sessions.ts'

/** One line each: what was observed, in order. */
export type Golden = Readonly<Record<string, readonly string[]>>

interface Observation {
  readonly label: string
  readonly text: string
}

/** UUIDs by order of first appearance, and the temporary folder by name: two runs must agree. */
function createNormaliser(folder: string): (text: string) => string {
  const ids = new Map<string, string>()
  return (text) =>
    text
      .replaceAll(folder, '/golden')
      .replace(/^(\{"type":"tidemark",.*"timestamp":")[^"]*/, '$12026-11-20T09:00:00.000Z')
      .replace(/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, (id) => {
        const known = ids.get(id) ?? `00000000-0000-4000-8000-${String(ids.size + 1).padStart(12, '0')}`
        ids.set(id, known)
        return known
      })
}

/**
 * A link to a folder for temporary files, with the name of this process. A compaction by command names the log's path in the
 * summary, and the estimate depends on it: so the path is as long everywhere and differs in digits only.
 */
function linkRoot(): { readonly root: string; remove(): void } {
  const temporary = existsSync('/tmp') ? '/tmp' : tmpdir()
  const root = join(temporary, `tidemark-golden-${String(process.pid).padStart(10, '0')}`)
  rmSync(root, { recursive: true, force: true, maxRetries: 10 })
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-golden-'))
  symlinkSync(folder, root, 'junction')
  return {
    root,
    remove() {
      rmSync(root)
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
    },
  }
}

export async function observeAll(dump: string | undefined): Promise<Golden> {
  const { root, remove } = linkRoot()
  try {
    const golden: Record<string, readonly string[]> = {}
    for (const [index, plan] of SESSIONS.entries()) {
      const folder = join(root, `session-${String(index + 1).padStart(2, '0')}`)
      golden[plan.name] = hashes(plan.name, await observeSession(plan, folder), { folder, dump })
    }
    for (const [name, lines] of Object.entries(SAMPLES)) {
      const folder = join(root, name)
      mkdirSync(folder, { recursive: true })
      const log = join(folder, 'sample.jsonl')
      writeFileSync(log, lines())
      golden[name] = hashes(name, [await inspect(log, folder), await compact(log, folder)], { folder, dump })
    }
    return golden
  } finally {
    remove()
  }
}

async function observeSession(
  plan: (typeof SESSIONS)[number],
  folder: string,
): Promise<readonly Observation[]> {
  const { steps, log, markdown } = await driveSession(plan, folder)
  return [
    ...steps.flatMap(({ step, end, requests, records }) => [
      ...requests.map((text, index) => ({ label: `${step}, request ${index + 1}`, text })),
      ...records.map((text, index) => ({ label: `${step}, record ${index + 1}`, text })),
      { label: `${step}, end`, text: end },
    ]),
    await inspect(log, folder),
    // Either is slow, and half of the sessions show enough of it.
    markdown === null ? await compact(log, folder) : { label: 'export', text: markdown },
  ]
}

async function inspect(log: string, folder: string): Promise<Observation> {
  return { label: 'inspect --json', text: await runCommand(['inspect', log, '--json'], folder) }
}

async function compact(log: string, folder: string): Promise<Observation> {
  return { label: 'compact --json', text: await runCommand(['compact', log, '--dry-run', '--json'], folder) }
}

interface Where {
  readonly folder: string
  readonly dump: string | undefined
}

function hashes(name: string, observed: readonly Observation[], { folder, dump }: Where): readonly string[] {
  const normalise = createNormaliser(folder)
  const texts = observed.map(({ label, text }) => ({ label, text: normalise(text) }))
  if (dump !== undefined) {
    const all = texts.map(({ label, text }) => `=== ${label}\n${text}\n`).join('')
    mkdirSync(dump, { recursive: true })
    writeFileSync(join(dump, `${name.replaceAll(' ', '-')}.txt`), all)
  }
  return texts.map(({ label, text }) => `${label}: ${shortHash(text)}`)
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}

/** The first line in which each session differs, in words. Empty where all agree. */
export function differences(expected: Golden, found: Golden): readonly string[] {
  const names = [...new Set([...Object.keys(expected), ...Object.keys(found)])]
  return names.flatMap((name) => {
    const before = expected[name] ?? []
    const now = found[name] ?? []
    const length = Math.max(before.length, now.length)
    const count = Array.from({ length }, (_, place) => place).filter((place) => before[place] !== now[place])
    const [first] = count
    if (first === undefined) return []
    const was = before[first] ?? 'nothing'
    return [
      `${name}: ${count.length} of ${length} lines; first: expected ${was}, found ${now[first] ?? 'nothing'}`,
    ]
  })
}
