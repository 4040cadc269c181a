import { Buffer } from 'node:buffer'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import type { RecordWithLine } from '@tidemark/wire/readers/log-reader'
import { describe, expect, it } from 'vitest'
import { logFolder, text, userLine } from '../../test/log-folder.ts'
import { type LogReadResult, openLog } from './open-log.ts'
import type { LineReadOptions, ReadProgress } from './read-lines.ts'

interface Read extends LogReadResult {
  readonly uuids: readonly (string | undefined)[]
  readonly packing: string
  readonly format: string
}

async function read(path: string, options: LineReadOptions = {}): Promise<Read> {
  const log = await openLog(path, options)
  if (!log.ok) throw new Error(log.message)
  const records: RecordWithLine[] = []
  const end = await log.read((given) => records.push(...given))
  return { ...end, uuids: records.map(({ record }) => record.uuid), packing: log.packing, format: log.format }
}

const THREE = text(userLine('a'), userLine('b'), userLine('c'))
const MANY = Array.from({ length: 5000 }, (_, index) => userLine(`r${index}`, { noise: Math.sin(index) }))
const EXPECTED =
  'expected the JSON lines of a Claude Code session, of a Codex rollout or of a session of Tidemark'

describe('a compressed log', () => {
  it.each([
    ['none', Buffer.from(THREE)],
    ['gzip', gzipSync(THREE)],
    ['gzip', Buffer.concat([gzipSync(text(userLine('a'))), gzipSync(text(userLine('b'), userLine('c')))])],
    ['zstd', zstdCompressSync(THREE)],
  ])('%s is known by its bytes, whatever its name', async (packing, bytes) => {
    const folder = logFolder()
    for (const name of ['log.jsonl', 'log.jsonl.gz', 'log']) {
      expect(await read(folder.file(name, bytes))).toMatchObject({
        packing,
        uuids: ['a', 'b', 'c'],
        damage: [],
        lines: 3,
      })
    }
  })

  it('that ends early is read as far as it goes', async () => {
    const packed = gzipSync(text(...MANY))
    const { uuids, damage, lines } = await read(
      logFolder().file('x.gz', packed.subarray(0, packed.length / 2)),
    )
    expect(uuids.length).toBeGreaterThan(2000)
    expect(uuids).toEqual(MANY.slice(0, uuids.length).map((_, index) => `r${index}`))
    expect(damage.map(({ kind, line, why }) => [kind, line, why])).toEqual([
      ['torn-line', lines, 'the last line was cut off; it is left out'],
      ['torn-line', lines, 'the gzip data ends early: nothing behind this could be read'],
    ])
  })

  it('that is broken is read up to the fault', async () => {
    const packed = gzipSync(text(...MANY))
    packed.fill(0xff, packed.length / 2, packed.length / 2 + 100)
    const { uuids, damage } = await read(logFolder().file('x.gz', packed))
    expect(uuids.length).toBeGreaterThan(2000)
    expect(uuids).toEqual(MANY.slice(0, uuids.length).map((_, index) => `r${index}`))
    expect(damage.at(-1)).toMatchObject({
      kind: 'torn-line',
      why: expect.stringMatching(/^the gzip data is broken \(/),
    })
  })

  it('in zstd that ends early is read as far as it goes', async () => {
    const packed = zstdCompressSync(text(...MANY))
    const { uuids, damage } = await read(logFolder().file('x.zst', packed.subarray(0, packed.length / 2)))
    expect(uuids.length).toBeGreaterThan(1000)
    expect(damage.at(-1)).toMatchObject({
      why: 'the zstd data ends early: nothing behind this could be read',
    })
  })

  it('of which nothing can be read is refused', async () => {
    const folder = logFolder()
    for (const bytes of [gzipSync(THREE).subarray(0, 12), gzipSync(THREE).fill(0xff, 10, 30)]) {
      const refused = await openLog(folder.file('x.gz', bytes))
      expect(refused).toMatchObject({ ok: false, reason: 'unreadable' })
    }
  })
})

describe('a file that is not a log', () => {
  it.each([
    ['', 'empty', 'is empty'],
    ['\n \n\n', 'empty', `has no lines: ${EXPECTED}`],
    ['hello\nworld\n', 'unknown-format', `has no JSON lines: ${EXPECTED}`],
    ['{"name":"x"}', 'unknown-format', `has JSON lines, but none of a kind that is known: ${EXPECTED}`],
    [`${'['.repeat(100_000)}`, 'unknown-format', `has no JSON lines: ${EXPECTED}`],
    [
      Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0, 1]),
      'binary',
      'is binary: expected the text of a session log, or that text compressed with gzip or zstd',
    ],
    [
      Buffer.alloc(3_000_000, 0xe9),
      'binary',
      'is binary: expected the text of a session log, or that text compressed with gzip or zstd',
    ],
    [
      gzipSync(Buffer.alloc(100)),
      'binary',
      'is binary: expected the text of a session log, or that text compressed with gzip or zstd',
    ],
    [gzipSync(''), 'empty', 'is empty'],
  ])('%.20s', async (content, reason, said) => {
    const path = logFolder().file('x', content)
    expect(await openLog(path)).toEqual({ ok: false, path, reason, message: `${path} ${said}.` })
  })

  it.each([
    ['all one line', 'a'.repeat(5000)],
    ['a long line and no more', `${'a'.repeat(5000)}\n`],
  ])('is not called empty when it is %s', async (_, content) => {
    const refused = await openLog(logFolder().file('x', content), { maxLineBytes: 1000 })
    expect(refused).toMatchObject({
      reason: 'unknown-format',
      message: expect.stringContaining(' has no JSON lines: '),
    })
  })

  it('is refused in one line if it does not exist or is not a regular file', async () => {
    const folder = logFolder()
    mkdirSync(join(folder.path, 'd'))
    const [missing, directory] = [join(folder.path, 'none.jsonl'), join(folder.path, 'd')]
    expect(await openLog(missing)).toMatchObject({ reason: 'missing', message: `${missing} does not exist.` })
    expect(await openLog(directory)).toMatchObject({
      reason: 'not-a-file',
      message: `${directory} is a directory.`,
    })
  })

  it('is recognized without reading all of it', async () => {
    const seen: ReadProgress[] = []
    const path = logFolder().file('x', 'no log\n'.repeat(1_000_000))
    await openLog(path, { onProgress: (progress) => seen.push(progress) })
    expect(seen).toEqual([{ path, readBytes: 1 << 20, totalBytes: 7_000_000 }])
  })
})

