/** Draws the items of the transcript as lines of the terminal, none wider than the screen. */
import { Markdown, truncateToWidth, visibleWidth, wrapTextWithAnsi } from '@earendil-works/pi-tui'
import { sanitizeText } from '../render/text.ts'
import type { DiffLine } from './line-diff.ts'
import { paintTone, type ScreenTheme } from './theme.ts'
import { describeCallSubject, listTodos, viewChange, viewResult } from './tool-views.ts'
import type { AnswerItem, CallItem, LineItem, PromptItem, TranscriptItem } from './transcript.ts'

export interface DrawOptions {
  readonly theme: ScreenTheme
  readonly folder: string
  /** True if results of tools are shown in short form. */
  readonly isFolded: boolean
}

/** Draws one item, with an empty line before it where that helps reading. */
export function drawItem(item: TranscriptItem, width: number, options: DrawOptions): readonly string[] {
  switch (item.kind) {
    case 'prompt':
      return ['', ...drawPrompt(item, width, options)]
    case 'answer':
      return item.text.trim() === '' ? [] : ['', ...drawMarkdown(item, width, options)]
    case 'thinking':
      return drawThinking(item, width, options)
    case 'call':
      return drawCall(item, width, options)
    case 'line':
      return drawEventLine(item, width, options)
  }
}

function drawPrompt(
  { text }: PromptItem,
  width: number,
  { theme: { colors } }: DrawOptions,
): readonly string[] {
  const lines = text.split('\n').flatMap((line) => wrapTextWithAnsi(line, Math.max(1, width - 2)))
  return lines.map((line, index) => `${colors.cyan(index === 0 ? '❯' : ' ')} ${colors.bold(line)}`)
}

/** The drawn blocks of each answer, so that a growing answer is not drawn again from its beginning. */
const drawnBlocks = new WeakMap<AnswerItem, { readonly width: number; readonly blocks: DrawnBlock[] }>()

interface DrawnBlock {
  readonly text: string
  readonly lines: readonly string[]
}

function drawMarkdown(item: AnswerItem, width: number, { theme }: DrawOptions): readonly string[] {
  const known = drawnBlocks.get(item)
  const before = known?.width === width ? known.blocks : []
  const blocks = splitMarkdown(item.text).map((text, index): DrawnBlock => {
    const old = before[index]
    if (old?.text === text) return old
    return { text, lines: new Markdown(text.trim(), 0, 0, theme.markdown).render(width) }
  })
  if (item.isStreaming) drawnBlocks.set(item, { width, blocks })
  else drawnBlocks.delete(item)
  return blocks.flatMap(({ lines }, index) => (index === 0 ? lines : ['', ...lines]))
}

/**
 * Splits Markdown at empty lines before a line that begins something new: not inside a code block, and not where a list or
 * an indented part goes on. Appending text changes only the last part.
 */
export function splitMarkdown(text: string): readonly string[] {
  const blocks: string[] = []
  let block = ''
  let fence: string | null = null
  let isAfterEmpty = false
  for (const line of text.split('\n')) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1] ?? null
    const isNew = fence === null && isAfterEmpty && /^[^\s>|*+\-\d]|^\*\*/.test(line)
    if (isNew && block.trim() !== '') {
      blocks.push(block)
      block = ''
    }
    if (fence === null) fence = mark
    else if (mark?.startsWith(fence) === true && line.trim() === mark) fence = null
    block += `${block === '' ? '' : '\n'}${line}`
    isAfterEmpty = line.trim() === ''
  }
  return block.trim() === '' ? blocks : [...blocks, block]
}

const THINKING_LINES = 3

