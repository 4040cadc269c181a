/** /context draws what fills the window, by class, tool, file and source, and lists the largest messages, to pin or open. */

import {
  formatCount,
  formatTokenLimit,
  formatTokens,
  formatWholePercent,
} from '@tidemark/terminal/render/format-numbers'
import { renderBar } from '@tidemark/terminal/render/layout'
import { chooseSymbols } from '@tidemark/terminal/render/screen'
import { cutTextEnd, formatProjectPath, toOneLinePreview, toSafeLine } from '@tidemark/terminal/render/text'
import type { ContextBreakdown, EventOf } from 'tidemark'
import {
  isKnownRecord,
  isMicrocompactBoundary,
  isTextBlock,
  isToolResult,
  isToolUse,
  readToolResultText,
  type SessionRecord,
  toBlocks,
} from 'tidemark/records'
import { isObject } from '../json-value.ts'
import type { PanelChoice, PanelRow } from '../screen/panel.ts'
import { toScreenText } from '../screen/screen-text.ts'
import { describeCallSubject } from '../screen/tool-views.ts'
import { type ChatContext, type SlashCommand, showPage } from './chat-context.ts'

const MAX_MESSAGES = 40

export const contextCommand: SlashCommand = {
  name: 'context',
  args: '',
  description: 'what fills the window: by class, tool, file and source; clear results, pin messages',
  async run(chat) {
    let choice: number | null = null
    let note = ''
    for (;;) {
      const breakdown = chat.agent.session.breakdown()
      const { messages, pinned } = await readLargest(chat, breakdown)
      const result: PanelChoice | null = await chat.screen.openPanel({
        title: 'Context',
        note: toSafeLine(note),
        rows: (width) => [
          ...drawBreakdown(chat, breakdown, width).map((text) => ({ text })),
          ...drawMessages(chat, messages, pinned),
        ],
        actions: [
          { key: 'enter', label: 'look at it' },
          { key: 'c', label: 'clear the result' },
          { key: 'p', label: 'pin' },
          { key: 'u', label: 'unpin' },
        ],
        ...(choice === null ? {} : { firstChoice: choice }),
      })
      const chosen = result === null ? undefined : messages[result.choice]
      if (result === null || chosen === undefined) return
      choice = result.choice
      note = await actOn(chat, { ...chosen, isPinned: pinned.has(chosen.uuid) }, result.key)
    }
  },
}

/** Handles a key in the panel. Returns a remark to show in it. */
async function actOn(
  chat: ChatContext,
  { uuid, label, text, isPinned }: LargeMessage & { readonly isPinned: boolean },
  key: string,
): Promise<string> {
  const { session } = chat.agent
  if (key === 'enter') {
    await showPage(chat, label, text)
    return ''
  }
  if (key === 'c') {
    if (isPinned) return 'It is pinned, so it is not cleared: u unpins it.'
    const outcome = await chat.work('clearing', () => session.clearResults([uuid]))
    if (outcome === null) return 'Nothing was cleared.'
    return outcome.ok
      ? `About ${formatTokens(outcome.freedTokens)} tokens freed. /undo restores them. The next request counts the rest anew.`
      : outcome.message
  }
  if (key === 'u' && !isPinned) return 'It is not pinned.'
  const outcome = key === 'p' ? await session.pin(uuid) : await session.unpin(uuid)
  if (!outcome.ok) return outcome.message
  return outcome.note ?? (key === 'p' ? 'Pinned: every rewrite keeps it.' : 'No longer pinned.')
}

interface LargeMessage {
  readonly uuid: string
  readonly tokens: number
  readonly label: string
  readonly text: string
}

/** Returns the largest messages of the context with their texts, and the uuids of the pinned records. */
async function readLargest(
  { agent, start }: ChatContext,
  { messages }: ContextBreakdown,
): Promise<{ readonly messages: readonly LargeMessage[]; readonly pinned: ReadonlySet<string> }> {
  const largest = messages.toSorted((one, other) => other.tokens - one.tokens).slice(0, MAX_MESSAGES)
  const all = await agent.session.records({ branches: 'all' })
  const records = all.map(({ record }) => record)
  const byUuid = new Map(records.map((record) => [record.uuid, record]))
  const calls = new Map(records.flatMap(listCalls).map((call) => [call.id, call]))
  const cleared = new Set(records.flatMap(listCleared))
  const found = largest.map(({ uuid, tokens }) => {
    const record = byUuid.get(uuid)
    if (record === undefined) return { uuid, tokens, label: 'attachment', text: '' }
    const result = findResult(record)
    const call = result === null ? undefined : calls.get(result)
    const subject =
      call === undefined ? '' : describeCallSubject(call.name, toInput(call.input), start.folder)
    const isCleared = result !== null && cleared.has(result)
    const name =
      call === undefined ? nameRecord(record, start.folder) : `${toSafeLine(call.name)} ${subject}`.trim()
    return { uuid, tokens, label: isCleared ? `${name}, cleared` : name, text: readRecordText(record) }
  })
  return { messages: found, pinned: findPinned(records) }
}

