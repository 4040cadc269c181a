import { describe, expect, it } from 'vitest'
import { TidemarkError } from '../errors.ts'
import {
  createLogHeader,
  isLogHeader,
  LOG_VERSION,
  readLogVersion,
  type Upcast,
  upcastLine,
} from './decode-record.ts'
import { createLogLineReader } from './log-line-reader.ts'

// Invented format versions: version 1 called the uuid `key`, version 2 called it `name`.
const upcasts: readonly Upcast[] = [
  ({ key, ...line }) => ({ ...line, name: key }),
  ({ name, ...line }) => ({ ...line, uuid: name }),
]

function header(version: unknown): string {
  return JSON.stringify({ type: 'tidemark', format: 'tidemark-session', version })
}

function read(lines: readonly string[]): readonly (string | undefined)[] {
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
    expect([isLogHeader({ type: 'tidemark' }), isLogHeader({ type: 'user' }), isLogHeader({})]).toEqual([
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
    expect(read([header(1), '{"type":"note","key":"a"}'])).toEqual(['a'])
  })

  it('applies up to the next header, which a newer writer puts before its own lines', () => {
    const lines = [header(1), '{"type":"note","key":"a"}', header(3), '{"type":"note","uuid":"b"}']
    expect(read(lines)).toEqual(['a', 'b'])
  })

  it('that an upcast cannot read is damage, not a crash', () => {
    const reader = createLogLineReader({ upcasts: [() => ({ type: 7 })] })
    reader.readLine(header(1))
    expect(reader.readLine('{"type":"note"}')).toEqual([])
    expect(reader.finish().damage.map(({ kind }) => kind)).toEqual(['bad-shape'])
  })
})
