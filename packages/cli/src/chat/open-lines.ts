/** Opens what the transcript shows in short form: rewrites of the context, cache breaks, tool calls and thinking. */
import { toOneLinePreview } from '../render/text.ts'
import { drawChange } from '../screen/draw-items.ts'
import { highlightCode } from '../screen/highlight-code.ts'
import { describeCallSubject, viewChange } from '../screen/tool-views.ts'
import { type CallItem, type LineItem, type TranscriptItem, toScreenText } from '../screen/transcript.ts'
import { type ChatContext, showPage } from './chat-context.ts'
import { readBreakDiff } from './session-files.ts'

/** Shows a list of what can be opened, the newest first, and opens what the user chooses. */
export async function openLines(chat: ChatContext): Promise<void> {
  for (;;) {
    const items = chat.transcript.items.filter(canOpen).toReversed()
    if (items.length === 0) return chat.show('There is nothing to open yet.')
    const rows = items.map((item) => ({ text: describeItem(item, chat), isChoice: true }))
    const result = await chat.screen.openPanel({
      title: 'Open: what was done to the context, and tool calls, the newest first',
      rows: () => rows,
      actions: [
        { key: 'enter', label: 'open' },
        { key: 'r', label: 'rewrites and breaks only' },
      ],
    })
    if (result === null) return
    if (result.key === 'r') {
      if (!(await openRewrites(chat))) return
      continue
    }
    const item = items[result.choice]
    if (item !== undefined) await openItem(item, chat)
  }
}

/** Lists only what was done to the context. Returns false if the user closes it. */
async function openRewrites(chat: ChatContext): Promise<boolean> {
  const items = chat.transcript.items
    .filter((item): item is LineItem => item.kind === 'line' && item.line.detail !== null)
    .toReversed()
  const result = await chat.screen.openPanel({
    title: 'Rewrites of the context and cache breaks, the newest first',
    rows: () =>
      items.length === 0
        ? [{ text: 'There are none yet.' }]
        : items.map((item) => ({ text: describeItem(item, chat), isChoice: true })),
    actions: [{ key: 'enter', label: 'open' }],
  })
  const item = result === null ? undefined : items[result.choice]
  if (item !== undefined) await openItem(item, chat)
  return item !== undefined
}

function canOpen(item: TranscriptItem): boolean {
  if (item.kind === 'line') return item.line.detail !== null
  return item.kind === 'call' || (item.kind === 'thinking' && item.text.trim() !== '')
}

const PREVIEW_CHARACTERS = 200

function describeItem(item: TranscriptItem, { theme, start }: ChatContext): string {
  const { colors } = theme
  if (item.kind === 'line') return `${colors.yellow(item.line.mark)} ${item.line.text}`
  if (item.kind === 'call') {
    const subject = describeCallSubject(item.name, item.input, start.folder)
    const failed = item.state === 'failed' ? colors.red(' failed') : ''
    return `${colors.green('●')} ${item.name} ${subject}${failed}`
  }
  return `∴ ${toOneLinePreview(item.text, PREVIEW_CHARACTERS)}`
}

async function openItem(item: TranscriptItem, chat: ChatContext): Promise<void> {
  if (item.kind === 'call') return openCall(item, chat)
  if (item.kind !== 'line') return showPage(chat, 'Thinking', item.text)
  const { detail } = item.line
  if (detail === null) return
  const { home } = chat.start
  const diff =
    detail.diffAt === undefined ? null : await readBreakDiff(home, chat.agent.session.id, detail.diffAt)
  const painted = diff === null ? '' : highlightCode(diff, 'diff', chat.theme.colors).join('\n')
  await showPage(chat, detail.title, painted === '' ? detail.text : `${detail.text}\n\n${painted}`)
}

/** Shows a call as a whole: its input, the change that it made, and its result. */
async function openCall(item: CallItem, chat: ChatContext): Promise<void> {
  const { theme, start } = chat
  const { colors } = theme
  const change = item.change ?? viewChange(item.name, item.input, { folder: start.folder, withFile: false })
  const fields = Object.entries(item.input).map(([name, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2)
    return `${colors.cyan(toScreenText(name))}: ${toScreenText(text)}`
  })
  const title = `${item.name} ${describeCallSubject(item.name, item.input, start.folder)}`
  await chat.screen.openPanel({
    title,
    rows(width) {
      const input = change === null ? fields : drawChange(change, width, { theme, most: 10_000 })
      const result = item.result === null ? [colors.dim('No result yet.')] : item.result.split('\n')
      return [...input, '', colors.bold(item.state === 'failed' ? 'Error' : 'Result'), ...result].flatMap(
        (text) => text.split('\n').map((line) => ({ text: line })),
      )
    },
    actions: [],
  })
}
