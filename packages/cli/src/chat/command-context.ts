/** /context: what fills the window, drawn, by class, tool, file and source; the largest messages, to pin or to look at. */
import {
  isKnownRecord,
  isTextBlock,
  isToolResult,
  isToolUse,
  readToolResultText,
  type SessionRecord,
  toBlocks,
} from '@tidemark/core'
import type { ContextBreakdown } from 'tidemark'
import { formatCount, formatLimit, formatTokens, formatWholePercent } from '../render/format-numbers.ts'
import { renderBar } from '../render/layout.ts'
import { chooseSymbols } from '../render/screen.ts'
import { cutTextEnd, formatProjectPath, sanitizeText, toOneLinePreview } from '../render/text.ts'
import { drawLadder } from '../screen/context-meter.ts'
import type { PanelResult, PanelRow } from '../screen/panel.ts'
import { toScreenText } from '../screen/transcript.ts'
import { type ChatContext, type SlashCommand, showPage } from './chat-context.ts'
import { readSessionRecords } from './session-files.ts'

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
      const result: PanelResult | null = await chat.screen.openPanel({
        title: note === '' ? 'Context' : `Context: ${note}`,
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
      note = await actOn(chat, chosen, result.key)
    }
  },
}

/** Does what a key asks for. Returns a remark for the title of the panel. */
async function actOn(chat: ChatContext, { uuid, label, text }: LargeMessage, key: string): Promise<string> {
  const { session } = chat.agent
  if (key === 'enter') {
    await showPage(chat, label, text)
    return ''
  }
  if (key === 'c') {
    const outcome = await chat.work('clearing', () => session.clearResults([uuid]))
    if (outcome === null) return 'nothing was cleared'
    return outcome.ok
      ? `${formatTokens(outcome.freedTokens)} tokens freed; /undo restores them`
      : outcome.message
  }
  const outcome = key === 'p' ? await session.pin(uuid) : await session.unpin(uuid)
  if (!outcome.ok) return outcome.message
  return outcome.note ?? (key === 'p' ? 'pinned: every rewrite keeps it' : 'no longer pinned')
}

interface LargeMessage {
  readonly uuid: string
  readonly tokens: number
  readonly label: string
  readonly text: string
}

/** Returns the largest messages of the context with their text, and the uuids of the records that are pinned. */
async function readLargest(
  { agent, start }: ChatContext,
  { messages }: ContextBreakdown,
): Promise<{ readonly messages: readonly LargeMessage[]; readonly pinned: ReadonlySet<string> }> {
  const largest = messages.toSorted((one, other) => other.tokens - one.tokens).slice(0, MAX_MESSAGES)
  const records = await readSessionRecords(start.home, agent.session.id)
  const byUuid = new Map(records.map((record) => [record.uuid, record]))
  const found = largest.map(({ uuid, kind, tokens }) => {
    const record = byUuid.get(uuid)
    const text = record === undefined ? '' : readRecordText(record)
    return { uuid, tokens, label: KIND_NAMES[kind] ?? kind, text }
  })
  return { messages: found, pinned: findPinned(records) }
}

/** The newest pin of a record applies. */
function findPinned(records: readonly SessionRecord[]): ReadonlySet<string> {
  const pinned = new Set<string>()
  for (const record of records.filter(isKnownRecord)) {
    const pin = record.type === 'system' ? record.pin : undefined
    if (pin?.pinned === true) pinned.add(pin.target)
    else if (pin !== undefined) pinned.delete(pin.target)
  }
  return pinned
}

const KIND_NAMES: Readonly<Record<string, string>> = { user: 'user or tool result', assistant: 'model' }

/** Returns the text of a record that fills the context, safe to print. */
function readRecordText(record: SessionRecord): string {
  if (!isKnownRecord(record)) return ''
  if (record.type === 'attachment') return toScreenText(JSON.stringify(record.attachment, null, 2))
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

/** Draws what fills the window: a bar of the window, then a chart for each way to divide it. */
function drawBreakdown(chat: ChatContext, breakdown: ContextBreakdown, width: number): readonly string[] {
  const { theme, agent, start } = chat
  const { colors } = theme
  const remaining = agent.session.contextRemaining()
  const { lines, tokens, percentLeft, advice } = remaining
  const window = lines === null ? [] : [drawLadder(remaining, Math.min(LADDER_CELLS, width - 2), theme)]
  const limits =
    lines === null
      ? 'The window of this model is unknown.'
      : `${formatTokens(tokens)} tokens of a window of ${formatLimit(lines.window)} · ${percentLeft}% left until automatic compaction at ${formatLimit(lines.autoCompact)} · blocked at ${formatLimit(lines.blocking)}`
  const chart = (title: string, shares: readonly Share[]): readonly string[] =>
    drawShares(title, shares, { width, total: breakdown.total.tokens, chat })
  const files = breakdown.files.map((share) => ({
    ...share,
    name: formatProjectPath(share.name, start.folder),
  }))
  return [
    ...window,
    limits,
    ...(advice === null ? [] : [colors.yellow(sanitizeText(advice.sentence))]),
    ...chart('By class', breakdown.classes),
    ...chart('By tool', breakdown.tools),
    ...chart('By file', files),
    ...chart('By source', breakdown.carriers),
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

interface Share {
  readonly name: string
  readonly tokens: number
  readonly count?: number
}

const MAX_SHARES = 8

function drawShares(
  title: string,
  shares: readonly Share[],
  { width, total, chat }: { readonly width: number; readonly total: number; readonly chat: ChatContext },
): readonly string[] {
  if (shares.length === 0) return []
  const { colors } = chat.theme
  const symbols = chooseSymbols(chat.start.terminal.env)
  const sorted = shares.toSorted((one, other) => other.tokens - one.tokens)
  const room = Math.max(0, Math.min(40, width - NAME_CELLS - 30))
  const rows = sorted.slice(0, MAX_SHARES).map(({ name, tokens, count }) => {
    const share = tokens / Math.max(1, total)
    const label = cutTextEnd(sanitizeText(name), NAME_CELLS).padEnd(NAME_CELLS)
    const times = count === undefined ? '' : colors.dim(` ×${count}`)
    const figures = `${formatTokens(tokens).padStart(7)} ${formatWholePercent(share).padStart(4)}`
    return `  ${label}${figures} ${colors.cyan(renderBar(share, room, symbols))}${times}`
  })
  const more = sorted.length - rows.length
  const rest = more > 0 ? [colors.dim(`  and ${formatCount(more, 'more', 'more')}`)] : []
  return ['', colors.bold(title), ...rows, ...rest]
}
