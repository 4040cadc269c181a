/** Draws the items of the transcript as lines, none wider than the screen. */
import { stripVTControlCharacters } from 'node:util'
import { Markdown, truncateToWidth, visibleWidth, wrapTextWithAnsi } from '@earendil-works/pi-tui'
import { formatCount } from '@tidemark/terminal/render/format-numbers'
import { cutTextStart, toSafeLine } from '@tidemark/terminal/render/text'
import { type DiffLine, formatLinePrefixes } from './line-diff.ts'
import { paintTone, type ScreenTheme } from './theme.ts'
import {
  computeCallChange,
  createResultView,
  describeCallSubject,
  formatExitCode,
  formatRefusalReason,
  formatTodos,
  isShellCall,
} from './tool-views.ts'
import type { EventLineItem, ModelTextItem, PromptItem, ToolCallItem, TranscriptItem } from './transcript.ts'

export interface DrawOptions {
  readonly theme: ScreenTheme
  readonly folder: string
  /** True if tool results are shown in short form. */
  readonly isFolded: boolean
}

/** Draws one item, with an empty line before it where that helps. Items that left the conversation are dimmed. */
export function drawTranscriptItem(
  item: TranscriptItem,
  width: number,
  options: DrawOptions,
): readonly string[] {
  const lines = drawInColor(item, width, options)
  const { dim } = options.theme.colors
  return item.isLeft === true ? lines.map((line) => dim(stripVTControlCharacters(line))) : lines
}