describe('a damaged log', () => {
  it('is read even if its first lines are damaged', async () => {
    const lines = [...Array.from({ length: 50 }, () => 'x'), userLine('a')]
    expect(await read(logFolder().file('x', text(...lines)))).toMatchObject({
      uuids: ['a'],
      format: 'claude-code',
    })
  })

  it('of one line without newline is read', async () => {
    expect(await read(logFolder().file('x', userLine('a')))).toMatchObject({
      uuids: ['a'],
      damage: [],
      lines: 1,
    })
  })

  it('with one line of 50 MB is read', async () => {
    const long = userLine('b', { message: { role: 'user', content: 'x'.repeat(50_000_000) } })
    expect(await read(logFolder().file('x', text(userLine('a'), long, userLine('c'))))).toMatchObject({
      uuids: ['a', 'b', 'c'],
      damage: [],
    })
  })

  it('with a line over the limit is read except for that line', async () => {
    const long = userLine('b', { noise: 'x'.repeat(3_000_000) })
    const path = logFolder().file('x', text(userLine('a'), long, userLine('c')))
    const { uuids, damage } = await read(path, { maxLineBytes: 1000 })
    expect(uuids).toEqual(['a', 'c'])
    expect(damage).toEqual([
      {
        kind: 'bad-json',
        line: 2,
        why: `the line is ${long.length} bytes long, more than the 1000 that are allowed; it is left out`,
      },
    ])
  })

  it('with bytes that are not text is read, and they are reported', async () => {
    const bytes = Buffer.concat([
      Buffer.from(text(userLine('a'))),
      Buffer.from(userLine('b').replace('said', 'sa\uFFFDd')),
    ])
    bytes.set([0xff], bytes.indexOf(0xef))
    const path = logFolder().file('x', Buffer.concat([bytes, Buffer.from('\n')]))
    const { uuids, damage } = await read(path)
    expect(uuids).toEqual(['a', 'b'])
    expect(damage.map(({ line, why }) => [line, why])).toEqual([
      [2, 'the line has bytes that are not UTF-8; each was read as U+FFFD'],
    ])
  })
})

describe('while a log is read', () => {
  it('progress is reported up to the whole file', async () => {
    const path = logFolder().file(
      'x',
      text(...Array.from({ length: 20_000 }, (_, index) => userLine(`r${index}`))),
    )
    const seen: ReadProgress[] = []
    await read(path, { onProgress: (progress) => seen.push(progress) })
    expect(seen.length).toBeGreaterThan(2)
    expect(seen.at(-1)).toEqual({ path, readBytes: seen[0]?.totalBytes, totalBytes: seen[0]?.totalBytes })
  })

  it('reading can be aborted', async () => {
    const path = logFolder().file(
      'x',
      text(...Array.from({ length: 20_000 }, (_, index) => userLine(`r${index}`))),
    )
    const controller = new AbortController()
    const options = { signal: controller.signal, onProgress: () => controller.abort() }
    const log = await openLog(path, options)
    if (!log.ok) throw new Error(log.message)
    await expect(log.read(() => {})).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }))
  })

  it('an error thrown by the visitor is passed on, and the file is closed', async () => {
    const log = await openLog(logFolder().file('x', gzipSync(THREE)))
    if (!log.ok) throw new Error(log.message)
    await expect(
      log.read(() => {
        throw new Error('enough')
      }),
    ).rejects.toThrow('enough')
  })
})

describe('a first line that is too long', () => {
  const long = userLine('long', { noise: 'x'.repeat(5_000_000) })

  it('is named as the reason if it is the only one', async () => {
    const path = logFolder().file('log.jsonl', text(long))
    expect(await openLog(path, { maxLineBytes: 1_000_000 })).toEqual({
      ok: false,
      path,
      reason: 'unreadable',
      message: `${path} has no other line than this one: the line is ${long.length} bytes long, more than the 1000000 that are allowed; it is left out.`,
    })
  })

  it('does not keep the lines after it from being read', async () => {
    const path = logFolder().file('log.jsonl', text(long, userLine('b')))
    expect(await read(path, { maxLineBytes: 1_000_000 })).toMatchObject({ uuids: ['b'], lines: 2 })
  })
})