function drawThinking(item: AnswerItem, width: number, options: DrawOptions): readonly string[] {
  const { colors } = options.theme
  const text = item.text.trim()
  if (text === '') return []
  const lines = text.split('\n').flatMap((line) => wrapTextWithAnsi(line, Math.max(1, width - 2)))
  const shown = !options.isFolded ? lines : item.isStreaming ? lines.slice(-THINKING_LINES) : []
  const more = shown.length === lines.length ? '' : ` (${lines.length} lines, ctrl+o)`
  return [
    '',
    colors.dim(truncateToWidth(`∴ ${item.isStreaming ? 'Thinking …' : 'Thought'}${more}`, width)),
    ...shown.map((line) => `  ${colors.dim(colors.italic(line))}`),
  ]
}

const CALL_MARKS: Readonly<Record<CallItem['state'], string>> = {
  writing: '○',
  waiting: '○',
  running: '◐',
  done: '●',
  failed: '●',
  interrupted: '◌',
}

function drawCall(item: CallItem, width: number, options: DrawOptions): readonly string[] {
  const { theme, folder, isFolded } = options
  const { colors } = theme
  const paintMark =
    item.state === 'done' ? colors.green : item.state === 'failed' ? colors.red : colors.yellow
  const subject = describeCallSubject(item.name, item.input, folder)
  const title = `${paintMark(CALL_MARKS[item.state])} ${colors.bold(sanitizeText(item.name))} ${subject}`
  const change =
    item.state === 'failed'
      ? null
      : (item.change ?? viewChange(item.name, item.input, { folder, withFile: false }))
  const body =
    item.name === 'TodoWrite' && item.state !== 'failed'
      ? listTodos(item.input).map((line) => truncateToWidth(`  ${line}`, width))
      : change !== null
        ? drawChange(change, width, { theme, most: isFolded ? FOLDED_CHANGE : Number.POSITIVE_INFINITY })
        : drawResult(item, width, options)
  const end = item.state === 'interrupted' ? [colors.dim('  interrupted')] : []
  return [truncateToWidth(title, width), ...body, ...end]
}

const FOLDED_CHANGE = 12

function drawResult(item: CallItem, width: number, { theme, isFolded }: DrawOptions): readonly string[] {
  const { colors } = theme
  const { lines, more } = viewResult(item, isFolded)
  const paint = item.state === 'failed' ? colors.red : colors.dim
  const note = more === '' ? [] : [colors.dim(`  … ${more}${isFolded ? ' (ctrl+o)' : ''}`)]
  const body = isFolded
    ? lines.map((line) => `  ${paint(truncateToWidth(line, Math.max(1, width - 2)))}`)
    : lines.flatMap((line) =>
        wrapTextWithAnsi(line, Math.max(1, width - 2)).map((part) => `  ${paint(part)}`),
      )
  return item.state === 'failed' ? [...body, ...note] : [...note, ...body]
}

/** Draws a change of a file. At most `most` lines are shown. */
export function drawChange(
  change: readonly DiffLine[],
  width: number,
  { theme: { colors }, most }: { readonly theme: ScreenTheme; readonly most: number },
): readonly string[] {
  const lines = change.slice(0, most).map(({ kind, text }) => {
    const mark = kind === 'added' ? '+' : kind === 'removed' ? '-' : ' '
    const line = kind === 'gap' ? '  ⋮' : `  ${mark} ${truncateToWidth(text, Math.max(1, width - 4))}`
    if (kind === 'added') return colors.green(line)
    return kind === 'removed' ? colors.red(line) : colors.dim(line)
  })
  const more = change.length - lines.length
  return more > 0 ? [...lines, colors.dim(`  … ${more} more lines`)] : lines
}

function drawEventLine({ line }: LineItem, width: number, { theme }: DrawOptions): readonly string[] {
  const { colors } = theme
  const hint = line.detail === null ? '' : ' (ctrl+t opens it)'
  const room = Math.max(1, width - 2)
  return wrapTextWithAnsi(`${line.text}${hint}`, room).map((part, index) => {
    const mark = index === 0 ? line.mark : ' '
    return paintTone(
      line.tone,
      `${mark} ${visibleWidth(part) > room ? truncateToWidth(part, room) : part}`,
      colors,
    )
  })
}
