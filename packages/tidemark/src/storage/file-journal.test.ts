import type { Journal } from '@tidemark/core/engine/ports'
import type { Damage } from '@tidemark/core/log/decode-log'
import { createFakeClock, readAllRecords, sampleRecord, sampleRecords } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { createSystemError } from '../testing/crash-file-node.ts'
import { type CrashFileSystem, createCrashFileSystem } from '../testing/crash-file-system.ts'
import { createFakeProcessTable } from '../testing/fake-machine.ts'
import { listUuids } from '../testing/journal-refusal-cases.ts'
import { appendAllBytes, readFileSnapshot } from './atomic-file.ts'
import { createFileJournal, type FileJournal } from './file-journal.ts'

const LOG = '/home/sessions/s.jsonl'
const LOCK = '/home/sessions/s.lock'
const HEADER =
  '{"type":"tidemark","format":"tidemark-session","version":1,"sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z"}'

interface Scene {
  readonly files: CrashFileSystem
  readonly clock: ReturnType<typeof createFakeClock>
  readonly machine: ReturnType<typeof createFakeProcessTable>
  /** A journal in a new process. */
  open(): FileJournal
}

function scene(): Scene {
  const clock = createFakeClock()
  const files = createCrashFileSystem({ directories: ['/home', '/home/sessions'], now: () => clock.now() })
  const machine = createFakeProcessTable()
  const open = () => createFileJournal({ home: '/home', files, clock, processes: machine.start() })
  return { files, clock, machine, open }
}

async function textOf(files: CrashFileSystem, path: string = LOG): Promise<string> {
  return Buffer.from((await readFileSnapshot(files, path))?.bytes ?? []).toString()
}

async function put(files: CrashFileSystem, content: string | Uint8Array, path: string = LOG): Promise<void> {
  const file = (await files.open(path, 'create')) ?? (await files.open(path, 'append'))
  if (file !== null) await appendAllBytes(file, Buffer.from(content))
  await file?.close()
}

function kinds(damage: readonly Damage[]): readonly string[] {
  return damage.map(({ kind, line }) => `${kind} ${line}`)
}

