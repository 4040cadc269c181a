/** Opens, in full, what the transcript shows in short form: rewrites, cache breaks, tool calls and thinking. */
import { createTimeFormat } from '@tidemark/terminal/render/screen'
import {
  escapeLinesForApproval,
  removeControlCharacters,
  toOneLinePreview,
  toSafeLine,
} from '@tidemark/terminal/render/text'
import { formatReceipt } from '../screen/compaction-text.ts'
import { drawChange } from '../screen/draw-items.ts'
import type { EventLineDetail } from '../screen/event-lines.ts'
import { highlightCode } from '../screen/highlight-code.ts'
import { type PanelRow, toPageRows } from '../screen/panel.ts'
import { computeCallChange, describeCallSubject } from '../screen/tool-views.ts'
import type { ToolCallItem, TranscriptItem } from '../screen/transcript.ts'
import { type ChatContext, showPage } from './chat-context.ts'
import { readCacheBreakDiff } from './session-files.ts'

/**
 * Lists what can be opened, newest turn first, each turn under its prompt, and opens what the user chooses. When that is closed, the list
 * is shown again at the same place.
 */
export async function showOpenableItems(chat: ChatContext): Promise<void> {
  let isForRewrites = false
  let choice = 0
  for (;;) {
    const turns = listTurns(chat.transcript.items, isForRewrites ? isRewrite : canOpen)
    const items = turns.flatMap((turn) => turn.items)
    if (items.length === 0 && !isForRewrites) return chat.show('There is nothing to open yet.')
    const result = await chat.screen.openPanel({
      title: isForRewrites
        ? 'Rewrites of the context and cache breaks, newest first'
        : 'What can be opened, newest first',
      rows: () =>
        items.length === 0
          ? [{ text: 'There are none yet.' }]
          : turns.flatMap((turn) => drawTurn(turn, chat)),
      actions: [
        { key: 'enter', label: 'open' },
        { key: 'r', label: isForRewrites ? 'tool calls too' : 'rewrites and breaks only' },
      ],
      firstChoice: choice,
    })
    if (result === null) return
    if (result.key === 'r') {
      isForRewrites = !isForRewrites
      choice = 0
      continue
    }
    choice = Math.max(0, result.choice)
    const item = items[result.choice]
    if (item !== undefined) await openItem(item, chat)
  }
}

interface OpenableTurn {
  /** The prompt of the turn; null for items before the first prompt. */
  readonly prompt: string | null
  /** What can be opened, the newest first. */
  readonly items: readonly TranscriptItem[]
}

/** Returns the turns that have items to open, newest first. */
function listTurns(
  items: readonly TranscriptItem[],
  isListed: (item: TranscriptItem) => boolean,
): readonly OpenableTurn[] {
  const turns: { prompt: string | null; items: TranscriptItem[] }[] = [{ prompt: null, items: [] }]
  for (const item of items) {
    if (item.kind === 'prompt') turns.push({ prompt: item.text, items: [] })
    else if (isListed(item)) turns.at(-1)?.items.unshift(item)
  }
  return turns.filter((turn) => turn.items.length > 0).toReversed()
}

function drawTurn({ prompt, items }: OpenableTurn, chat: ChatContext): readonly PanelRow[] {
  const { colors } = chat.theme
  const heading = prompt === null ? '' : `“${toOneLinePreview(prompt, HEADING_CHARACTERS)}”`
  return [
    { text: colors.dim(heading) },
    ...items.map((item) => ({ text: describeItem(item, chat), isChoice: true })),
  ]
}

const HEADING_CHARACTERS = 100

function isRewrite(item: TranscriptItem): boolean {
  return item.kind === 'line' && item.line.detail !== null
}

function canOpen(item: TranscriptItem): boolean {
  return isRewrite(item) || item.kind === 'call' || (item.kind === 'thinking' && item.text.trim() !== '')
}

const PREVIEW_CHARACTERS = 200

function describeItem(item: TranscriptItem, { theme, start }: ChatContext): string {
  const { colors } = theme
  if (item.kind === 'line') return `${colors.yellow(item.line.mark)} ${item.line.text}`
  if (item.kind === 'call') {
    const subject = describeCallSubject(item.name, item.input, start.folder)
    const state =
      item.state === 'failed'
        ? colors.red(' failed')
        : item.state === 'refused'
          ? colors.yellow(' refused')
          : ''
    return `${colors.green('●')} ${item.name} ${subject}${state}`
  }
  return `∴ ${toOneLinePreview(item.text, PREVIEW_CHARACTERS)}`
}

async function openItem(item: TranscriptItem, chat: ChatContext): Promise<void> {
  if (item.kind === 'call') return openCall(item, chat)
  if (item.kind !== 'line') return showPage(chat, 'Thinking', item.text)
  const { detail } = item.line
  if (detail?.compaction !== undefined) return openCompaction(detail, detail.compaction, chat)
  if (detail === null) return
  const { text, diffAt } = detail
  const diff =
    diffAt === undefined ? null : await readCacheBreakDiff(chat.start.home, chat.agent.session.id, diffAt)
  const parts = diff === null ? [text] : [text, '', ...highlightCode(diff, 'diff', chat.theme.colors)]
  await showPage(chat, detail.title, parts.join('\n'))
}

/** Shows a compaction: when and why, what left the context, and the summary. */
async function openCompaction(
  { title, text }: EventLineDetail,
  { id, hasReceipt }: NonNullable<EventLineDetail['compaction']>,
  chat: ChatContext,
): Promise<void> {
  const { colors } = chat.theme
  const logged = chat.agent.session.compaction(id)
  const head = [
    ...(logged === null ? [] : [`When: ${createTimeFormat(chat.start.terminal.env.TZ).full(logged.at)}`]),
    text,
    ...(logged === null || hasReceipt ? [] : ['', formatReceipt(logged.makeReceipt())]),
    ...(logged?.instructions == null ? [] : ['', `Your instructions: ${toSafeLine(logged.instructions)}`]),
  ].join('\n')
  await chat.screen.openPanel({
    title,
    rows: () =>
      toPageRows(
        logged?.summary == null
          ? head
          : `${head}\n\n${colors.bold('What the model is shown instead')}\n${removeControlCharacters(logged.summary)}`,
      ),
    actions: [],
  })
}

const RESULT_TITLES: Readonly<Partial<Record<ToolCallItem['state'], string>>> = {
  failed: 'Error',
  refused: 'Refused',
}

/** Shows a whole call: its input, the change that it made, and its result. */
async function openCall(item: ToolCallItem, chat: ChatContext): Promise<void> {
  const { theme, start } = chat
  const { colors } = theme
  const change =
    item.change ?? computeCallChange(item.name, item.input, { folder: start.folder, withFile: false })
  const fields = Object.entries(item.input).map(([name, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2)
    return `${colors.cyan(escapeLinesForApproval(name))}: ${escapeLinesForApproval(text)}`
  })
  const title = `${item.name} ${describeCallSubject(item.name, item.input, start.folder)}`
  await chat.screen.openPanel({
    title,
    rows(width) {
      const input = change === null ? fields : drawChange(change, width, { theme, isFolded: false })
      const result = item.result === null ? [colors.dim('No result yet.')] : item.result.split('\n')
      return [...input, '', colors.bold(RESULT_TITLES[item.state] ?? 'Result'), ...result].flatMap((text) =>
        text.split('\n').map((line) => ({ text: line })),
      )
    },
    actions: [],
  })
}
