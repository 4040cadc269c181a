import { countPropertyRuns } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { alone, found, HEADER, part, type Read, read, textOf } from '../../test/log-lines.ts'
import { TidemarkError } from '../errors.ts'
import {
  createLogHeader,
  createLogLineReader,
  isHeaderLine,
  LOG_VERSION,
  readLogVersion,
  type Upcast,
  upcastLine,
} from './decode-log.ts'

// Invented format versions: version 1 called the uuid `key`, version 2 called it `name`.
const upcasts: readonly Upcast[] = [
  ({ key, ...line }) => ({ ...line, name: key }),
  ({ name, ...line }) => ({ ...line, uuid: name }),
]

function header(version: unknown): string {
  return JSON.stringify({ type: 'tidemark', format: 'tidemark-session', version })
}

function decode(lines: readonly string[]): readonly (string | undefined)[] {
  const reader = createLogLineReader({ upcasts })
  return [...lines.flatMap((line) => [...reader.readLine(line)]), ...reader.finish().records].map(
    (record) => record.uuid,
  )
}

describe('a header', () => {
  it('of a new log has the current version', () => {
    expect(createLogHeader('fix-login', '2026-01-01T00:00:00.000Z')).toEqual({
      type: 'tidemark',
      format: 'tidemark-session',
      version: LOG_VERSION,
      sessionId: 'fix-login',
      timestamp: '2026-01-01T00:00:00.000Z',
    })
  })

  it('is recognized by its type', () => {
    expect([isHeaderLine({ type: 'tidemark' }), isHeaderLine({ type: 'user' }), isHeaderLine({})]).toEqual([
      true,
      false,
      false,
    ])
  })

  it.each([
    [{ format: 'tidemark-session', version: 1 }, 1],
    [{ format: 'tidemark-session', version: 0 }, null],
    [{ format: 'tidemark-session', version: 1.5 }, null],
    [{ format: 'tidemark-session', version: '1' }, null],
    [{ format: 'another', version: 1 }, null],
    [{}, null],
  ])('%j names version %s', (line, version) => {
    expect(readLogVersion(line)).toBe(version)
  })

  it('of a newer version is refused; the error names both versions and what to do', () => {
    const newer = { format: 'tidemark-session', version: LOG_VERSION + 1 }
    expect(() => readLogVersion(newer)).toThrow(
      new TidemarkError(
        'newer-format',
        'This session was written in format version 2, and this tidemark reads up to version 1: update tidemark to open it.',
        { details: { version: 2, known: 1 } },
      ),
    )
  })
})

describe('an older version', () => {
  it.each([
    [1, { type: 'note', key: 'a' }],
    [2, { type: 'note', name: 'a' }],
    [3, { type: 'note', uuid: 'a' }],
  ])('%i goes through every step to the present', (version, line) => {
    expect(upcastLine(line, version, upcasts)).toEqual({ type: 'note', uuid: 'a' })
  })

  it('is upcast line by line as it is read', () => {
    expect(decode([header(1), '{"type":"note","key":"a"}'])).toEqual(['a'])
  })

  it('applies up to the next header, which a newer writer puts before its own lines', () => {
    const lines = [header(1), '{"type":"note","key":"a"}', header(3), '{"type":"note","uuid":"b"}']
    expect(decode(lines)).toEqual(['a', 'b'])
  })

  it('that an upcast cannot read is damage, not a crash', () => {
    const reader = createLogLineReader({ upcasts: [() => ({ type: 7 })] })
    reader.readLine(header(1))
    expect(reader.readLine('{"type":"note"}')).toEqual([])
    expect(reader.finish().damage.map(({ kind }) => kind)).toEqual(['bad-shape'])
  })
})

/** Nested deeper than a line may be. */
function deep(type: string): string {
  return `{"type":"${type}","uuid":"u","message":{"role":"user","content":[]},"x":${'['.repeat(20_000)}${']'.repeat(20_000)}}`
}

const whole = [part(1, 'a', [0, 2]), part(2, 'a', [1, 2])]

