import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { buildContextView } from '@tidemark/core/context/context-view'
import { MISSING_RESULT_TEXT } from '@tidemark/core/context/message-repair'
import { buildSessionLog } from '@tidemark/core/log/session-log'
import { createCountingIds } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { callLine, type LogFolder, logFolder, resultLine, text, userLine } from '../../test/log-folder.ts'
import { readLog } from './read-log.ts'
import { type RepairOptions, type RepairReport, repairLog } from './repair-log.ts'

async function repaired(
  folder: LogFolder,
  content: string | Uint8Array,
  options: RepairOptions = {},
): Promise<RepairReport> {
  const path = folder.file('log.jsonl', content)
  const outcome = await repairLog(path, join(folder.path, 'out.jsonl'), {
    ids: createCountingIds(),
    ...options,
  })
  if (!outcome.ok) throw new Error(outcome.message)
  expect(readFileSync(path)).toEqual(Buffer.from(content))
  expect(readdirSync(folder.path)).toEqual(['log.jsonl', 'out.jsonl'])
  return outcome
}

function linesOf(folder: LogFolder): readonly string[] {
  return readFileSync(join(folder.path, 'out.jsonl'), 'utf8').split('\n').slice(0, -1)
}

/** The damage found when the copy is read. */
async function damageIn(folder: LogFolder): Promise<readonly unknown[]> {
  const log = await readLog(join(folder.path, 'out.jsonl'))
  if (!log.ok) throw new Error(log.message)
  const session = buildSessionLog(log.records.map(({ record }) => record))
  return [...log.damage, ...session.damage, ...buildContextView(session).damage]
}

describe('a damaged log of Claude Code', () => {
  it('is copied without its damaged lines, the others unchanged', async () => {
    const folder = logFolder()
    const odd = userLine('b', { parentUuid: 'a' }).replace('{', '{ "10":1, "9": 1.0, ')
    const torn = userLine('d').slice(0, -9)
    const { leftOut, ...rest } = await repaired(
      folder,
      `\uFEFF${text(userLine('a'), 'broken', odd, '', '{"type":"user","uuid":7}')}${torn}`,
    )
    expect(linesOf(folder)).toEqual([userLine('a'), odd])
    expect(leftOut.map(({ kind, line }) => [kind, line])).toEqual([
      ['bad-json', 2],
      ['bad-shape', 5],
      ['torn-line', 6],
    ])
    expect(rest).toMatchObject({ ok: true, lines: 6, records: 2, repaired: [], completed: [] })
    expect(await damageIn(folder)).toEqual([])
  })

  it('gets its broken links repaired, and only those', async () => {
    const folder = logFolder()
    const { repaired: changed, leftOut } = await repaired(
      folder,
      text(
        userLine('a', { parentUuid: 'before the log' }),
        userLine('b', { parentUuid: 'lost', big: 1 }).replace('"big":1', '"big":12345678901234567890'),
        userLine('b', { parentUuid: 'a', other: true, message: { role: 'user', content: 'another' } }),
        userLine('a', { parentUuid: 'before the log' }),
        userLine('c', { parentUuid: 'c' }),
      ),
    )
    expect(changed.map(({ line, what }) => [line, what])).toEqual([
      [1, 'its parent is not in the log; it is now the first record, without a parent'],
      [2, 'its parent does not come before it; it was linked to the previous record'],
      [3, 'its uuid was in use already; it got a new one'],
      [5, 'its parent does not come before it; it was linked to the previous record'],
    ])
    expect(leftOut).toEqual([
      { kind: 'duplicate-uuid', line: 4, why: 'the line repeats an earlier record with the same uuid' },
    ])
    const lines = linesOf(folder)
    expect(lines.map((line) => JSON.parse(line)).map(({ uuid, parentUuid }) => [uuid, parentUuid])).toEqual([
      ['a', null],
      ['b', 'a'],
      ['record-1', 'a'],
      ['c', 'record-1'],
    ])
    expect(lines[1]).toContain('"big":12345678901234567890')
    expect(await damageIn(folder)).toEqual([])
  })

  it('gets a result for every tool call without one, after its response', async () => {
    const folder = logFolder()
    const lines = [
      userLine('a'),
      callLine('b', 'a', 'c1'),
      callLine('c', 'b', 'c2'),
      resultLine('d', 'c', 'c2'),
      userLine('e', { parentUuid: 'd' }),
    ]
    const { completed, records } = await repaired(folder, text(...lines))
    expect([completed, records]).toEqual([['c1'], 6])
    const copied = linesOf(folder)
    expect(copied.filter((_, index) => index !== 2)).toEqual(lines)
    expect(JSON.parse(copied[2] ?? '')).toEqual({
      cwd: '/projects/boat',
      version: '2.0.0',
      type: 'user',
      uuid: 'record-1',
      parentUuid: 'b',
      timestamp: '2026-01-02T03:04:05.000Z',
      sessionId: 's',
      isSidechain: false,
      message: {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'c1', content: MISSING_RESULT_TEXT, is_error: true }],
      },
    })
    expect(await damageIn(folder)).toEqual([])
  })

  it('compressed and truncated, is copied as far as it goes; the copy is compressed if its name says so', async () => {
    const folder = logFolder()
    const many = Array.from({ length: 3000 }, (_, index) => userLine(`r${index}`, { noise: Math.sin(index) }))
    const packed = gzipSync(text(...many))
    const path = folder.file('log.jsonl.gz', packed.subarray(0, packed.length / 2))
    const out = join(folder.path, 'out.jsonl.gz')
    const outcome = await repairLog(path, out)
    const copied = gunzipSync(readFileSync(out)).toString('utf8').split('\n').slice(0, -1)
    expect(outcome).toMatchObject({ ok: true, records: copied.length })
    expect(copied.length).toBeGreaterThan(1000)
    expect(copied).toEqual(many.slice(0, copied.length))
  })
})