function drawInColor(item: TranscriptItem, width: number, options: DrawOptions): readonly string[] {
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

/** Lines at the beginning and end of a long prompt, such as one with a pasted file, that are shown while it is folded. */
const FOLDED_PROMPT = { head: 8, tail: 3 }

function drawPrompt(
  { text }: PromptItem,
  width: number,
  { theme: { colors }, isFolded }: DrawOptions,
): readonly string[] {
  const { head, tail } = FOLDED_PROMPT
  const lines = text.split('\n').flatMap((line) => wrapTextWithAnsi(line, Math.max(1, width - 2)))
  const drawn = lines.map((line, index) => `${colors.cyan(index === 0 ? '❯' : ' ')} ${colors.bold(line)}`)
  const hidden = lines.length - head - tail
  if (!isFolded || hidden < tail) return drawn
  const note = colors.dim(truncateToWidth(`  … ${formatCount(hidden, 'more line')} (ctrl+o)`, width))
  return [...drawn.slice(0, head), note, ...drawn.slice(-tail)]
}

/** The drawn blocks of each answer, so that a growing answer is not drawn again from its beginning. */
const drawnBlocks = new WeakMap<ModelTextItem, { readonly width: number; readonly blocks: DrawnBlock[] }>()

interface DrawnBlock {
  readonly text: string
  readonly lines: readonly string[]
}

function drawMarkdown(item: ModelTextItem, width: number, { theme }: DrawOptions): readonly string[] {
  const known = drawnBlocks.get(item)
  const before = known?.width === width ? known.blocks : []
  const blocks = splitMarkdownBlocks(item.text).map((text, index): DrawnBlock => {
    const old = before[index]
    if (old?.text === text) return old
    return { text, lines: new Markdown(text.trim(), 0, 0, theme.markdown).render(width) }
  })
  if (item.isStreaming) drawnBlocks.set(item, { width, blocks })
  else drawnBlocks.delete(item)
  return blocks.flatMap(({ lines }, index) => (index === 0 ? lines : ['', ...lines]))
}

/**
 * Splits Markdown at empty lines before a line that begins something new: not inside a code block, and not inside a list or an indented
 * part. Appending text changes only the last part.
 */
export function splitMarkdownBlocks(text: string): readonly string[] {
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

function drawThinking(item: ModelTextItem, width: number, options: DrawOptions): readonly string[] {
  const { colors } = options.theme
  const text = item.text.trim()
  if (text === '') return []
  const lines = text.split('\n').flatMap((line) => wrapTextWithAnsi(line, Math.max(1, width - 2)))
  const shown = !options.isFolded ? lines : item.isStreaming ? lines.slice(-THINKING_LINES) : []
  const more = shown.length === lines.length ? '' : ` (${formatCount(lines.length, 'line')}, ctrl+o)`
  return [
    '',
    colors.dim(truncateToWidth(`∴ ${item.isStreaming ? 'Thinking …' : 'Thought'}${more}`, width)),
    ...shown.map((line) => `  ${colors.dim(colors.italic(line))}`),
  ]
}

const CALL_MARKS: Readonly<Record<ToolCallItem['state'], string>> = {
  writing: '○',
  waiting: '○',
  running: '◐',
  done: '●',
  failed: '●',
  refused: '●',
  interrupted: '◌',
}

function drawCall(item: ToolCallItem, width: number, options: DrawOptions): readonly string[] {
  const { theme, folder } = options
  const { colors } = theme
  const paintMark =
    item.state === 'done' ? colors.green : item.state === 'failed' ? colors.red : colors.yellow
  const subject = describeCallSubject(item.name, item.input, folder)
  const mark = `${paintMark(CALL_MARKS[item.state])} ${colors.bold(toSafeLine(item.name))}`
  const end = formatExitCode(item)
  const room = Math.max(1, width - visibleWidth(mark) - visibleWidth(end) - 1)
  // The end of a path is more informative than its beginning.
  const isPath = /^\S*\/\S*$/.test(subject)
  const shown = isPath ? cutTextStart(subject, room) : truncateToWidth(subject, room)
  const title = `${mark} ${shown}${colors.red(end)}`
  // For a call that has not run yet, the permission question shows the change.
  const change =
    item.state === 'done' || item.state === 'interrupted'
      ? (item.change ?? computeCallChange(item.name, item.input, { folder, withFile: false }))
      : null
  const body =
    item.name === 'TodoWrite' && item.state !== 'failed' && item.state !== 'refused'
      ? formatTodos(item.input).map((line) => truncateToWidth(`  ${line}`, width))
      : change !== null
        ? drawChange(change, width, options)
        : drawResult(item, width, options)
  const remark = item.state === 'interrupted' ? [colors.dim('  interrupted')] : []
  return [truncateToWidth(title, width), ...body, ...remark]
}

const FOLDED_CHANGE = 12

function drawResult(item: ToolCallItem, width: number, { theme, isFolded }: DrawOptions): readonly string[] {
  const { colors } = theme
  if (item.state === 'refused')
    return wrapTextWithAnsi(`refused${formatRefusalReason(item)}`, Math.max(1, width - 2)).map(
      (line) => `  ${colors.yellow(line)}`,
    )
  const { lines, more } = createResultView(item, isFolded)
  const paint = item.state === 'failed' ? colors.red : colors.dim
  const rest = truncateToWidth(`  … ${more}${isFolded ? ' (ctrl+o)' : ''}`, width)
  const note = more === '' ? [] : [colors.dim(rest)]
  const body = isFolded
    ? lines.map((line) => `  ${paint(truncateToWidth(line, Math.max(1, width - 2)))}`)
    : lines.flatMap((line) =>
        wrapTextWithAnsi(line, Math.max(1, width - 2)).map((part) => `  ${paint(part)}`),
      )
  return item.state === 'failed' && !isShellCall(item) ? [...body, ...note] : [...note, ...body]
}

/** Draws a change of a file with line numbers. While folded, long lines are cut and only the first lines are shown. */
export function drawChange(
  change: readonly DiffLine[],
  width: number,
  { theme: { colors }, isFolded }: Pick<DrawOptions, 'theme' | 'isFolded'>,
): readonly string[] {
  const starts = formatLinePrefixes(change)
  const shown = isFolded ? change.slice(0, FOLDED_CHANGE) : change
  const lines = shown.flatMap(({ kind, text }, at) => {
    const start = starts[at] ?? ''
    const room = Math.max(1, width - start.length)
    const parts = isFolded ? [truncateToWidth(text, room, '…')] : wrapKeepingSpaces(text, room)
    const paint = kind === 'added' ? colors.green : kind === 'removed' ? colors.red : colors.dim
    return parts.map((part, index) => paint(`${index === 0 ? start : ' '.repeat(start.length)}${part}`))
  })
  const more = change.length - shown.length
  const rest = truncateToWidth(`  … ${formatCount(more, 'more line')} (ctrl+o)`, width)
  return more > 0 ? [...lines, colors.dim(rest)] : lines
}

/** Wraps one line after a space, or anywhere in a long word, and keeps every character, including runs of spaces. */
export function wrapKeepingSpaces(text: string, width: number): readonly string[] {
  if (visibleWidth(text) <= width) return [text]
  const lines: string[] = []
  let [line, cells, afterSpace] = ['', 0, 0]
  for (const { segment } of graphemes.segment(text)) {
    const size = visibleWidth(segment)
    if (cells + size > width && line !== '') {
      const cut = afterSpace > line.length / 2 ? afterSpace : line.length
      lines.push(line.slice(0, cut))
      line = line.slice(cut)
      cells = visibleWidth(line)
      afterSpace = 0
    }
    line += segment
    cells += size
    if (segment === ' ') afterSpace = line.length
  }
  return [...lines, line]
}

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

function drawEventLine({ line }: EventLineItem, width: number, { theme }: DrawOptions): readonly string[] {
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
