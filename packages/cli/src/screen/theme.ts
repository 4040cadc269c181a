/** Colours and symbols of the terminal screen, and the styles that the components of the screen library take. */
import type { EditorTheme, MarkdownTheme, SelectListTheme } from '@earendil-works/pi-tui'
import type { Colors } from 'picocolors/types.js'
import { createColors, type Terminal } from '../terminal.ts'
import { highlightCode } from './highlight-code.ts'

export interface ScreenTheme {
  readonly colors: Colors
  readonly markdown: MarkdownTheme
  readonly select: SelectListTheme
  readonly editor: EditorTheme
}

/** How serious a line of the transcript or the state of the meter is. */
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

/** Removes every control character from a line but those of colours, whatever its source. A tab becomes spaces. */
export function keepColorsOnly(line: string): string {
  return line.replaceAll('\t', '    ').replaceAll(NOT_A_COLOR, '')
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must go
const NOT_A_COLOR = /\u001b(?!\[[\d;]*m)|[\u0000-\u001a\u001c-\u001f\u007f-\u009f]/g