function listCalls(record: SessionRecord): readonly EventOf<'tool-started'>['call'][] {
  if (!isKnownRecord(record) || record.type !== 'assistant') return []
  return toBlocks(record.message.content).filter(isToolUse)
}

/** Returns the ids of the calls whose results a clearing record names. Later undos are ignored, because they are rare. */
function listCleared(record: SessionRecord): readonly string[] {
  if (!isKnownRecord(record) || !isMicrocompactBoundary(record)) return []
  return record.microcompactMetadata.compactedToolIds
}

/** Returns the id of the call whose result a record has; null if it has none. */
function findResult(record: SessionRecord): string | null {
  if (!isKnownRecord(record) || record.type !== 'user') return null
  return toBlocks(record.message.content).find(isToolResult)?.tool_use_id ?? null
}

function toInput(input: unknown): Readonly<Record<string, unknown>> {
  return isObject(input) ? input : {}
}

function nameRecord(record: SessionRecord, folder: string): string {
  if (!isKnownRecord(record)) return 'attachment'
  if (record.isCompactSummary === true) return 'summary'
  if (record.type === 'attachment') {
    const { type = 'attachment', key, filename } = record.attachment
    if (typeof filename === 'string') return `${nameAttachment(type)} ${formatProjectPath(filename, folder)}`
    return typeof key === 'string' ? toSafeLine(key).replace(/:$/, '') : nameAttachment(type)
  }
  if (record.type === 'user') return record.isMeta === true ? 'note to the model' : 'you'
  return 'model'
}

function nameAttachment(type: string): string {
  return ATTACHMENT_NAMES[type] ?? toSafeLine(type).replaceAll('_', ' ')
}

const ATTACHMENT_NAMES: Readonly<Record<string, string>> = {
  ambient_context: 'surroundings',
  section_delta: 'change of the system prompt',
}

/** Returns the pinned records. The newest pin record of each applies. */
function findPinned(records: readonly SessionRecord[]): ReadonlySet<string> {
  const pinned = new Set<string>()
  for (const record of records.filter(isKnownRecord)) {
    const pin = record.type === 'system' ? record.pin : undefined
    if (pin?.pinned === true) pinned.add(pin.target)
    else if (pin !== undefined) pinned.delete(pin.target)
  }
  return pinned
}

/** Returns the text of a record that fills the context, safe to print. */
function readRecordText(record: SessionRecord): string {
  if (!isKnownRecord(record)) return ''
  if (record.type === 'attachment') {
    const { content } = record.attachment
    return toScreenText(typeof content === 'string' ? content : JSON.stringify(record.attachment, null, 2))
  }
  if (record.type !== 'user' && record.type !== 'assistant') return ''
  const texts = toBlocks(record.message.content).map((block) => {
    if (isTextBlock(block)) return block.text
    if (isToolResult(block)) return readToolResultText(block.content)
    return isToolUse(block) ? `${block.name} ${JSON.stringify(block.input, null, 2)}` : `[${block.type}]`
  })
  return toScreenText(texts.join('\n'))
}

function drawMessages(
  { theme: { colors } }: ChatContext,
  messages: readonly LargeMessage[],
  pinned: ReadonlySet<string>,
): readonly PanelRow[] {
  const rows = messages.map(({ uuid, tokens, label, text }) => {
    const mark = pinned.has(uuid) ? colors.yellow('pinned ') : ''
    const size = formatTokens(tokens).padStart(7)
    return {
      text: `${size}  ${mark}${colors.dim(label)} ${toOneLinePreview(text, PREVIEW_CHARACTERS)}`,
      isChoice: true,
    }
  })
  return [{ text: '' }, { text: colors.bold('Largest messages') }, ...rows]
}

const PREVIEW_CHARACTERS = 200
const LADDER_CELLS = 60
const NAME_CELLS = 30