describe('a damaged Tidemark log', () => {
  const header = JSON.stringify({
    type: 'tidemark',
    format: 'tidemark-session',
    version: 1,
    sessionId: 's',
    timestamp: 't',
  })
  const own = (seq: number, more: object = {}): string => {
    const { type, uuid, ...rest } = JSON.parse(
      userLine(`r${seq}`, { parentUuid: seq === 1 ? null : `r${seq - 1}`, ...more }),
    )
    return JSON.stringify({ seq, type, uuid, ...rest })
  }
  const part = (seq: number, index: number, of: number): string =>
    own(seq, { batch: { id: `b${seq - index}`, index, of } })

  it('is copied in complete batches, with new positions', async () => {
    const folder = logFolder()
    const lines = [
      header,
      own(1),
      part(2, 0, 2),
      part(3, 1, 2),
      'broken',
      own(5),
      part(6, 0, 3),
      part(7, 1, 3),
    ]
    const { leftOut, repaired: replaced } = await repaired(folder, text(...lines))
    expect(
      linesOf(folder)
        .map((line) => JSON.parse(line))
        .map(({ seq, uuid, parentUuid }) => [seq, uuid, parentUuid]),
    ).toEqual([
      [undefined, undefined, undefined],
      [1, 'r1', null],
      [2, 'r2', 'r1'],
      [3, 'r3', 'r2'],
      [4, 'r5', 'r3'],
    ])
    expect(leftOut.map(({ kind, line }) => [kind, line])).toEqual([
      ['bad-json', 5],
      ['incomplete-batch', 7],
    ])
    expect(leftOut[1]?.why).toBe(
      '2 of the 3 records appended together are there, up to line 8; none of them counts',
    )
    expect(replaced.map(({ line }) => line)).toEqual([6, 6])
    expect(await damageIn(folder)).toEqual([])
  })

  it('gets a header if its own was lost, and results with positions', async () => {
    const folder = logFolder()
    const call = JSON.parse(callLine('r2', 'r1', 'c1'))
    await repaired(folder, text('{"type":"tide', own(1), JSON.stringify({ seq: 2, ...call }), own(3)))
    expect(
      linesOf(folder)
        .map((line) => JSON.parse(line))
        .map(({ type, seq, uuid }) => [type, seq, uuid]),
    ).toEqual([
      ['tidemark', undefined, undefined],
      ['user', 1, 'r1'],
      ['assistant', 2, 'r2'],
      ['user', 3, 'record-1'],
      ['user', 4, 'r3'],
    ])
    expect(await damageIn(folder)).toEqual([])
  })

  it('that is intact is copied byte for byte', async () => {
    const folder = logFolder()
    const content = text(header, own(1), part(2, 0, 2), part(3, 1, 2))
    await repaired(folder, content)
    expect(readFileSync(join(folder.path, 'out.jsonl'), 'utf8')).toBe(content)
  })
})