describe('a log', () => {
  it.each<[string, readonly string[], string | undefined, unknown]>([
    ['with nothing in it', [], undefined, { uuids: [], position: 0, damage: [] }],
    ['with a header alone', [HEADER], undefined, { uuids: [], position: 0, damage: [] }],
    [
      'of single records',
      [HEADER, alone(1), alone(2)],
      undefined,
      { uuids: ['r1', 'r2'], position: 2, damage: [] },
    ],
    ['of a whole batch', [HEADER, ...whole], undefined, { uuids: ['a0', 'a1'], position: 2, damage: [] }],
    [
      'whose last line has no newline and parses',
      [HEADER, alone(1)],
      alone(2),
      { uuids: ['r1', 'r2'], position: 2, damage: [] },
    ],
    [
      'whose last batch ends without a newline',
      [HEADER, part(1, 'a', [0, 2])],
      part(2, 'a', [1, 2]),
      { uuids: ['a0', 'a1'], position: 2, damage: [] },
    ],
    [
      'with a torn last line',
      [HEADER, alone(1)],
      '{"type":"no',
      { uuids: ['r1'], position: 1, damage: ['torn-line 3'] },
    ],
    [
      'with a torn last batch',
      [HEADER, alone(1), part(2, 'b', [0, 2])],
      '{"ty',
      { uuids: ['r1'], position: 1, damage: ['torn-line 4', 'incomplete-batch 3'] },
    ],
    [
      'that goes on after an incomplete batch, from the last whole position',
      [
        HEADER,
        ...whole,
        part(3, 'b', [0, 3]),
        part(4, 'b', [1, 3]),
        part(3, 'c', [0, 2]),
        part(4, 'c', [1, 2]),
      ],
      undefined,
      { uuids: ['a0', 'a1', 'c0', 'c1'], position: 4, damage: ['incomplete-batch 4'] },
    ],
    [
      'that goes on after an incomplete batch with a single record',
      [HEADER, part(1, 'b', [0, 2]), alone(1)],
      undefined,
      { uuids: ['r1'], position: 1, damage: ['incomplete-batch 2'] },
    ],
    [
      'that goes on with the same batch once more',
      [HEADER, part(1, 'a', [0, 2]), ...whole],
      undefined,
      { uuids: ['a0', 'a1'], position: 2, damage: ['incomplete-batch 2'] },
    ],
    [
      'with a batch that lost its first record, reported once',
      [HEADER, part(2, 'b', [1, 3]), part(3, 'b', [2, 3]), alone(1)],
      undefined,
      { uuids: ['r1'], position: 1, damage: ['incomplete-batch 2'] },
    ],
    [
      'with a batch that lost a record in the middle',
      [HEADER, part(1, 'b', [0, 3]), '\0\0\0', part(3, 'b', [2, 3]), alone(1)],
      undefined,
      { uuids: ['r1'], position: 1, damage: ['bad-json 3', 'incomplete-batch 2'] },
    ],
    [
      'with a hole that swallowed the newline before a whole line',
      [HEADER, `{"type":"no\0\0\0${alone(1)}`, `\0${part(2, 'b', [0, 2])}`, part(3, 'b', [1, 2])],
      undefined,
      { uuids: ['r1', 'b0', 'b1'], position: 3, damage: ['bad-json 2', 'bad-json 3'] },
    ],
    [
      'with a hole behind which only part of a line stands',
      [HEADER, `\0\0${alone(1).slice(9)}`, `\0${alone(1).slice(0, 9)}`, '\0"text"', '\x007', alone(1)],
      undefined,
      { uuids: ['r1'], position: 1, damage: [2, 3, 4, 5].map((line) => `bad-json ${line}`) },
    ],
    [
      'with a batch that says two sizes',
      [HEADER, part(1, 'b', [0, 2]), part(2, 'b', [1, 3]), alone(1)],
      undefined,
      { uuids: ['r1'], position: 1, damage: ['incomplete-batch 2'] },
    ],
    [
      'with a line nested too deeply, of whatever kind',
      [HEADER, alone(1), deep('user'), deep('note'), deep('tidemark'), alone(2)],
      deep('note'),
      { uuids: ['r1', 'r2'], position: 2, damage: [3, 4, 5, 7].map((line) => `bad-shape ${line}`) },
    ],
    [
      'with garbage inside a batch that is whole all the same',
      [HEADER, part(1, 'a', [0, 2]), 'garbage', part(2, 'a', [1, 2])],
      undefined,
      { uuids: ['a0', 'a1'], position: 2, damage: ['bad-json 3'] },
    ],
    [
      'with a line lost in the middle',
      [HEADER, alone(1), '{"type":"no', alone(3)],
      undefined,
      { uuids: ['r1', 'r3'], position: 3, damage: ['bad-json 3', 'out-of-order 4'] },
    ],
    [
      'with an old line again',
      [HEADER, alone(1), alone(2), alone(1), alone(3)],
      undefined,
      { uuids: ['r1', 'r2', 'r1', 'r3'], position: 3, damage: ['out-of-order 4'] },
    ],
    [
      'with blank lines',
      ['', HEADER, '', '  ', '\r', alone(1), ''],
      '',
      { uuids: ['r1'], position: 1, damage: [] },
    ],
    [
      'with CRLF line ends',
      [`${HEADER}\r`, `${alone(1)}\r`],
      undefined,
      { uuids: ['r1'], position: 1, damage: [] },
    ],
    [
      'with a byte order mark',
      [`\uFEFF${HEADER}`, alone(1)],
      undefined,
      { uuids: ['r1'], position: 1, damage: [] },
    ],
    [
      'with values that are no records',
      [HEADER, '7', 'null', '[]', '{}', '{"type":7}', alone(1)],
      undefined,
      { uuids: ['r1'], position: 1, damage: [2, 3, 4, 5, 6].map((line) => `bad-shape ${line}`) },
    ],
    [
      'with positions and batches of no shape',
      [
        HEADER,
        '{"type":"note","seq":0}',
        '{"type":"note","seq":1.5}',
        '{"type":"note","seq":"1"}',
        '{"type":"note","seq":1,"batch":{"id":"b","index":2,"of":2}}',
        '{"type":"note","seq":1,"batch":{"id":"b","index":-1,"of":2}}',
        '{"type":"note","seq":1,"batch":{"index":0,"of":2}}',
        '{"type":"note","seq":1,"batch":"b"}',
      ],
      undefined,
      { uuids: [], position: 0, damage: [2, 3, 4, 5, 6, 7, 8].map((line) => `bad-shape ${line}`) },
    ],
    [
      'of another tool, which has no positions: they are counted',
      ['{"type":"summary"}', '{"type":"note","uuid":"x","batch":"theirs"}'],
      undefined,
      { uuids: [undefined, 'x'], position: 2, damage: [] },
    ],
    [
      'of another tool that ours goes on from',
      ['{"type":"note","uuid":"x"}', HEADER, alone(2)],
      undefined,
      { uuids: ['x', 'r2'], position: 2, damage: [] },
    ],
    [
      'whose header was torn and written again',
      [HEADER.slice(0, 20), HEADER, alone(1)],
      undefined,
      { uuids: ['r1'], position: 1, damage: ['bad-json 1'] },
    ],
    [
      'with a header without a version',
      ['{"type":"tidemark","format":"tidemark-session"}', alone(1)],
      undefined,
      { uuids: ['r1'], position: 1, damage: ['bad-shape 1'] },
    ],
  ])('%s', (_name, lines, rest, expected) => {
    expect(found(read(lines, rest))).toEqual(expected)
  })

  it('describes what was set aside', () => {
    const lines = [HEADER, part(1, 'b', [0, 3]), 'x\0', 'x', '[]', alone(4)]
    expect(read(lines, '{').damage.map(({ why }) => why)).toEqual([
      'the line has NUL bytes, as a page lost in a crash leaves; what precedes them is left out',
      'the line is not JSON; it is left out',
      'a record is a JSON object; the line is left out',
      '1 of the 3 records appended together are there; none of them counts',
      'the record says position 4 where 1 comes next',
      'the last line was cut off; it is left out',
    ])
  })

  it('of another tool keeps the text of blocks that parse and stringify would change', () => {
    const block = '{"type":"tool_use","id":"t","name":"n","input":{"2":1.0,"1":2}}'
    const line = `{"type":"assistant","uuid":"u","message":{"id":"m","model":"x","content":[${block}]}}`
    const [record] = createLogLineReader().readLine(line)
    expect(record).toEqual({ ...JSON.parse(line), rawBlocks: [{ index: 0, text: block }] })
    const plain = line.replace('"2":1.0,"1":2', '"a":1')
    expect(createLogLineReader().readLine(plain)).toEqual([JSON.parse(plain)])
  })

  it('of another tool may be nested as deep as a record may be, and no deeper', () => {
    const nested = (levels: number) => `{"type":"note","x":${'['.repeat(levels)}${']'.repeat(levels)}}`
    expect(createLogLineReader().readLine(nested(999))).toHaveLength(1)
    expect(read([nested(1000)]).damage).toEqual([
      {
        kind: 'bad-shape',
        line: 1,
        why: 'the line is nested more than 1000 levels deep; it is left out',
      },
    ])
  })

  it('reports usage that cannot be read, and leaves it out', () => {
    const message = { id: 'm', role: 'assistant', model: 'x', content: [], usage: { many: true } }
    const reader = createLogLineReader({ readReport: () => ({}) })
    expect(reader.readLine(JSON.stringify({ type: 'assistant', uuid: 'a', message }))).toEqual([
      { type: 'assistant', uuid: 'a', message: { id: 'm', role: 'assistant', model: 'x', content: [] } },
    ])
    expect(reader.finish().damage).toEqual([
      { kind: 'bad-shape', line: 1, why: 'usage that is no figures was left out' },
    ])
  })

  it.each<[string, readonly string[], string, boolean, number | null]>([
    ['an empty file', [], '', true, null],
    ['blank lines', ['', ' '], '', true, null],
    ['a header', [HEADER], '', true, 1],
    ['a header without newline', [], HEADER, true, 1],
    ['a torn header', [], HEADER.slice(0, 30), true, null],
    ['a page of NULs', [], '\0\0\0\0', true, null],
    [
      'a record of another tool',
      ['{"type":"user","uuid":"u","message":{"role":"user","content":"hi"}}'],
      '',
      true,
      null,
    ],
    ['a damaged first line, then a record', ['garbage', alone(1)], '', true, null],
    ['text', ['hello', 'world'], '', false, null],
    ['JSON of another kind', ['{"name":"x"}'], '', false, null],
    ['a JSON array', ['[', '1', ']'], '', false, null],
  ])('%s: is it a log?', (_name, lines, rest, isLog, version) => {
    const end = read(lines, rest)
    expect({ isLog: end.isLog, version: end.version }).toEqual({ isLog, version })
  })
})

