/** A journal that resumes reading gives the same result as one that reads the whole log. */

import { readAllRecords, sampleRecord } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type CrashFileSystem, createCrashFileSystem } from '../testing/crash-file-system.ts'
import { createFakeProcessTable } from '../testing/fake-machine.ts'
import { appendAllBytes } from './atomic-file.ts'
import { createFileJournal, type FileJournal } from './file-journal.ts'
import type { FileSystem } from './file-system.ts'

const LOG = '/home/sessions/s.jsonl'

async function put(files: FileSystem, text: string): Promise<void> {
  const file = (await files.open(LOG, 'append')) ?? (await files.open(LOG, 'create'))
  if (file !== null) await appendAllBytes(file, Buffer.from(text))
  await file?.close()
}

function foreign(uuid: string): string {
  return `{"type":"user","uuid":"${uuid}","message":{"role":"user","content":"hi"}}\n`
}

/** Changes to a log by programs that ignore the lock. */
const INTRUSIONS: readonly string[] = [
  foreign('f'),
  foreign('f') + foreign('g'),
  foreign('f').trimEnd(),
  '{"type":"us',
  'garbage\n',
  '\n',
  '\0\0\0',
  '{"seq":1,"type":"note","uuid":"old"}\n',
  '{"seq":90,"type":"note","uuid":"ahead"}\n',
  '{"seq":3,"batch":{"id":"x","index":0,"of":2},"type":"note","uuid":"x0"}\n',
  '{"seq":4,"batch":{"id":"x","index":1,"of":2},"type":"note","uuid":"x1"}\n',
  '{"type":"tidemark","format":"tidemark-session","version":1,"sessionId":"s","timestamp":"t"}\n',
]

type Step =
  | { readonly does: 'append'; readonly count: number }
  | { readonly does: 'intrude'; readonly text: string }
  | { readonly does: 'read'; readonly back: number }
  | { readonly does: 'replace' }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ does: fc.constant('append' as const), count: fc.integer({ min: 1, max: 3 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ does: fc.constant('intrude' as const), text: fc.constantFrom(...INTRUSIONS) }),
  },
  { weight: 4, arbitrary: fc.record({ does: fc.constant('read' as const), back: fc.nat({ max: 6 }) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('replace' as const) }) },
)

class Run {
  readonly files: CrashFileSystem = createCrashFileSystem({ directories: ['/home', '/home/sessions'] })
  readonly machine = createFakeProcessTable()
  readonly journal: FileJournal = this.open()
  position = 0
  made = 0

  open(): FileJournal {
    return createFileJournal({ home: '/home', files: this.files, processes: this.machine.start() })
  }

  async do(step: Step): Promise<void> {
    if (step.does === 'append') await this.append(step.count)
    else if (step.does === 'intrude') await put(this.files, step.text)
    else if (step.does === 'replace') await this.files.remove(LOG)
    else await this.read(Math.max(0, this.position - step.back))
  }

  async append(count: number): Promise<void> {
    const records = Array.from({ length: count }, (_, index) => sampleRecord(`r${this.made + index}`))
    this.made += count
    const outcome = await this.journal.append('s', this.position, records).catch(() => null)
    if (outcome?.ok === true || outcome?.reason === 'conflict') this.position = outcome.position
  }

  async read(from: number): Promise<void> {
    const [here, anew] = await Promise.all([told(this.journal, from), told(this.open(), from)])
    expect(here).toEqual(anew)
  }
}

/** A file that is not a session is refused by both. */
async function told(journal: FileJournal, from: number): Promise<unknown> {
  try {
    const { damage, ...read } = await readAllRecords(journal, 's', from)
    return { ...read, damage: damage.map(({ kind, line, why }) => `${line} ${kind} ${why}`).sort() }
  } catch (error) {
    return error instanceof Error ? error.message : error
  }
}

describe('resumed reading', () => {
  it('gives the same as reading the whole log, whatever happened to it', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 14 }), async (steps) => {
        const run = new Run()
        for (const one of steps) await run.do(one)
        for (const from of [0, 1, run.position - 1, run.position]) await run.read(Math.max(0, from))
      }),
      { numRuns: 400 },
    )
  })

  it('reads only what is new, also after a conflict', async () => {
    const { files, journal } = new Run()
    const large = Array.from({ length: 40 }, (_, index) => sampleRecord(`r${index}`, 'x'.repeat(100_000)))
    await journal.append('s', 0, large)
    const bytes = countBytes(files)
    expect((await readAllRecords(journal, 's', 40)).records).toEqual([])
    await put(files, foreign('f'))
    expect(await journal.append('s', 40, [sampleRecord('x')])).toMatchObject({
      reason: 'conflict',
      position: 41,
    })
    expect((await readAllRecords(journal, 's', 40)).records).toMatchObject([{ uuid: 'f' }])
    expect(await journal.append('s', 41, [sampleRecord('x')])).toMatchObject({ ok: true })
    expect((await readAllRecords(journal, 's', 41)).records).toMatchObject([{ uuid: 'x' }])
    expect(bytes()).toBeLessThan(20_000)
    await readAllRecords(journal, 's')
    expect(bytes()).toBeGreaterThan(4_000_000)
  })
})

/** How many bytes of the log were read since. */
function countBytes(files: CrashFileSystem): () => number {
  const { open } = files
  let bytes = 0
  files.open = async (path, purpose) => {
    const file = await open(path, purpose)
    if (file === null || path !== LOG) return file
    const read: typeof file.read = async (into, position) => {
      const count = await file.read(into, position)
      bytes += count
      return count
    }
    return { ...file, read }
  }
  return () => bytes
}
