import { stripVTControlCharacters } from 'node:util'
import { visibleWidth } from '@earendil-works/pi-tui'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { drawTranscriptItem, splitMarkdownBlocks, wrapKeepingSpaces } from './draw-items.ts'
import { highlightCode } from './highlight-code.ts'
import { diffLines } from './line-diff.ts'
import { toScreenText } from './screen-text.ts'
import { createTheme } from './theme.ts'
import type { TranscriptItem } from './transcript.ts'

const terminal = { write() {}, warn() {}, env: { FORCE_COLOR: '1' }, isTty: true, columns: 80 }
const theme = createTheme(terminal)

/** Colours, and links as the screen library writes them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const ALLOWED = /\u001b\[[\d;]*m|\u001b\]8;;[^\u0007\u001b]*(?:\u0007|\u001b\\)/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/

const hostile = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 200 }),
  fc.constantFrom('\u001b[2J', '\u001b]52;c;aGk=\u0007', '```ts\nconst a = 1\n', '| a | b |\n| - | - |\n'),
  fc.lorem({ maxCount: 30, mode: 'words' }),
)
const text = fc.array(hostile, { maxLength: 8 }).map((parts) => toScreenText(parts.join('\n')))

const item = fc.oneof(
  text.map((it) => ({ kind: 'prompt', text: it, uuid: 'u' })),
  fc.record({
    kind: fc.constantFrom('answer', 'thinking'),
    text,
    isStreaming: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant('call'),
    callId: fc.constant('t'),
    name: fc.constantFrom('Bash', 'Read', 'Edit', 'Write', 'TodoWrite', 'mcp__a__b'),
    input: fc.record({ file_path: text, command: text, old_string: text, new_string: text, content: text }),
    state: fc.constantFrom('waiting', 'running', 'done', 'failed', 'interrupted'),
    progress: text,
    result: fc.option(text),
    change: fc.constant(null),
  }),
)

describe('drawn items', () => {
  it('fit the width of the screen, and have no control sequence but colours', () => {
    fc.assert(
      fc.property(item, fc.integer({ min: 20, max: 120 }), fc.boolean(), (given, width, isFolded) => {
        const drawn = drawTranscriptItem({ id: 0, version: 0, ...given } as TranscriptItem, width, {
          theme,
          folder: '/project',
          isFolded,
        })
        for (const line of drawn) {
          expect(visibleWidth(line)).toBeLessThanOrEqual(width)
          expect(line.replaceAll(ALLOWED, '')).not.toMatch(CONTROL)
        }
      }),
      { numRuns: 300 },
    )
  })

  it('a command that failed shows the end of its output, and its exit code in its title', () => {
    const output = Array.from({ length: 40 }, (_, line) => `line ${line}`).join('\n')
    const call = {
      ...{ id: 0, version: 0, kind: 'call', callId: 't', name: 'Bash', progress: '', change: null },
      ...{ input: { command: 'npm test' }, state: 'failed', result: `Exit code: 1\nOutput:\n${output}` },
    } as TranscriptItem
    const options = { theme, folder: '/project', isFolded: true }
    const lines = drawTranscriptItem(call, 80, options).map(stripVTControlCharacters)
    expect(lines.slice(0, 2)).toEqual(['● Bash npm test · exit code 1', '  … 34 lines (ctrl+o)'])
    expect(lines.at(-1)).toBe('  line 39')
    expect(lines).toHaveLength(8)
    // A long command does not push the exit code out of its title.
    const long = { ...call, input: { command: 'x'.repeat(200) } } as TranscriptItem
    expect(stripVTControlCharacters(drawTranscriptItem(long, 60, options)[0] ?? '')).toMatch(
      /\.\.\. · exit code 1$/,
    )
    // So does one that the user has run; its output ends with the exit code.
    const own = { ...call, name: '!', result: `${output}\n[exit code 1]` } as TranscriptItem
    expect(drawTranscriptItem(own, 80, options).map(stripVTControlCharacters).at(-1)).toBe('  [exit code 1]')
  })

  it('a long paste is folded to its beginning and its end until ctrl+o', () => {
    const lines = Array.from({ length: 61 }, (_, line) => `pasted ${line}`)
    const text = [...lines, 'What is this?'].join('\n')
    const prompt = { id: 0, version: 0, kind: 'prompt', text, uuid: 'u' } as TranscriptItem
    const draw = (isFolded: boolean): readonly string[] =>
      drawTranscriptItem(prompt, 80, { theme, folder: '/project', isFolded }).map(stripVTControlCharacters)
    expect(draw(true)).toHaveLength(13)
    expect(draw(true).slice(8)).toEqual([
      '  pasted 7',
      '  … 51 more lines (ctrl+o)',
      ...['  pasted 59', '  pasted 60', '  What is this?'],
    ])
    expect(draw(false)).toHaveLength(63)
  })

  it('one line is not called lines, and a long path keeps its end', () => {
    const options = { theme, folder: '/project', isFolded: true }
    const draw = (item: object): string =>
      drawTranscriptItem({ id: 0, version: 0, ...item } as TranscriptItem, 40, options)
        .map(stripVTControlCharacters)
        .join('\n')
    expect(draw({ kind: 'thinking', text: 'Hm.', isStreaming: false })).toContain('Thought (1 line, ctrl+o)')
    const input = { file_path: '/project/packages/agent/src/screen/draw-items.test.ts' }
    expect(draw({ kind: 'call', callId: 't', name: 'Read', input, state: 'running', result: '' })).toMatch(
      /^◐ Read ….*\/draw-items\.test\.ts/,
    )
  })

  it('the result of a tool that reads is one line until it is unfolded', () => {
    const call = {
      ...{
        id: 0,
        version: 0,
        kind: 'call',
        callId: 't',
        name: 'Read',
        input: { file_path: '/project/a.ts' },
      },
      ...{ state: 'done', progress: '', result: 'one\ntwo\nthree', change: null },
    } as TranscriptItem
    const draw = (isFolded: boolean): readonly string[] =>
      drawTranscriptItem(call, 80, { theme, folder: '/project', isFolded }).map((line) =>
        stripVTControlCharacters(line),
      )
    expect(draw(true)).toEqual(['● Read a.ts', '  … 3 lines (ctrl+o)'])
    expect(draw(false)).toEqual(['● Read a.ts', '  one', '  two', '  three'])
  })
})

describe('Markdown', () => {
  it('is split so that more text changes only the last part', () => {
    fc.assert(
      fc.property(text, fc.string({ unit: 'grapheme-ascii', maxLength: 40 }), (before, more) => {
        const [old, now] = [splitMarkdownBlocks(before), splitMarkdownBlocks(before + more)]
        expect(now.slice(0, Math.max(0, old.length - 1))).toEqual(old.slice(0, -1))
      }),
    )
  })

  it('is not split inside a block of code', () => {
    expect(splitMarkdownBlocks('Text.\n\n```\na\n\nb\n```\n\nEnd.')).toEqual([
      'Text.\n',
      '```\na\n\nb\n```\n',
      'End.',
    ])
  })
})

it('highlighting changes no character of the code', () => {
  fc.assert(
    fc.property(text, fc.constantFrom('ts', 'py', 'sh', 'sql', 'diff', '', undefined), (code, language) => {
      const lines = highlightCode(code, language, theme.colors)
      expect(lines.map((line) => stripVTControlCharacters(line)).join('\n')).toBe(code)
    }),
  )
})

it('a line is wrapped without losing a character', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('a', ' ', '漢', 'é', '👩‍💻', '-'), maxLength: 120 }),
      fc.integer({ min: 4, max: 40 }),
      (line, width) => {
        const parts = wrapKeepingSpaces(line, width)
        expect(parts.join('')).toBe(line)
        for (const part of parts) expect(visibleWidth(part)).toBeLessThanOrEqual(width)
      },
    ),
  )
})

describe('a diff', () => {
  it('gives both texts back', () => {
    const lines = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 12 })
    fc.assert(
      fc.property(lines, lines, (before, after) => {
        const diff = diffLines(before.join('\n'), after.join('\n'))
        const read = (...kinds: readonly string[]): readonly string[] =>
          diff.filter(({ kind }) => kinds.includes(kind)).map((line) => line.text)
        for (const { kind, text, number = 0 } of diff)
          if (kind === 'removed') expect(before[number - 1]).toBe(text)
          else if (kind === 'same' || kind === 'added') expect(after[number - 1]).toBe(text)
        if (diff.some(({ kind }) => kind === 'note')) expect(before).toEqual(after)
        if (diff.some(({ kind }) => kind === 'gap' || kind === 'note')) return
        expect(read('same', 'removed')).toEqual(before)
        expect(read('same', 'added')).toEqual(after)
      }),
    )
  })

  it('of texts that have nothing in common shows each as a whole', () => {
    const before = Array.from({ length: 3_000 }, (_, index) => `old ${index}`)
    const after = Array.from({ length: 3_000 }, (_, index) => `new ${index}`)
    const shown = diffLines(['same', ...before].join('\n'), ['same', ...after].join('\n'))
    expect(shown.map(({ text }) => text)).toEqual(['same', ...before, ...after])
  })

  it('leaves out what is far from a change', () => {
    const before = Array.from({ length: 20 }, (_, index) => `line ${index}`)
    const after = before.with(10, 'changed')
    const kinds = diffLines(before.join('\n'), after.join('\n')).map(({ kind }) => kind)
    expect(kinds.filter((kind) => kind === 'same')).toHaveLength(6)
    expect(kinds.filter((kind) => kind === 'gap')).toHaveLength(2)
  })
})