function readText(text: string): Read {
  const lines = text.split('\n')
  return read(lines.slice(0, -1), lines.at(-1))
}

const batchSizes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 5 })

/** Lengths at which the text ends with a complete batch or the header, with or without the last newline. */
function wholeLengths(sizes: readonly number[]): readonly number[] {
  const ends = sizes.map((_, count) => textOf(sizes.slice(0, count)).length)
  return [0, ...[...ends, textOf(sizes).length].flatMap((end) => [end - 1, end])]
}

describe('a log cut at any byte', () => {
  it('reads as a prefix of complete batches, and reports damage exactly when something is left over', () => {
    fc.assert(
      fc.property(batchSizes, fc.nat(), (sizes, at) => {
        const text = textOf(sizes)
        const cut = at % (text.length + 1)
        const { uuids, damage } = readText(text.slice(0, cut))
        const whole = Math.max(...wholeLengths(sizes).filter((length) => length <= cut))
        expect(uuids).toEqual(readText(text.slice(0, whole)).uuids)
        expect(damage.length === 0).toBe(whole === cut)
      }),
      { numRuns: countPropertyRuns(300, 30) },
    )
  })

  it('can be continued: everything appended later counts', () => {
    fc.assert(
      fc.property(batchSizes, fc.nat(), (sizes, at) => {
        const text = textOf(sizes)
        const kept = text.slice(0, at % (text.length + 1))
        const { position, uuids } = readText(kept)
        const next = [part(position + 1, 'new', [0, 2]), part(position + 2, 'new', [1, 2])].join('\n')
        const after = readText(`${kept}\n${next}\n`)
        expect(after.uuids).toEqual([...uuids, 'new0', 'new1'])
        expect(after.position).toBe(position + 2)
      }),
    )
  })
})

it.each([null, 5, 'night', { id: 7 }, []])('a record of another tool may have a field batch: %j', (batch) => {
  const reader = createLogLineReader()
  const record = { type: 'user', uuid: 'a', message: { role: 'user', content: 'hi' } }
  expect(reader.readLine(JSON.stringify({ ...record, batch }))).toEqual([record])
  expect(reader.finish().damage).toEqual([])
})