describe('the log', () => {
  it('has a header and one line per record', async () => {
    const { files, open } = scene()
    const journal = open()
    await journal.append('s', 0, [{ type: 'note', uuid: 'a' }])
    await journal.append('s', 1, [{ type: 'note', uuid: 'b' }, { type: 'note' }])
    expect((await textOf(files)).split('\n')).toEqual([
      HEADER,
      '{"seq":1,"type":"note","uuid":"a"}',
      '{"seq":2,"batch":{"id":"b","index":0,"of":2},"type":"note","uuid":"b"}',
      '{"seq":3,"batch":{"id":"b","index":1,"of":2},"type":"note"}',
      '',
    ])
  })

  it('of another tool is read and can be appended to', async () => {
    const { files, open } = scene()
    const theirs =
      '{"type":"summary","summary":"x"}\n{"type":"user","uuid":"u","message":{"role":"user","content":"hi"}}'
    await put(files, theirs)
    const journal = open()
    expect(await readAllRecords(journal, 's')).toMatchObject({ exists: true, position: 2, damage: [] })
    await journal.append('s', 2, [{ type: 'note', uuid: 'a' }])
    expect(await textOf(files)).toBe(`${theirs}\n${HEADER}\n{"seq":3,"type":"note","uuid":"a"}\n`)
    expect(await readAllRecords(journal, 's')).toMatchObject({ position: 3, damage: [] })
  })

  it.each<[string, string | Uint8Array, readonly string[], number]>([
    ['empty', '', [], 0],
    ['with a byte order mark and CRLF', `\uFEFF${HEADER}\r\n{"seq":1,"type":"note"}\r\n`, [], 1],
    ['of NUL bytes alone', new Uint8Array(5000), ['torn-line 1'], 0],
    ['with a hole', `${HEADER}\n${'\0'.repeat(4096)}\n{"seq":1,"type":"note"}\n`, ['bad-json 2'], 1],
    ['torn in its header', HEADER.slice(0, 40), ['torn-line 1'], 0],
    [
      'with a line nested too deeply',
      `${HEADER}\n{"seq":1,"type":"note"}\n{"type":"note","x":${'['.repeat(20_000)}${']'.repeat(20_000)}}\n`,
      ['bad-shape 3'],
      1,
    ],
    [
      'torn in a character',
      Buffer.from(`${HEADER}\n{"seq":1,"type":"é`).subarray(0, -1),
      ['bad-json 2', 'torn-line 2'],
      0,
    ],
    [
      'with bytes that are not UTF-8',
      Buffer.concat([Buffer.from(`${HEADER}\n{"seq":1,"type":"n`), Buffer.from([0xc3]), Buffer.from('"}\n')]),
      ['bad-json 2'],
      1,
    ],
  ])(
    '%s is read, its damage is reported, and it can be appended to',
    async (_name, content, damage, position) => {
      const { files, open } = scene()
      await put(files, content)
      const journal = open()
      const read = await readAllRecords(journal, 's')
      expect({ position: read.position, damage: [...kinds(read.damage)].sort() }).toEqual({
        position,
        damage,
      })
      expect(await journal.append('s', position, sampleRecords('x', 'y'))).toMatchObject({ ok: true })
      expect((await listUuids(open(), 's')).slice(position)).toEqual(['x', 'y'])
    },
  )

  it.each([
    ['text', 'hello\nworld\n'],
    ['JSON of another kind', '{"name":"x"}\n'],
  ])('that is not a log but %s is refused and not changed', async (_name, content) => {
    const { files, open } = scene()
    await put(files, content)
    const journal = open()
    await expect(readAllRecords(journal, 's')).rejects.toMatchObject({ code: 'not-a-session' })
    await expect(journal.append('s', 0, sampleRecords('a'))).rejects.toMatchObject({ code: 'not-a-session' })
    expect(await textOf(files)).toBe(content)
  })

  it('of a newer version is refused and not changed', async () => {
    const { files, open } = scene()
    const content = `${HEADER.replace('"version":1', '"version":7')}\n`
    await put(files, content)
    const expected = { code: 'newer-format', details: { version: 7, known: 1 } }
    await expect(readAllRecords(open(), 's')).rejects.toMatchObject(expected)
    await expect(open().append('s', 0, sampleRecords('a'))).rejects.toMatchObject(expected)
    expect(await textOf(files)).toBe(content)
    expect(await files.facts(LOCK)).toBe(null)
  })

  it('cannot be a directory', async () => {
    const { files, open } = scene()
    await files.makeDirectory(LOG)
    await expect(readAllRecords(open(), 's')).rejects.toMatchObject({ code: 'not-a-session' })
    expect(await open().list()).toEqual([])
  })
})

