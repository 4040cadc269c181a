import { describe, expect, it } from 'vitest'
import { TidemarkError } from '../errors.ts'
import { isHeader, LOG_VERSION, newHeader, type Upcast, upcastLine, versionOf } from './decode-record.ts'
import { createLineReader } from './log-reader.ts'

// Invented format versions: version 1 called the uuid `key`, version 2 called it `name`.
const upcasts: readonly Upcast[] = [
  ({ key, ...line }) => ({ ...line, name: key }),
  ({ name, ...line }) => ({ ...line, uuid: name }),
]

function header(version: unknown): string {
  return JSON.stringify({ type: 'tidemark', format: 'tidemark-session', version })
}

function read(lines: readonly string[]): readonly (string | undefined)[] {
  const reader = createLineReader({ upcasts })
  return [...lines.flatMap((line) => [...reader.take(line)]), ...reader.end().records].map(
    (record) => record.uuid,
  )
}

describe('a header', () => {
  it('of a new log has the current version', () => {
    expect(newHeader('fix-login', '2026-01-01T00:00:00.000Z')).toEqual({
      type: 'tidemark',
      format: 'tidemark-session',
      version: LOG_VERSION,
      sessionId: 'fix-login',
      timestamp: '2026-01-01T00:00:00.000Z',
    })
  })

  it('is recognized by its type', () => {
    expect([isHeader({ type: 'tidemark' }), isHeader({ type: 'user' }), isHeader({})]).toEqual([
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
    expect(versionOf(line)).toBe(version)
  })

  it('of a newer version is refused; the error names both versions and what to do', () => {
    const newer = { format: 'tidemark-session', version: LOG_VERSION + 1 }
    expect(() => versionOf(newer)).toThrow(
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
    expect(read([header(1), '{"type":"note","key":"a"}'])).toEqual(['a'])
  })

  it('applies up to the next header, which a newer writer puts before its own lines', () => {
    const lines = [header(1), '{"type":"note","key":"a"}', header(3), '{"type":"note","uuid":"b"}']
    expect(read(lines)).toEqual(['a', 'b'])
  })

  it('that an upcast cannot read is damage, not a crash', () => {
    const reader = createLineReader({ upcasts: [() => ({ type: 7 })] })
    reader.take(header(1))
    expect(reader.take('{"type":"note"}')).toEqual([])
    expect(reader.end().damage.map(({ kind }) => kind)).toEqual(['bad-shape'])
  })
})