describe('repair refuses', () => {
  it('an output file that exists, such as the log itself', async () => {
    const folder = logFolder()
    const path = folder.file('log.jsonl', text(userLine('a')))
    const out = folder.file('out.jsonl', 'mine')
    expect(await repairLog(path, out)).toEqual({
      ok: false,
      path: out,
      reason: 'taken',
      message: `${out} exists already, and files are never overwritten: choose another name.`,
    })
    expect(await repairLog(path, path)).toMatchObject({ reason: 'taken' })
    expect(readFileSync(out, 'utf8')).toBe('mine')
  })

  it('a log that it cannot repair', async () => {
    const folder = logFolder()
    const out = join(folder.path, 'out.jsonl')
    const codex = folder.file('rollout.jsonl', text('{"type":"session_meta","payload":{"id":"x"}}'))
    expect(await repairLog(codex, out)).toMatchObject({ reason: 'not-repairable' })
    expect(await repairLog(folder.file('x', 'text'), out)).toMatchObject({ reason: 'unknown-format' })
    expect(existsSync(out)).toBe(false)
  })

  it('a log that is being written to', async () => {
    const folder = logFolder()
    const path = folder.file('log.jsonl', text(userLine('a')))
    const grow = (): void => writeFileSync(path, text(userLine('b')), { flag: 'a' })
    const outcome = await repairLog(path, join(folder.path, 'out.jsonl'), { onProgress: grow })
    expect(outcome).toMatchObject({ reason: 'changed' })
    expect(readdirSync(folder.path)).toEqual(['log.jsonl'])
  })
})

it('an aborted repair leaves no file behind', async () => {
  const folder = logFolder()
  const path = folder.file(
    'log.jsonl',
    text(
      ...Array.from({ length: 20_000 }, (_, index) =>
        userLine(`r${index}`, { parentUuid: index === 0 ? null : `r${index - 1}` }),
      ),
    ),
  )
  const controller = new AbortController()
  let pieces = 0
  const onProgress = (): void => {
    pieces += 1
    if (pieces === 6) controller.abort()
  }
  const repair = repairLog(path, join(folder.path, 'out.jsonl'), { signal: controller.signal, onProgress })
  await expect(repair).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }))
  expect(readdirSync(folder.path)).toEqual(['log.jsonl'])
})

it('a log without any readable record is refused, and no empty copy is written', async () => {
  const folder = logFolder()
  const path = folder.file('log.jsonl', text('{"type":"user","uuid":"a","sessionId":"s","message":3}'))
  const out = join(folder.path, 'out.jsonl')
  expect(await repairLog(path, out)).toEqual({
    ok: false,
    path,
    reason: 'not-repairable',
    message: `${path} has no record that can be kept (line 1: a user record has a message; the line is left out); nothing was written.`,
  })
  expect(readdirSync(folder.path)).toEqual(['log.jsonl'])
})
