/** Colours and symbols of the terminal screen, and the styles for components of the screen library. */
import {
  type EditorTheme,
  type MarkdownTheme,
  type SelectListTheme,
  visibleWidth,
} from '@earendil-works/pi-tui'
import { supportsUnicode } from '@tidemark/terminal/render/screen'
import { createColors, type Terminal } from '@tidemark/terminal/terminal'
import type { Colors } from 'picocolors/types.js'
import { highlightCode } from './highlight-code.ts'

export interface ScreenTheme {
  readonly colors: Colors
  readonly markdown: MarkdownTheme
  readonly select: SelectListTheme
  readonly editor: EditorTheme
  /** Returns a text in characters that the terminal supports, with the same widths. */
  readonly toTerminalText: (text: string) => string
}

/** How serious a transcript line or the state of the meter is. */
export type Tone = 'plain' | 'quiet' | 'good' | 'warning' | 'error'

export function createTheme(terminal: Terminal): ScreenTheme {
  const colors = createColors(terminal)
  const select: SelectListTheme = {
    selectedPrefix: colors.cyan,
    selectedText: (text) => colors.bold(colors.cyan(text)),
    description: colors.dim,
    scrollInfo: colors.dim,
    noMatch: colors.dim,
  }
  return {
    colors,
    select,
    toTerminalText: supportsUnicode(terminal.env) ? (text) => text : toAscii,
    editor: { borderColor: colors.dim, selectList: select },
    markdown: {
      heading: (text) => colors.bold(colors.cyan(text)),
      link: colors.underline,
      linkUrl: colors.dim,
      code: colors.cyan,
      codeBlock: (text) => text,
      codeBlockBorder: colors.dim,
      quote: colors.italic,
      quoteBorder: colors.dim,
      hr: colors.dim,
      listBullet: colors.cyan,
      bold: colors.bold,
      italic: colors.italic,
      strikethrough: colors.strikethrough,
      underline: colors.underline,
      highlightCode: (code, language) => [...highlightCode(code, language, colors)],
    },
  }
}

/** Replacements for characters in a terminal without Unicode, for the screen and its library. */
const ASCII_CHARACTERS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    '-': '─━╌╸·–—‐‑',
    '|': '│┃⠋⠼⠇',
    '/': '⠙⠴⠏',
    '\\': '⠸⠧',
    '=': '═',
    '~': '△⠹⠦',
    '+': '┌┐└┘├┤┬┴┼╭╮╰╯',
    '#': '█',
    '.': '░…',
    ':': '┊⋮∴',
    '^': '▲↑',
    v: '↓✓',
    '<': '↶←',
    '>': '❯→▸',
    '*': '●◆•',
    o: '○◇◌',
    '@': '◐',
    x: '×✗',
    "'": '‘’',
    '"': '“”',
    ' ': '\u00a0',
  }).flatMap(([ascii, characters]) => [...characters].map((each) => [each, ascii] as const)),
)

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/** Replaces characters that are not ASCII: drawing characters by similar ones, others by `?`, as many as they are wide. */
export function toAscii(text: string): string {
  return text.replaceAll(NOT_ASCII, (run) =>
    [...graphemes.segment(run)]
      .map(({ segment }) => ASCII_CHARACTERS.get(segment) ?? '?'.repeat(visibleWidth(segment)))
      .join(''),
  )
}

const NOT_ASCII = /\P{ASCII}+/gu

/** Returns a text in the colour of its tone. */
export function paintTone(tone: Tone, text: string, colors: Colors): string {
  switch (tone) {
    case 'plain':
      return text
    case 'quiet':
      return colors.dim(text)
    case 'good':
      return colors.green(text)
    case 'warning':
      return colors.yellow(text)
    case 'error':
      return colors.red(text)
  }
}

/** Removes all control characters from a line except colours. Tabs become spaces. */
export function keepColorsOnly(line: string): string {
  return line.replaceAll('\t', '    ').replaceAll(NOT_A_COLOR, '')
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must go
const NOT_A_COLOR = /\u001b(?!\[[\d;]*m)|[\u0000-\u001a\u001c-\u001f\u007f-\u009f]/g