describe('appending', () => {
  it('makes appends that wait together durable with one write and one sync', async () => {
    const { files, open } = scene()
    const journal = open()
    await journal.append('s', 0, sampleRecords('first'))
    const { append, sync, syncDirectory } = files.counts
    await Promise.all(
      Array.from({ length: 50 }, (_, index) => journal.append('s', index + 1, sampleRecords(`r${index}`))),
    )
    expect(files.counts).toMatchObject({ append: append + 1, sync: sync + 1, syncDirectory })
  })

  it('syncs once per append, and the folder once per session', async () => {
    const { files, open } = scene()
    const journal = open()
    for (let position = 0; position < 10; position += 1)
      await journal.append('s', position, sampleRecords(`r${position}`))
    expect(files.counts.sync).toBe(10)
    const { syncDirectory } = files.counts
    await journal.append('t', 0, sampleRecords('a'))
    expect(files.counts.syncDirectory).toBe(syncDirectory + 1)
  })

  it('does not read the log again after a read', async () => {
    const { files, machine, open } = scene()
    await open().append('s', 0, sampleRecords('a'))
    machine.restart()
    const journal = open()
    await readAllRecords(journal, 's')
    const logReads = countReads(files)
    expect(await journal.append('s', 1, sampleRecords('b'))).toMatchObject({ ok: true })
    await journal.release('s')
    expect(await journal.append('s', 2, sampleRecords('c'))).toMatchObject({ ok: true })
    expect(logReads()).toBe(0)
  })

  it('continues after short writes', async () => {
    const { files, open } = scene()
    files.interfere(({ kind, bytes }) => (kind === 'append' ? { takes: Math.ceil(bytes / 2) } : undefined))
    const journal = open()
    expect(await journal.append('s', 0, sampleRecords('a', 'b', 'c'))).toMatchObject({
      ok: true,
      position: 3,
    })
    expect(await listUuids(journal, 's')).toEqual(['a', 'b', 'c'])
  })

  it('does not show an unfinished write to readers of the same journal', async () => {
    const { files, open } = scene()
    const journal = open()
    await journal.append('s', 0, sampleRecords('a'))
    const reads: ReturnType<typeof readAllRecords>[] = []
    files.interfere(({ kind, bytes }) => {
      if (kind !== 'append') return undefined
      reads.push(readAllRecords(journal, 's'))
      return { takes: Math.min(20, bytes) }
    })
    await journal.append('s', 1, sampleRecords('b', 'c'))
    const seen = await Promise.all(reads)
    expect(reads.length).toBeGreaterThan(5)
    for (const { damage, records } of seen) {
      expect(damage).toEqual([])
      expect([1, 3]).toContain(records.length)
    }
  })

  it('sees what a writer that ignores the lock has added', async () => {
    const { files, open } = scene()
    const journal = open()
    await journal.append('s', 0, sampleRecords('a'))
    await put(files, '{"type":"user","uuid":"u","message":{"role":"user","content":"hi"}}\n')
    expect(await journal.append('s', 1, sampleRecords('b'))).toEqual({
      ok: false,
      reason: 'conflict',
      position: 2,
    })
    expect(await journal.append('s', 2, sampleRecords('b'))).toMatchObject({ ok: true, position: 3 })
    expect(await listUuids(journal, 's')).toEqual(['a', 'u', 'b'])
  })

  it('sees that the log was removed or replaced', async () => {
    const { files, open } = scene()
    const journal = open()
    await journal.append('s', 0, sampleRecords('a'))
    await files.remove(LOG)
    expect(await journal.append('s', 1, sampleRecords('b'))).toEqual({
      ok: false,
      reason: 'conflict',
      position: 0,
    })
    await journal.append('s', 0, sampleRecords('c'))
    await put(files, await textOf(files), '/home/sessions/copy')
    await files.rename('/home/sessions/copy', LOG)
    await journal.append('s', 1, sampleRecords('d'))
    expect(await listUuids(journal, 's')).toEqual(['c', 'd'])
  })
})

/** How often the log was read since. */
function countReads(files: CrashFileSystem): () => number {
  let reads = 0
  files.interfere(({ kind, path }) => {
    reads += kind === 'read' && path === LOG ? 1 : 0
    return undefined
  })
  return () => reads
}

describe('when the disk fails', () => {
  async function failing(
    at: 'append' | 'sync',
    takes: number,
  ): Promise<{ readonly scene: Scene; readonly journal: Journal }> {
    const made = scene()
    const journal = made.open()
    await journal.append('s', 0, sampleRecords('a', 'b'))
    made.files.interfere(({ kind, path }) =>
      kind === at && path === LOG ? { error: createSystemError('ENOSPC', path), takes } : undefined,
    )
    return { scene: made, journal }
  }

  it.each([0, 1, 50, 300])(
    'every append of the group hears it, and %i bytes of it do no harm',
    async (takes) => {
      const { scene: made, journal } = await failing('append', takes)
      const group = [
        journal.append('s', 2, sampleRecords('c', 'd')),
        journal.append('s', 4, sampleRecords('e')),
      ]
      for (const append of group)
        await expect(append).rejects.toMatchObject({
          code: 'io-failed',
          message: `Could not append to session "s" (${LOG}): ENOSPC: ${LOG}`,
          cause: { code: 'ENOSPC' },
        })
      made.files.interfere(null)
      expect(await journal.append('s', 2, sampleRecords('f', 'g'))).toMatchObject({ ok: true, position: 4 })
      const { records, damage } = await readAllRecords(made.open(), 's')
      expect(records.map(({ uuid }) => uuid)).toEqual(['a', 'b', 'f', 'g'])
      expect(damage.length > 0).toBe(takes > 0)
    },
  )

  it('a failed sync is not tried again: the file is read instead', async () => {
    const { scene: made, journal } = await failing('sync', 0)
    const { sync } = made.files.counts
    await expect(journal.append('s', 2, sampleRecords('c'))).rejects.toMatchObject({ code: 'io-failed' })
    expect(made.files.counts.sync).toBe(sync + 1)
    made.files.interfere(null)
    expect(await journal.append('s', 2, sampleRecords('d'))).toEqual({
      ok: false,
      reason: 'conflict',
      position: 3,
    })
    expect(await listUuids(journal, 's')).toEqual(['a', 'b', 'c'])
  })

  it('a folder that cannot be made, a log that cannot be read and a failed listing are reported', async () => {
    const { files, open } = scene()
    const journal = open()
    files.interfere(({ path }) => ({ error: createSystemError('EACCES', path) }))
    const expected = { code: 'io-failed', cause: { code: 'EACCES' } }
    await expect(journal.append('s', 0, sampleRecords('a'))).rejects.toMatchObject(expected)
    await expect(journal.acquire('s')).rejects.toMatchObject(expected)
    await expect(journal.list()).rejects.toMatchObject(expected)
    files.interfere(({ kind, path }) =>
      kind === 'open' ? { error: createSystemError('EACCES', path) } : undefined,
    )
    await expect(readAllRecords(journal, 's')).rejects.toMatchObject(expected)
    files.interfere(null)
    expect(await journal.append('s', 0, sampleRecords('a'))).toMatchObject({ ok: true })
    files.interfere(({ kind, path }) =>
      kind === 'read' ? { error: createSystemError('EIO', path) } : undefined,
    )
    await expect(readAllRecords(journal, 's')).rejects.toMatchObject({
      code: 'io-failed',
      cause: { code: 'EIO' },
    })
  })
})