/** Draws the bar of the window, then one chart for each way to divide its content. */
function drawBreakdown(chat: ChatContext, breakdown: ContextBreakdown, width: number): readonly string[] {
  const { theme, agent, start } = chat
  const { colors } = theme
  const remaining = agent.session.contextRemaining()
  const { lines, tokens, percentLeft, advice } = remaining
  const window =
    lines === null
      ? []
      : [drawWindow(lines, breakdown.classes, { cells: Math.min(LADDER_CELLS, width - 2), colors })]
  const limits =
    lines === null
      ? 'The window of this model is unknown.'
      : [
          `${formatTokens(tokens)} of ${formatTokenLimit(lines.window)} tokens`,
          `${colors.cyan('▲')} compacts at ${formatTokenLimit(lines.autoCompact)}, ${percentLeft}% left until then`,
          `${colors.red('┃')} no request from ${formatTokenLimit(lines.blocking)} on`,
        ].join(' · ')
  const chart = (title: string, shares: readonly Share[]): readonly string[] =>
    drawShares(title, shares, { width, total: breakdown.total.tokens, chat })
  const files = breakdown.files.map((share) => ({
    ...share,
    name: formatProjectPath(share.name, start.folder),
  }))
  return [
    ...window,
    limits,
    ...(advice === null ? [] : [colors.yellow(toSafeLine(advice.sentence))]),
    ...drawShares('By class', breakdown.classes, {
      width,
      total: breakdown.total.tokens,
      chat,
      isColored: true,
    }),
    ...chart('By tool', breakdown.tools),
    ...chart('By file', files),
    ...chart(
      'By source',
      breakdown.carriers.map((share) => ({ ...share, name: nameAttachment(share.name) })),
    ),
    ...chart(
      'Read more than once',
      breakdown.duplicateReads.map(({ path, count, tokens: wasted }) => ({
        name: formatProjectPath(path, start.folder),
        count,
        tokens: wasted,
      })),
    ),
  ]
}

type Colors = ChatContext['theme']['colors']

/** Colours of the classes, largest first, in the bar and in the chart. */
function listPaints(colors: Colors): readonly ((text: string) => string)[] {
  const { cyan, blue, magenta, green, yellow, red, white } = colors
  return [cyan, blue, magenta, green, yellow, red, white]
}

function sortShares<Item extends Share>(shares: readonly Item[]): readonly Item[] {
  return shares.toSorted((one, other) => other.tokens - one.tokens)
}

/** Draws the window as a bar: each class in its colour, then the free part with its thresholds. */
function drawWindow(
  lines: NonNullable<ReturnType<ChatContext['agent']['session']['contextRemaining']>['lines']>,
  classes: readonly Share[],
  { cells, colors }: { readonly cells: number; readonly colors: Colors },
): string {
  const paints = listPaints(colors)
  const place = (amount: number): number => Math.floor((amount / lines.window) * cells)
  const marks = new Map([
    [place(lines.blocking), colors.red('┃')],
    [place(lines.autoCompact), colors.cyan('▲')],
  ])
  let sum = 0
  const ends = sortShares(classes).map(({ tokens }) => {
    sum += tokens
    return Math.round((sum / lines.window) * cells)
  })
  const used = Math.max(sum > 0 ? 1 : 0, ends.at(-1) ?? 0)
  return Array.from({ length: cells }, (_, cell) => {
    if (cell >= used) return marks.get(cell) ?? colors.dim('░')
    const index = ends.findIndex((end) => cell < end)
    return (paints[index === -1 ? 0 : index] ?? colors.dim)('█')
  }).join('')
}

interface Share {
  readonly name: string
  readonly tokens: number
  readonly count?: number
}

const MAX_SHARES = 8
/** Columns for the figures beside a name, including spaces. */
const FIGURE_CELLS = 22

function drawShares(
  title: string,
  shares: readonly Share[],
  {
    width,
    total,
    chat,
    isColored = false,
  }: {
    readonly width: number
    readonly total: number
    readonly chat: ChatContext
    /** True to colour each row as in the bar of the window. */
    readonly isColored?: boolean
  },
): readonly string[] {
  if (shares.length === 0) return []
  const { colors } = chat.theme
  const symbols = chooseSymbols(chat.start.terminal.env)
  const sorted = sortShares(shares)
  const paints = listPaints(colors)
  const nameCells = Math.max(8, Math.min(NAME_CELLS, width - FIGURE_CELLS))
  const room = Math.max(0, Math.min(40, width - NAME_CELLS - 30))
  const rows = sorted.slice(0, MAX_SHARES).map(({ name, tokens, count }, index) => {
    const paint = isColored ? (paints[index] ?? colors.dim) : colors.cyan
    const share = tokens / Math.max(1, total)
    const label = cutTextEnd(toSafeLine(name), nameCells).padEnd(nameCells)
    const times = count === undefined ? '' : colors.dim(` ×${count}`)
    const figures = `${formatTokens(tokens).padStart(7)} ${formatWholePercent(share).padStart(4)}`
    return `  ${label}${figures} ${paint(renderBar(share, room, symbols))}${times}`
  })
  const more = sorted.length - rows.length
  const rest = more > 0 ? [colors.dim(`  and ${formatCount(more, 'more', 'more')}`)] : []
  return ['', colors.bold(title), ...rows, ...rest]
}