describe('the session', () => {
  it('can be locked before anything is written', async () => {
    const { open } = scene()
    const [one, other] = [open(), open()]
    expect(await one.acquire('s')).toEqual({ ok: true })
    expect(await one.acquire('s')).toEqual({ ok: true })
    expect(await other.acquire('s')).toMatchObject({
      ok: false,
      reason: 'locked',
      owner: 'tidemark (process 1 on wren)',
    })
    expect(await other.append('s', 0, sampleRecords('a'))).toMatchObject({ ok: false, reason: 'locked' })
    expect(await one.list()).toEqual([])
    await one.close()
    expect(await other.append('s', 0, sampleRecords('a'))).toMatchObject({ ok: true })
  })

  it('of a writer that died is taken over with everything it made durable', async () => {
    const { machine, open } = scene()
    await open().append('s', 0, sampleRecords('a', 'b'))
    machine.restart()
    const journal = open()
    expect(await readAllRecords(journal, 's')).toMatchObject({ position: 2, damage: [] })
    expect(await journal.append('s', 2, sampleRecords('c'))).toMatchObject({ ok: true, position: 3 })
  })

  it('that another machine took over while this one was suspended is not written', async () => {
    const { clock, files, open } = scene()
    const journal = open()
    await journal.append('s', 0, sampleRecords('a'))
    await clock.advance(700_000)
    const far = createFileJournal({
      home: '/home',
      files,
      clock,
      processes: createFakeProcessTable('far').start(),
    })
    expect(await far.append('s', 1, sampleRecords('b'))).toMatchObject({ ok: true })
    expect(await journal.append('s', 1, sampleRecords('x'))).toMatchObject({ ok: false, reason: 'locked' })
    expect(await listUuids(journal, 's')).toEqual(['a', 'b'])
    await far.release('s')
    expect(await journal.append('s', 1, sampleRecords('x'))).toEqual({
      ok: false,
      reason: 'conflict',
      position: 2,
    })
  })

  it('whose lock file was removed is locked again', async () => {
    const { files, open } = scene()
    const journal = open()
    await journal.append('s', 0, sampleRecords('a'))
    await files.remove(LOCK)
    expect(await journal.append('s', 1, sampleRecords('b'))).toMatchObject({ ok: true })
    expect((await files.facts(LOCK))?.kind).toBe('file')
  })

  it('is listed only if it has a log', async () => {
    const { files, open } = scene()
    await open().append('s', 0, [sampleRecord('a')])
    await put(files, '', '/home/sessions/.hidden.jsonl')
    await put(files, '', '/home/sessions/notes.txt')
    expect(await open().list()).toEqual(['s'])
  })
})
